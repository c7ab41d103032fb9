#include "simulator/ptx/cubin.h"

#include <elf.h>
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <string_view>

#include "simulator/ptx/bytes_view.h"

namespace cb::ptx {
namespace {

// Kernels are the function symbols with a mark of their own. Section `.nv.info` holds attributes by
// symbol, `.nv.info.<kernel>` those of one kernel, and the size of `.nv.shared.<kernel>` is its
// static shared memory. None of this is documented; it was read off cubins of ptxas 13.0 for sm_75
// to sm_120 and compared with what `ptxas -v` printed for them.

constexpr unsigned char kEntryMark = 0x10;  // in st_other
// Blocks of sm_90 and later begin with 1 KiB for the system, in linked cubins part of .nv.shared.
constexpr unsigned kFirstArchWithReserved = 90;
constexpr uint64_t kReservedSharedBytes = 1024;
constexpr size_t kMaxNameBytes = 1 << 16;

enum class Attribute : uint8_t {
  kMaxThreads = 0x05,
  kRequiredThreads = 0x10,
  kFrameBytes = 0x11,
  kStackBytes = 0x12,
  kParameterBytes = 0x19,
  kRegisters = 0x2f,
  kBarriers = 0x4c
};

// How the value of an attribute is stored: in its 4-byte header, or after it.
enum class Format : uint8_t { kNone = 1, kByte = 2, kHalf = 3, kSized = 4 };

struct AttributeHeader {
  Format format;
  Attribute attribute;
  uint16_t value;  // kSized: the bytes that follow
};

template <typename... Args>
tl::unexpected<Error> broken(fmt::format_string<Args...> text, Args&&... args) {
  return failure(ErrorCode::kConfig, "cubin: " + fmt::format(text, std::forward<Args>(args)...));
}

class Reader {
 public:
  explicit Reader(Bytes bytes) : bytes_(bytes), budget_(uint64_t{bytes.size()} * 2) {}

  Result<std::vector<KernelResources>> read() {
    Result<void> done = read_sections();
    if (done) done = read_symbols();
    for (size_t i = 0; done && i < sections_.size(); ++i) done = read_section(sections_[i]);
    if (!done) return tl::unexpected(done.error());
    return std::move(kernels_);
  }

 private:
  // Hostile sections and names may overlap; what is read in all is bounded by the file.
  bool spend(uint64_t count) {
    if (count > budget_) return false;
    budget_ -= count;
    return true;
  }

  std::string_view name_at(Bytes table, uint64_t offset) {
    if (offset >= table.size()) return {};
    std::string_view name = string_at(
        table.subspan(0, std::min<uint64_t>(table.size(), offset + kMaxNameBytes)), offset);
    return spend(name.size()) ? name : std::string_view{};
  }

  Result<void> read_sections() {
    auto header = read_at<Elf64_Ehdr>(bytes_, 0);
    if (!header || std::memcmp(header->e_ident, ELFMAG, SELFMAG) != 0 ||
        header->e_ident[EI_CLASS] != ELFCLASS64 || header->e_ident[EI_DATA] != ELFDATA2LSB) {
      return broken("not a 64-bit little-endian ELF file");
    }
    if (header->e_machine != EM_CUDA) {
      return broken("ELF machine {}, expected {} (CUDA)", header->e_machine, EM_CUDA);
    }
    bool is_linked = header->e_type == ET_EXEC;
    unsigned arch = header->e_flags >> 8 & 0xff;
    if (is_linked && arch >= kFirstArchWithReserved) reserved_bytes_ = kReservedSharedBytes;
    auto first = read_at<Elf64_Shdr>(bytes_, header->e_shoff);
    if (!first || header->e_shentsize != sizeof(Elf64_Shdr)) return broken("no section headers");
    // Numbers too large for the ELF header are in the first section's.
    uint64_t count = header->e_shnum != 0 ? header->e_shnum : first->sh_size;
    uint64_t names = header->e_shstrndx != SHN_XINDEX ? header->e_shstrndx : first->sh_link;
    if (count > (bytes_.size() - header->e_shoff) / sizeof(Elf64_Shdr)) {
      return broken("{} section headers do not fit in the file", count);
    }
    for (uint64_t i = 0; i < count; ++i) {
      sections_.push_back(*read_at<Elf64_Shdr>(bytes_, header->e_shoff + i * sizeof(Elf64_Shdr)));
    }
    std::optional<Bytes> table = content_of(names);
    if (!table) return broken("no section names");
    section_names_ = *table;
    return {};
  }

  std::optional<Bytes> content_of(uint64_t index) const {
    if (index >= sections_.size() || sections_[index].sh_type == SHT_NOBITS) return std::nullopt;
    return slice(bytes_, sections_[index].sh_offset, sections_[index].sh_size);
  }

  Result<void> read_symbols() {
    auto table = std::find_if(sections_.begin(), sections_.end(),
                              [](const Elf64_Shdr& one) { return one.sh_type == SHT_SYMTAB; });
    if (table == sections_.end()) return broken("no symbol table");
    std::optional<Bytes> symbols = content_of(static_cast<uint64_t>(table - sections_.begin()));
    std::optional<Bytes> names = content_of(table->sh_link);
    if (!symbols || !names) return broken("the symbol table lies outside the file");
    size_t count = symbols->size() / sizeof(Elf64_Sym);
    kernel_of_symbol_.assign(count, -1);
    for (size_t i = 0; i < count; ++i) {
      auto symbol = *read_at<Elf64_Sym>(*symbols, i * sizeof(Elf64_Sym));
      if (ELF64_ST_TYPE(symbol.st_info) != STT_FUNC || !(symbol.st_other & kEntryMark)) continue;
      std::string_view name = name_at(*names, symbol.st_name);
      if (name.empty()) return broken("kernel symbol {} has no name, or names overlap", i);
      auto [place, is_new] = kernel_of_name_.try_emplace(name, kernels_.size());
      if (!is_new) return broken("two kernels are named \"{}\"", name);
      kernel_of_symbol_[i] = static_cast<int64_t>(kernels_.size());
      kernels_.emplace_back().name = name;
    }
    return {};
  }

  KernelResources* kernel_named(std::string_view name) {
    auto found = kernel_of_name_.find(name);
    return found == kernel_of_name_.end() ? nullptr : &kernels_[found->second];
  }

  Result<void> read_section(const Elf64_Shdr& section) {
    constexpr std::string_view kInfo = ".nv.info";
    constexpr std::string_view kShared = ".nv.shared.";
    std::string_view name = name_at(section_names_, section.sh_name);
    if (name.starts_with(kShared)) {
      KernelResources* kernel = kernel_named(name.substr(kShared.size()));
      if (kernel == nullptr) return {};
      if (section.sh_size < reserved_bytes_) {
        return broken("{} has {} bytes, fewer than the {} that are reserved", name, section.sh_size,
                      reserved_bytes_);
      }
      kernel->static_shared_bytes = section.sh_size - reserved_bytes_;
    } else if (name.starts_with(kInfo)) {
      KernelResources* kernel = nullptr;
      if (name.size() > kInfo.size()) {
        kernel = kernel_named(name.substr(kInfo.size() + 1));
        if (kernel == nullptr) return {};
      }
      std::optional<Bytes> content = slice(bytes_, section.sh_offset, section.sh_size);
      if (!content || !spend(content->size())) return broken("{} lies outside the file", name);
      return read_attributes(name, *content, kernel);
    }
    return {};
  }

  Result<void> read_attributes(std::string_view section, Bytes content, KernelResources* kernel) {
    uint64_t offset = 0;
    while (offset < content.size()) {
      auto header = read_at<AttributeHeader>(content, offset);
      if (!header) return broken("{}: an attribute is cut off", section);
      offset += sizeof(AttributeHeader);
      Bytes value;
      if (header->format == Format::kSized) {
        std::optional<Bytes> part = slice(content, offset, header->value);
        if (!part) return broken("{}: an attribute is cut off", section);
        value = *part;
        offset += header->value;
      } else if (header->format < Format::kNone || header->format > Format::kSized) {
        return broken("{}: attribute format {} is unknown", section,
                      static_cast<unsigned>(header->format));
      }
      if (kernel != nullptr) {
        set_of_kernel(*header, value, *kernel);
      } else {
        set_by_symbol(header->attribute, value);
      }
    }
    return {};
  }

  static void set_of_kernel(const AttributeHeader& header, Bytes value, KernelResources& kernel) {
    switch (header.attribute) {
      case Attribute::kMaxThreads:
        set_triple(value, kernel.max_threads);
        break;
      case Attribute::kRequiredThreads:
        set_triple(value, kernel.required_threads);
        break;
      case Attribute::kParameterBytes:
        kernel.parameter_bytes = header.value;
        break;
      case Attribute::kBarriers:
        kernel.barriers = header.value & 0xff;
        break;
      default:
        break;
    }
  }

  static void set_triple(Bytes value, unsigned (&triple)[3]) {
    for (size_t i = 0; i < 3; ++i) triple[i] = read_at<uint32_t>(value, i * 4).value_or(0);
  }

  void set_by_symbol(Attribute attribute, Bytes value) {
    auto symbol = read_at<uint32_t>(value, 0);
    auto amount = read_at<uint32_t>(value, 4);
    if (!symbol || !amount || *symbol >= kernel_of_symbol_.size()) return;
    if (kernel_of_symbol_[*symbol] < 0) return;
    KernelResources& kernel = kernels_[static_cast<size_t>(kernel_of_symbol_[*symbol])];
    if (attribute == Attribute::kRegisters) kernel.registers = *amount;
    if (attribute == Attribute::kFrameBytes) kernel.frame_bytes = *amount;
    if (attribute == Attribute::kStackBytes) kernel.stack_bytes = *amount;
  }

  Bytes bytes_;
  uint64_t budget_;
  uint64_t reserved_bytes_ = 0;
  std::vector<Elf64_Shdr> sections_;
  Bytes section_names_;
  std::vector<int64_t> kernel_of_symbol_;  // -1: none
  std::map<std::string_view, size_t> kernel_of_name_;
  std::vector<KernelResources> kernels_;
};

}  // namespace

Result<std::vector<KernelResources>> read_cubin_resources(std::span<const std::byte> bytes) {
  return Reader(bytes).read();
}

}  // namespace cb::ptx
