#include "simulator/shims/client/fatbin.h"

#include <elf.h>
#include <cstdlib>
#include <cstring>

#include "simulator/protocol/protocol.h"

namespace cb::sim::client {
namespace {

/// One program in a container, with the fields of the smallest header that nvcc writes.
struct FatbinEntry {
  uint16_t kind = 1;  // PTX
  uint16_t version = 0x0101;
  uint32_t header_bytes = 64;
  uint64_t payload_bytes = 0;
  uint32_t compressed_bytes = 0;
  uint32_t options_offset = 0x40;
  uint16_t ptx_minor = 0;
  uint16_t ptx_major = 0;
  uint32_t arch = 0;
  uint32_t name_offset = 0;
  uint32_t name_bytes = 0;
  uint64_t flags = 0x11;
  uint64_t reserved = 0;
  uint64_t uncompressed_bytes = 0;
};
static_assert(sizeof(FatbinEntry) == 64);

constexpr uint64_t kArchSpecificFlag = 0x100000;    // sm_90a rather than sm_90
constexpr uint64_t kFamilySpecificFlag = 0x200000;  // sm_100f

bool is_space(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

/// Skips blanks and comments; a PTX module starts with its .version directive.
const char* first_directive(const char* text) {
  for (;;) {
    while (is_space(*text)) ++text;
    if (text[0] == '/' && text[1] == '/') {
      while (*text != '\0' && *text != '\n') ++text;
    } else if (text[0] == '/' && text[1] == '*') {
      const char* end = strstr(text + 2, "*/");
      if (end == nullptr) return "";
      text = end + 2;
    } else {
      return text;
    }
  }
}

}  // namespace

ImageKind inspect_image(const void* image, const void** data, size_t* bytes) {
  if (image == nullptr) return ImageKind::kUnknown;
  // Byte by byte until the kind is known: PTX text may be a few bytes long.
  static constexpr unsigned char kElfMagic[4] = {0x7f, 'E', 'L', 'F'};
  auto* raw = static_cast<const unsigned char*>(image);
  auto starts_with = [raw](const void* magic) {
    auto* expected = static_cast<const unsigned char*>(magic);
    for (int at = 0; at < 4; ++at) {
      if (raw[at] != expected[at]) return false;
    }
    return true;
  };
  if (starts_with(kElfMagic)) {
    Elf64_Half machine;
    memcpy(&machine, raw + offsetof(Elf64_Ehdr, e_machine), sizeof machine);
    return machine == EM_CUDA ? ImageKind::kCubin : ImageKind::kUnknown;
  }
  if (starts_with(&kLinkedImageMagic)) {
    LinkedImage header;
    memcpy(&header, image, sizeof header);
    if (header.bytes < sizeof header || header.bytes > kMaxFatbinBytes) return ImageKind::kUnknown;
    *data = image;
    *bytes = header.bytes;
    return ImageKind::kLinked;
  }
  if (starts_with(&kWrapperMagic)) {
    FatbinWrapper wrapper;
    memcpy(&wrapper, image, sizeof wrapper);
    if (wrapper.version != 1 || wrapper.data == nullptr) return ImageKind::kUnknown;
    uint32_t magic;
    memcpy(&magic, wrapper.data, sizeof magic);
    return magic == kContainerMagic ? inspect_image(wrapper.data, data, bytes)
                                    : ImageKind::kUnknown;
  }
  if (starts_with(&kContainerMagic)) {
    FatbinHeader header;
    memcpy(&header, image, sizeof header);
    if (header.version != 1 || header.header_bytes < sizeof header ||
        header.payload_bytes > kMaxFatbinBytes - header.header_bytes) {
      return ImageKind::kUnknown;
    }
    *data = image;
    *bytes = header.header_bytes + header.payload_bytes;
    return ImageKind::kContainer;
  }
  auto* text = static_cast<const char*>(image);
  const char* start = first_directive(text);
  if (strncmp(start, ".version", 8) != 0) return ImageKind::kUnknown;
  *data = text;
  *bytes = strlen(text) + 1;
  return ImageKind::kPtxText;
}

void* wrap_ptx(const char* text, size_t text_bytes, size_t* container_bytes) {
  FatbinEntry entry;
  entry.payload_bytes = (text_bytes + 7) / 8 * 8;
  const char* version = first_directive(text);
  if (strncmp(version, ".version", 8) == 0) {
    char* minor = nullptr;
    entry.ptx_major = static_cast<uint16_t>(strtoul(version + 8, &minor, 10));
    if (*minor == '.') entry.ptx_minor = static_cast<uint16_t>(strtoul(minor + 1, nullptr, 10));
  }
  const char* target = strstr(version, ".target");
  const char* arch = target == nullptr ? nullptr : strstr(target, "sm_");
  if (arch != nullptr) {
    char* suffix = nullptr;
    entry.arch = static_cast<uint32_t>(strtoul(arch + 3, &suffix, 10));
    if (*suffix == 'a') entry.flags |= kArchSpecificFlag;
    if (*suffix == 'f') entry.flags |= kFamilySpecificFlag;
  }
  FatbinHeader header = {kContainerMagic, 1, sizeof(FatbinHeader),
                         sizeof entry + entry.payload_bytes};
  *container_bytes = header.header_bytes + header.payload_bytes;
  auto* container = static_cast<char*>(calloc(1, *container_bytes));
  if (container == nullptr) return nullptr;
  memcpy(container, &header, sizeof header);
  memcpy(container + sizeof header, &entry, sizeof entry);
  memcpy(container + sizeof header + sizeof entry, text, text_bytes);
  return container;
}

void* join_containers(const Bytes* containers, size_t count, uint32_t flags, size_t* image_bytes) {
  if (count > kMaxLinkedFatbins) return nullptr;
  LinkedImage header;
  header.magic = kLinkedImageMagic;
  header.count = static_cast<uint32_t>(count);
  header.flags = flags;
  header.bytes = sizeof header + count * sizeof(uint64_t);
  for (size_t at = 0; at < count; ++at) header.bytes += containers[at].size;
  if (header.bytes > kMaxFatbinBytes) return nullptr;
  auto* image = static_cast<char*>(malloc(header.bytes));
  if (image == nullptr) return nullptr;
  memcpy(image, &header, sizeof header);
  char* size_at = image + sizeof header;
  char* data_at = size_at + count * sizeof(uint64_t);
  for (size_t at = 0; at < count; ++at) {
    uint64_t bytes = containers[at].size;
    memcpy(size_at + at * sizeof bytes, &bytes, sizeof bytes);
    memcpy(data_at, containers[at].data, bytes);
    data_at += bytes;
  }
  *image_bytes = header.bytes;
  return image;
}

}  // namespace cb::sim::client
