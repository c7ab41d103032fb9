#include "simulator/ptx/cubin.h"

#include <elf.h>

#include <cstring>
#include <map>

#include "simulator/ptx/fatbin.h"
#include "simulator/ptx/mutation.h"
#include "simulator/ptx/test_text.h"

namespace cb::ptx {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

std::string cubin() {
  std::string bytes = test_data("resources.fatbin");
  Fatbin fatbin = value_or_throw(read_fatbin(std::as_bytes(std::span(bytes))));
  return value_or_throw(select_cubin(fatbin, 90))->content;
}

Result<std::vector<KernelResources>> read(const std::string& bytes) {
  return read_cubin_resources(std::as_bytes(std::span(bytes)));
}

std::string cubin_error(const std::string& bytes) {
  Result<std::vector<KernelResources>> kernels = read(bytes);
  return kernels ? "read without an error" : kernels.error().message();
}

// The numbers are those that `ptxas -v` printed when it made the file.
TEST(Cubin, AgreesWithPtxas) {
  Result<std::vector<KernelResources>> read_kernels = read(cubin());
  ASSERT_TRUE(read_kernels) << read_kernels.error().message();
  std::map<std::string, KernelResources> kernels;
  for (const KernelResources& one : *read_kernels) kernels[one.name] = one;
  EXPECT_EQ(kernels.size(), 9u);
  auto resources = [&](const std::string& name) {
    const KernelResources& one = kernels.at(name);
    return std::vector<uint64_t>{one.registers, one.barriers, one.static_shared_bytes,
                                 one.frame_bytes, one.stack_bytes};
  };
  EXPECT_THAT(resources("_Z5plainPf"), ElementsAre(8, 0, 0, 0, 0));
  EXPECT_THAT(resources("_Z10shared_400Pf"), ElementsAre(12, 1, 400, 0, 0));
  EXPECT_THAT(resources("_Z10barriers_8Pf"), ElementsAre(12, 8, 0, 0, 0));
  EXPECT_THAT(resources("_Z9stack_256Pfi"), ElementsAre(32, 0, 0, 256, 256));
  EXPECT_THAT(resources("_Z5callsPfi"), ElementsAre(40, 0, 0, 128, 128));
  EXPECT_THAT(resources("_Z6spillsPf"), ElementsAre(32, 0, 0, 72, 72));
  EXPECT_THAT(resources("_Z4manyILi8EEvPd"), ElementsAre(24, 1, 0, 0, 0));
  EXPECT_THAT(resources("_Z4manyILi32EEvPd"), ElementsAre(72, 1, 0, 0, 0));
  EXPECT_EQ(kernels.at("_Z15parameters_20085LargePf").parameter_bytes, 2008u);
  EXPECT_THAT(kernels.at("_Z10barriers_8Pf").max_threads, ElementsAre(128, 1, 1));
  EXPECT_THAT(kernels.at("_Z6spillsPf").max_threads, ElementsAre(1024, 1, 1));
  EXPECT_THAT(kernels.at("_Z5plainPf").max_threads, ElementsAre(0, 0, 0));
}

TEST(Cubin, RefusesOtherFiles) {
  EXPECT_THAT(cubin_error(""), HasSubstr("not a 64-bit little-endian ELF file"));
  EXPECT_THAT(cubin_error(std::string(1000, 'x')), HasSubstr("not a 64-bit"));
  std::string bytes = cubin();
  auto* header = reinterpret_cast<Elf64_Ehdr*>(bytes.data());
  header->e_machine = EM_X86_64;
  EXPECT_THAT(cubin_error(bytes), HasSubstr("ELF machine 62, expected 190 (CUDA)"));
  header->e_machine = EM_CUDA;
  header->e_shoff = ~uint64_t{0};
  EXPECT_THAT(cubin_error(bytes), HasSubstr("no section headers"));
}

TEST(Cubin, ChecksEveryOffset) {
  std::string bytes = cubin();
  for (size_t length = 0; length < bytes.size(); length += 97) {
    read(bytes.substr(0, length));
  }
  auto* header = reinterpret_cast<Elf64_Ehdr*>(bytes.data());
  header->e_shnum = 0xfff0;
  EXPECT_THAT(cubin_error(bytes), HasSubstr("65520 section headers do not fit"));
}

// Many sections that all are the whole file would make the work quadratic.
TEST(Cubin, BoundsOverlappingSections) {
  std::string bytes = cubin();
  Elf64_Ehdr header;
  std::memcpy(&header, bytes.data(), sizeof(header));
  for (size_t i = 1; i < header.e_shnum; ++i) {
    size_t place = header.e_shoff + i * sizeof(Elf64_Shdr);
    Elf64_Shdr section;
    std::memcpy(&section, bytes.data() + place, sizeof(section));
    if (section.sh_type != SHT_LOPROC) continue;
    section.sh_offset = 0;
    section.sh_size = bytes.size();
    std::memcpy(bytes.data() + place, &section, sizeof(section));
  }
  EXPECT_THAT(cubin_error(bytes), StartsWith("cubin: "));
}

TEST(Mutation, DamagedCubinsGiveKernelsOrAnError) {
  std::string bytes = cubin();
  Mutator mutator(3, {std::string(8, '\0'), std::string(8, '\xff'), std::string(4, '\x7f')});
  for (int i = 0; i < 2000; ++i) {
    Result<std::vector<KernelResources>> kernels = read(mutator.mutate(bytes));
    if (!kernels) {
      ASSERT_THAT(kernels.error().message(), StartsWith("cubin: "));
    }
  }
  // Damage to the section headers alone, which are at the end.
  size_t begin = bytes.size() - 6000;
  for (int i = 0; i < 2000; ++i) {
    read(bytes.substr(0, begin) + mutator.mutate(bytes.substr(begin)));
  }
}

}  // namespace
}  // namespace cb::ptx
