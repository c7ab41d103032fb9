// Modules and launches.

#include <gtest/gtest.h>

#include <cstring>

#include "simulator/shims/testing/fake_daemon.h"

namespace cb::sim {
namespace {

template <class T>
void append(std::string& bytes, const T& value) {
  bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
}

/// One kernel (u64, u8, u32) and one variable of 16 bytes.
std::string one_kernel() {
  ModuleTable header;
  header.num_kernels = header.num_variables = 1;
  header.num_params = 3;
  std::string names("the_kernel\0the_variable\0", 24);
  header.names_bytes = static_cast<uint32_t>(names.size());
  KernelInfo kernel;
  kernel.num_params = 3;
  kernel.param_bytes = 16;
  kernel.registers = 24;
  kernel.max_threads = 1024;
  kernel.binary_version = 90;
  VariableInfo variable;
  variable.name_offset = 11;
  variable.bytes = 16;
  std::string table;
  append(table, header);
  append(table, kernel);
  append(table, variable);
  append(table, ParamInfo{0, 8});
  append(table, ParamInfo{8, 1});
  append(table, ParamInfo{12, 4});
  return table + names;
}

TEST(ShimCode, LaunchesCarryPackedParametersAndModulesGoOnceInPieces) {
  FakeDaemon daemon;
  daemon.set_module_table(one_kernel());
  CompletedProcess process = daemon.run("launch");
  EXPECT_EQ(process.standard_output,
            "launch 0\nlaunch 0\nno_grid 9\ntoo_many_threads 9\ntoo_much_shared 1\nopt_in 0\n"
            "allowed_shared 0\nmissing 98\ncooperative 720\nto_symbol 0\npast_the_end 1\n"
            "address 0\nsize 0\nat 200000008000 size 16\nno_symbol 13\nunregistered 98\n");
  EXPECT_EQ(daemon.requests(Op::kModuleLoad).size(), 3u);
  constexpr size_t kPayloadBytes = (size_t{9} << 20) + 321;
  std::string image = daemon.images();
  ASSERT_EQ(image.size(), 16 + kPayloadBytes);
  EXPECT_EQ(image[16 + 12345], static_cast<char>(12345 * 31 + 12345 / 5000));

  auto launches = daemon.requests(Op::kLaunch);
  ASSERT_EQ(launches.size(), 3u);
  ASSERT_EQ(launches[0].payload.size(), sizeof(Launch) + 16);
  Launch launch;
  memcpy(&launch, launches[0].payload.data(), sizeof launch);
  EXPECT_EQ(launch.module, 5u);
  EXPECT_EQ(launch.kernel, 0u);
  EXPECT_EQ(launch.grid[2], 4u);
  EXPECT_EQ(launch.block[1], 2u);
  EXPECT_EQ(launch.cluster[0], 1u);
  EXPECT_EQ(launch.dynamic_shared_bytes, 64u);
  EXPECT_EQ(launch.max_dynamic_shared_bytes, 49152u);
  EXPECT_EQ(launches[0].payload.substr(sizeof launch),
            std::string("\x88\x77\x66\x55\x44\x33\x22\x11\x99\0\0\0\xdd\xcc\xbb\xaa", 16));
  EXPECT_EQ(daemon.memory(kWindowBase + 0x8000, 16), std::string("symbol content!\0", 16));
  EXPECT_EQ(daemon.requests(Op::kSymbolAddress).size(), 1u);
  EXPECT_EQ(daemon.requests(Op::kModuleUnload).size(), 1u);
}

TEST(ShimCode, AModuleThatCannotBeLoadedFailsEveryUseWithItsError) {
  FakeDaemon daemon;
  daemon.answer(Op::kModuleLoad, [](Answering& answering) {
    if (answering.request.args[1] == 0) answering.reply.status = 209;
  });
  CompletedProcess process = daemon.run("bad_module");
  EXPECT_EQ(process.standard_output, "launch 209\nagain 209\nattributes 209\n");
  EXPECT_EQ(daemon.requests(Op::kModuleLoad).size(), 3u);
}

TEST(ShimCode, ATableThatPointsOutsideItselfEndsTheConnection) {
  FakeDaemon daemon;
  std::string table = one_kernel();
  table[sizeof(ModuleTable)] = '\x7f';  // the kernel's name
  daemon.set_module_table(table);
  CompletedProcess process = daemon.run("bad_module");
  EXPECT_EQ(process.standard_output, "launch 802\nagain 802\nattributes 802\n");
  EXPECT_NE(process.standard_error.find("a kernel's name is outside"), std::string::npos);
}

TEST(ShimCode, RelocatableDeviceCodeOfAllFilesGoesAsOneImage) {
  FakeDaemon daemon;
  daemon.set_module_table(one_kernel());
  CompletedProcess process = daemon.run("linked_code");
  EXPECT_EQ(process.standard_output, "launch 1\n");  // loaded: its parameters are missing
  std::string image = daemon.images();
  LinkedImage header;
  ASSERT_GE(image.size(), sizeof header);
  memcpy(&header, image.data(), sizeof header);
  EXPECT_EQ(header.magic, kLinkedImageMagic);
  EXPECT_EQ(header.count, 2u);
  EXPECT_EQ(header.flags, kLinkSkipForeign);
  EXPECT_EQ(header.bytes, image.size());
  EXPECT_EQ(image.size(), sizeof header + 2 * (8 + 16 + 8));
  EXPECT_LT(image.find("payload1"), image.find("payload2"));
}

TEST(ShimCode, WhyAnImageIsRefusedIsSaid) {
  FakeDaemon daemon;
  daemon.answer(Op::kModuleLoad, [](Answering& answering) {
    if (answering.request.args[1] != 0) return;
    answering.reply.status = 218;
    answering.payload = "ptx:7: nonsense";
  });
  CompletedProcess process = daemon.run("bad_module");
  EXPECT_EQ(process.standard_output, "launch 218\nagain 218\nattributes 218\n");
  EXPECT_EQ(process.standard_error, "commbench sim: device code is refused: ptx:7: nonsense\n");
}

TEST(ShimCode, TheDriverApiWorksInTheContextThatItMakesCurrent) {
  FakeDaemon daemon;
  daemon.set_module_table(one_kernel());
  CompletedProcess process = daemon.run("driver");
  EXPECT_EQ(process.standard_output,
            "before_init 3\ninit 0\ncount 0\ndevices 2\nno_context 201\nretain 0\nset 0\nget 0\n"
            "same 1\nruntime_device 1\nalloc 0\nmemset 0\nfree 0\nbad_context 201\nload 0\n"
            "function 0\nno_function 500\nfunction 0\nlaunch 0\nbad_grid 1\nattribute 0\n"
            "threads 1024\nunload 0\nentry 0\nalloc 0\nno_entry 0\nstatus 1\nrefused 801\n"
            "name 0\nCUDA_ERROR_NOT_SUPPORTED\n");
  EXPECT_EQ(process.standard_error, "commbench sim: cuMemMapArrayAsync is not supported\n");
  auto allocations = daemon.requests(Op::kMalloc);
  ASSERT_EQ(allocations.size(), 2u);
  EXPECT_EQ(allocations[0].args[1], 1u);
  EXPECT_EQ(daemon.images().substr(0, 4), "\x50\xED\x55\xBA");
}

}  // namespace
}  // namespace cb::sim
