#include "simulator/ptx/fatbin.h"

#include <fmt/format.h>
#include <zstd.h>

#include <algorithm>
#include <optional>

#include "base/text.h"
#include "simulator/ptx/bytes_view.h"

namespace cb::ptx {
namespace {

// The layout is not documented; it was read off fat binaries of nvcc 13.0 built with known options
// (architectures, variants, -lineinfo, -G, every --compress-mode).

constexpr uint32_t kContainerMagic = 0xba55ed50;
constexpr uint16_t kKindPtx = 1;
constexpr uint16_t kKindCubin = 2;
constexpr uint64_t kFlagLz4 = 0x2000;
constexpr uint64_t kFlagZstd = 0x8000;
constexpr uint64_t kFlagArchSpecific = 0x100000;
constexpr uint64_t kFlagFamilySpecific = 0x200000;

struct ContainerHeader {
  uint32_t magic;
  uint16_t version;
  uint16_t header_bytes;
  uint64_t payload_bytes;
};
static_assert(sizeof(ContainerHeader) == 16);

struct EntryHeader {
  uint16_t kind;
  uint16_t unknown;
  uint32_t header_bytes;
  uint64_t payload_bytes;  // with padding
  uint32_t compressed_bytes;
  uint32_t options_offset;
  uint16_t version_minor;
  uint16_t version_major;
  uint32_t arch;
  uint32_t name_offset;
  uint32_t name_bytes;
  uint64_t flags;
  uint64_t unknown2;
  uint64_t uncompressed_bytes;
};
static_assert(sizeof(EntryHeader) == 64);

template <typename... Args>
tl::unexpected<Error> broken(fmt::format_string<Args...> text, Args&&... args) {
  return failure(ErrorCode::kConfig, "fatbin: " + fmt::format(text, std::forward<Args>(args)...));
}

std::string as_string(Bytes bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

class Reader {
 public:
  Reader(Bytes bytes, size_t max_bytes) : bytes_(bytes), bytes_left_(max_bytes) {}

  Result<Fatbin> read() {
    uint64_t offset = 0;
    do {
      auto header = read_at<ContainerHeader>(bytes_, offset);
      if (!header || header->magic != kContainerMagic) {
        return broken("no container at byte {}: it would begin with 0x{:08x}", offset,
                      kContainerMagic);
      }
      if (header->version != 1 || header->header_bytes < sizeof(ContainerHeader)) {
        return broken(
            "container at byte {}: version {} with a header of {} bytes, expected "
            "version 1 with at least {}",
            offset, header->version, header->header_bytes, sizeof(ContainerHeader));
      }
      uint64_t begin = offset + header->header_bytes;
      std::optional<Bytes> payload = slice(bytes_, begin, header->payload_bytes);
      if (!payload) {
        return broken("container at byte {}: its {} bytes end after the {} bytes that are there",
                      offset, header->payload_bytes, bytes_.size());
      }
      if (Result<void> entries = read_entries(*payload); !entries) {
        return tl::unexpected(entries.error());
      }
      offset = begin + header->payload_bytes;
      while (offset < bytes_.size() && bytes_[offset] == std::byte{0}) ++offset;
    } while (offset < bytes_.size());
    return std::move(fatbin_);
  }

 private:
  Result<void> read_entries(Bytes payload) {
    uint64_t offset = 0;
    while (offset < payload.size()) {
      auto header = read_at<EntryHeader>(payload, offset);
      if (!header || header->header_bytes < sizeof(EntryHeader)) {
        return broken("entry {} is cut off", fatbin_.entries.size());
      }
      std::optional<Bytes> entry = slice(payload, offset, header->header_bytes);
      std::optional<Bytes> content =
          slice(payload, offset + header->header_bytes, header->payload_bytes);
      if (!entry || !content) {
        return broken("entry {}: its {} + {} bytes do not fit in the container",
                      fatbin_.entries.size(), header->header_bytes, header->payload_bytes);
      }
      Result<void> added = add(*header, *entry, *content);
      if (!added) return added;
      offset += header->header_bytes + header->payload_bytes;
    }
    return {};
  }

  Result<void> add(const EntryHeader& header, Bytes header_bytes, Bytes content) {
    FatbinEntry entry;
    entry.arch = header.arch;
    entry.version_major = header.version_major;
    entry.version_minor = header.version_minor;
    if (header.flags & kFlagFamilySpecific) entry.variant = 'f';
    if (header.flags & kFlagArchSpecific) entry.variant = 'a';
    if (header.kind == kKindPtx) entry.kind = FatbinEntry::Kind::kPtx;
    if (header.kind == kKindCubin) entry.kind = FatbinEntry::Kind::kCubin;
    std::optional<Bytes> name = slice(header_bytes, header.name_offset, header.name_bytes);
    if (!name) {
      return broken("entry {}: its source name lies outside its header", fatbin_.entries.size());
    }
    entry.source_name = as_string(*name);
    if (entry.kind != FatbinEntry::Kind::kOther) {
      Result<std::string> data = decompress(header, content, entry);
      if (!data) return tl::unexpected(data.error());
      entry.content = std::move(*data);
    }
    if (entry.kind == FatbinEntry::Kind::kPtx) {
      entry.content.resize(std::min(entry.content.find('\0'), entry.content.size()));
    }
    fatbin_.entries.push_back(std::move(entry));
    return {};
  }

  Result<std::string> decompress(const EntryHeader& header, Bytes content,
                                 const FatbinEntry& entry) {
    size_t index = fatbin_.entries.size();
    bool is_compressed = header.compressed_bytes != 0 || (header.flags & (kFlagLz4 | kFlagZstd));
    uint64_t bytes = is_compressed ? header.uncompressed_bytes : content.size();
    if (bytes > bytes_left_) {
      return broken("entry {} ({}) has {} bytes, more than the {} left of the limit", index,
                    entry.describe(), bytes, bytes_left_);
    }
    bytes_left_ -= bytes;
    if (!is_compressed) return as_string(content);
    if (header.flags & kFlagLz4) {
      return broken(
          "entry {} ({}) is compressed with LZ4, which is not supported: build with nvcc "
          "--compress-mode=default or none",
          index, entry.describe());
    }
    if (!(header.flags & kFlagZstd)) {
      return broken(
          "entry {} ({}) is compressed in an unknown way (flags 0x{:x}): build with nvcc "
          "--compress-mode=none",
          index, entry.describe(), header.flags);
    }
    std::optional<Bytes> frame = slice(content, 0, header.compressed_bytes);
    if (!frame) {
      return broken("entry {} ({}): {} compressed bytes in a payload of {}", index,
                    entry.describe(), header.compressed_bytes, content.size());
    }
    std::string data(bytes, '\0');
    size_t written = ZSTD_decompress(data.data(), data.size(), frame->data(), frame->size());
    if (ZSTD_isError(written)) {
      return broken("entry {} ({}): zstd: {}", index, entry.describe(), ZSTD_getErrorName(written));
    }
    if (written != bytes) {
      return broken("entry {} ({}) decompresses to {} bytes, its header says {}", index,
                    entry.describe(), written, bytes);
    }
    return data;
  }

  Bytes bytes_;
  uint64_t bytes_left_;
  Fatbin fatbin_;
};

// Greater is preferred; 0 does not fit.
unsigned ptx_preference(const FatbinEntry& entry, unsigned arch) {
  if (entry.kind != FatbinEntry::Kind::kPtx || entry.arch > arch) return 0;
  if (entry.variant == 'a') return entry.arch == arch ? entry.arch * 4 + 3 : 0;
  if (entry.variant == 'f') return entry.arch / 10 == arch / 10 ? entry.arch * 4 + 2 : 0;
  return entry.arch * 4 + 1;
}

unsigned cubin_preference(const FatbinEntry& entry, unsigned arch) {
  if (entry.kind != FatbinEntry::Kind::kCubin || entry.arch > arch) return 0;
  if (entry.arch / 10 != arch / 10) return 0;
  if (entry.variant == 'a') return entry.arch == arch ? entry.arch * 4 + 3 : 0;
  return entry.arch * 4 + (entry.variant == 'f' ? 2 : 1);
}

const FatbinEntry* select(const Fatbin& fatbin, unsigned arch,
                          unsigned (*preference)(const FatbinEntry&, unsigned)) {
  const FatbinEntry* best = nullptr;
  for (const FatbinEntry& entry : fatbin.entries) {
    unsigned least = best == nullptr ? 1 : preference(*best, arch) + 1;
    if (preference(entry, arch) >= least) best = &entry;
  }
  return best;
}

std::string list(const Fatbin& fatbin) {
  constexpr size_t kMaxListed = 16;
  std::string text;
  for (size_t i = 0; i < std::min(kMaxListed, fatbin.entries.size()); ++i) {
    text += (i == 0 ? "" : ", ") + fatbin.entries[i].describe();
  }
  if (fatbin.entries.size() > kMaxListed) {
    text += fmt::format(" and {} more", fatbin.entries.size() - kMaxListed);
  }
  return text.empty() ? "nothing" : text;
}

}  // namespace

std::string FatbinEntry::describe() const {
  const char* what = kind == Kind::kPtx ? "PTX" : kind == Kind::kCubin ? "SASS" : "other code";
  return fmt::format("{} for sm_{}{}", what, arch, trim({&variant, 1}));
}

Result<Fatbin> read_fatbin(std::span<const std::byte> bytes, size_t max_bytes) {
  return Reader(bytes, max_bytes).read();
}

Result<const FatbinEntry*> select_ptx(const Fatbin& fatbin, unsigned arch) {
  if (const FatbinEntry* best = select(fatbin, arch, ptx_preference)) return best;
  bool has_ptx = std::any_of(fatbin.entries.begin(), fatbin.entries.end(), [](const auto& entry) {
    return entry.kind == FatbinEntry::Kind::kPtx;
  });
  return broken(
      "{} a device of sm_{}: it holds {}. Build with nvcc -gencode "
      "arch=compute_{},code=compute_{}",
      has_ptx ? "no PTX that fits" : "SASS only, no PTX for", arch, list(fatbin), arch, arch);
}

Result<const FatbinEntry*> select_cubin(const Fatbin& fatbin, unsigned arch) {
  if (const FatbinEntry* best = select(fatbin, arch, cubin_preference)) return best;
  return broken(
      "no SASS that fits a device of sm_{}: it holds {}. Build with nvcc -gencode "
      "arch=compute_{},code=sm_{}",
      arch, list(fatbin), arch, arch);
}

}  // namespace cb::ptx
