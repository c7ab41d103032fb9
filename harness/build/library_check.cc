#include "harness/build/library_check.h"

#include <elf.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <optional>

#include "base/hash.h"

namespace cb::build {
namespace {

constexpr uint32_t kFatbinMagic = 0xba55ed50;
constexpr uint16_t kCudaMachine = 190;
constexpr uint64_t kMaxSymbols = 1 << 20;

struct FatbinHeader {
  uint32_t magic;
  uint16_t version;
  uint16_t header_bytes;
  uint64_t body_bytes;
};

tl::unexpected<Error> malformed(const std::string& what) {
  return failure(ErrorCode::kRemote, "the compiler's library is malformed: " + what);
}

std::optional<std::string_view> slice(std::string_view bytes, uint64_t offset, uint64_t length) {
  if (offset > bytes.size() || length > bytes.size() - offset) return std::nullopt;
  return bytes.substr(offset, length);
}

template <typename T>
std::optional<T> read_at(std::string_view bytes, uint64_t offset) {
  std::optional<std::string_view> raw = slice(bytes, offset, sizeof(T));
  if (!raw) return std::nullopt;
  T value;
  std::memcpy(&value, raw->data(), sizeof value);
  return value;
}

std::optional<std::string> string_at(std::string_view table, uint64_t offset) {
  if (offset >= table.size()) return std::nullopt;
  size_t end = table.find('\0', offset);
  if (end == std::string_view::npos) return std::nullopt;
  return std::string(table.substr(offset, end - offset));
}

class ElfReader {
 public:
  explicit ElfReader(std::string_view bytes) : bytes_(bytes) {}

  Result<LibraryFacts> read() {
    std::optional<Elf64_Ehdr> header = read_at<Elf64_Ehdr>(bytes_, 0);
    if (!header || std::memcmp(header->e_ident, ELFMAG, SELFMAG) != 0 ||
        header->e_ident[EI_CLASS] != ELFCLASS64 || header->e_machine != EM_X86_64 ||
        header->e_type != ET_DYN || header->e_shentsize != sizeof(Elf64_Shdr)) {
      return malformed("not an x86-64 shared library");
    }
    for (unsigned index = 0; index < header->e_shnum; ++index) {
      auto section = read_at<Elf64_Shdr>(bytes_, header->e_shoff + index * sizeof(Elf64_Shdr));
      if (!section) return malformed("section table");
      sections_.push_back(*section);
    }
    if (header->e_shstrndx >= sections_.size()) return malformed("section names");
    std::optional<std::string_view> names = content(sections_[header->e_shstrndx]);
    if (!names) return malformed("section names");
    for (const Elf64_Shdr& section : sections_) {
      Result<void> done = read_section(section, *names);
      if (!done) return tl::unexpected(done.error());
    }
    std::sort(facts_.fatbin_sha256.begin(), facts_.fatbin_sha256.end());
    find_stray_device_code();
    return std::move(facts_);
  }

 private:
  std::optional<std::string_view> content(const Elf64_Shdr& section) const {
    if (section.sh_type == SHT_NOBITS) return std::string_view();
    return slice(bytes_, section.sh_offset, section.sh_size);
  }

  Result<void> read_section(const Elf64_Shdr& section, std::string_view names) {
    std::optional<std::string> name = string_at(names, section.sh_name);
    std::optional<std::string_view> data = content(section);
    if (!name || !data) return malformed("section bounds");
    if (*name == ".nv_fatbin") {
      Result<std::vector<std::string>> hashes = hash_fatbins(*data);
      if (!hashes) return tl::unexpected(hashes.error());
      facts_.fatbin_sha256.insert(facts_.fatbin_sha256.end(), hashes->begin(), hashes->end());
      fatbins_.push_back(section);
    }
    if (section.sh_type != SHT_DYNSYM) return {};
    if (section.sh_link >= sections_.size()) return malformed("string table");
    std::optional<std::string_view> strings = content(sections_[section.sh_link]);
    if (!strings) return malformed("string table");
    return read_symbols(*data, *strings);
  }

  Result<void> read_symbols(std::string_view data, std::string_view strings) {
    uint64_t count = data.size() / sizeof(Elf64_Sym);
    if (count > kMaxSymbols) return malformed("more than a million symbols");
    for (uint64_t index = 1; index < count; ++index) {
      auto symbol = read_at<Elf64_Sym>(data, index * sizeof(Elf64_Sym));
      std::optional<std::string> name = string_at(strings, symbol->st_name);
      if (!name) return malformed("symbol name");
      bool wanted = symbol->st_shndx == SHN_UNDEF;
      (wanted ? facts_.undefined : facts_.exported).push_back(std::move(*name));
    }
    return {};
  }

  bool in_fatbin_section(uint64_t at) const {
    return std::any_of(fatbins_.begin(), fatbins_.end(), [at](const Elf64_Shdr& section) {
      return at >= section.sh_offset && at - section.sh_offset < section.sh_size;
    });
  }

  void find_stray_device_code() {
    const std::string_view fatbin_magic("\x50\xed\x55\xba", 4);
    const std::string_view elf_magic(
        "\x7f"
        "ELF\x02",
        5);
    for (uint64_t at = 0; (at = bytes_.find(fatbin_magic, at)) != std::string_view::npos; ++at) {
      auto header = read_at<FatbinHeader>(bytes_, at);
      if (!in_fatbin_section(at) && header && header->version == 1 &&
          header->header_bytes == sizeof(FatbinHeader)) {
        facts_.stray_device_code = fmt::format("a fatbin at offset {}", at);
        return;
      }
    }
    for (uint64_t at = 0; (at = bytes_.find(elf_magic, at)) != std::string_view::npos; ++at) {
      auto header = read_at<Elf64_Ehdr>(bytes_, at);
      if (!in_fatbin_section(at) && header && header->e_machine == kCudaMachine) {
        facts_.stray_device_code = fmt::format("a cubin at offset {}", at);
        return;
      }
    }
  }

  std::string_view bytes_;
  std::vector<Elf64_Shdr> sections_;
  std::vector<Elf64_Shdr> fatbins_;
  LibraryFacts facts_;
};

}  // namespace

Result<LibraryFacts> read_library(std::string_view bytes) { return ElfReader(bytes).read(); }

Result<std::vector<std::string>> hash_fatbins(std::string_view bytes) {
  std::vector<std::string> hashes;
  uint64_t at = 0;
  while (at < bytes.size()) {
    if (bytes[at] == '\0') {
      ++at;
      continue;
    }
    auto header = read_at<FatbinHeader>(bytes, at);
    if (!header || header->magic != kFatbinMagic) {
      return malformed(fmt::format("no fatbin at offset {} of .nv_fatbin", at));
    }
    std::optional<std::string_view> body =
        slice(bytes, at + header->header_bytes, header->body_bytes);
    if (!body || header->header_bytes < sizeof(FatbinHeader)) return malformed("fatbin bounds");
    uint64_t total = header->header_bytes + header->body_bytes;
    hashes.push_back(sha256_hex(bytes.substr(at, total)));
    at += total;
  }
  return hashes;
}

}  // namespace cb::build
