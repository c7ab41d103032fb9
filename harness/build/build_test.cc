#include "harness/build/build.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include "base/error.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/process.h"
#include "harness/build/cache.h"
#include "harness/build/compile.h"
#include "harness/build/library_check.h"

namespace cb::build {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* kEntryPoints =
    "extern \"C\" int cb_setup() { return 0; }\n"
    "extern \"C\" int cb_run() { return 0; }\n"
    "extern \"C\" void cb_teardown() {}\n";

BuildRequest host_only(const std::string& text = "", const std::string& name = "mine.cc") {
  BuildRequest request;
  request.sources = {{name, text + kEntryPoints}};
  return request;
}

// Not a matcher: a failure must not print the whole library.
bool contains(const std::string& library, const std::string& text) {
  return library.find(text) != std::string::npos;
}

BuildTools tools_without_cache() {
  BuildTools tools = BuildTools::of_this_machine();
  tools.cache_folder.clear();
  return tools;
}

TEST(BuildTest, ErrorsCarryTheCandidatesFileNames) {
  for (const char* name : {"mine.cc", "sub/folder/mine.cc", "my kernel.cc", "-fplugin=x.cc",
                           "@file.cc", "new\nline.cc", ".hidden.cc"}) {
    BuildResult result = build_candidate(host_only("syntax error\n", name), tools_without_cache());
    EXPECT_EQ(result.outcome, BuildOutcome::kCompileError) << name;
    EXPECT_THAT(result.log, HasSubstr(std::string(name) + ":1:")) << name;
    EXPECT_THAT(result.log, Not(HasSubstr("/box/"))) << name;
  }
}

TEST(BuildTest, DeviceCodeIsKnownByItsHash) {
  BuildRequest request = host_only();
  request.sources.push_back({"one.cu", "#include \"two.cuh\"\n__global__ void one() { two(); }\n"});
  request.sources.push_back({"three.cu", "__global__ void three(int* p) { *p = 3; }\n"});
  request.sources.push_back({"two.cuh", "__device__ inline void two() {}\n"});
  BuildResult result = build_candidate(request, tools_without_cache());
  ASSERT_EQ(result.outcome, BuildOutcome::kOk) << result.reason << result.log;
  EXPECT_EQ(result.fatbin_sha256.size(), 2u);
  EXPECT_TRUE(contains(result.library, "_Z5threePi"));
}

TEST(BuildTest, TheSameSourcesGiveTheSameBytes) {
  BuildRequest request = host_only();
  request.sources.push_back({"three.cu", "__global__ void three(int* p) { *p = 3; }\n"});
  BuildResult first = build_candidate(request, tools_without_cache());
  BuildResult second = build_candidate(request, tools_without_cache());
  EXPECT_EQ(first.fatbin_sha256, second.fatbin_sha256);
  EXPECT_TRUE(first.library == second.library);
}

TEST(BuildTest, LineInformationNamesTheCandidatesFile) {
  BuildRequest request = host_only();
  request.sources.push_back({"ring.cu", "__global__ void ring(int* p) { *p = 3; }\n"});
  std::vector<PlacedSource> placed = place_sources(request.sources);
  Compilation done = compile(request, placed, tools_without_cache());
  EXPECT_THAT(done.products["ring.ptx"], HasSubstr("\"/box/src/ring.cu\"")) << done.log;
}

TEST(BuildTest, OnlyTheThreeEntryPointsAreExported) {
  BuildRequest request = host_only("extern \"C\" int clock_gettime() { return 0; }\n");
  BuildResult result = build_candidate(request, tools_without_cache());
  ASSERT_EQ(result.outcome, BuildOutcome::kOk) << result.reason << result.log;
  Result<LibraryFacts> facts = read_library(result.library);
  ASSERT_TRUE(facts);
  EXPECT_THAT(facts->exported,
              ::testing::UnorderedElementsAre("cb_setup", "cb_run", "cb_teardown"));
}

TEST(BuildTest, EveryLibraryOfACardCanBeLinked) {
  BuildRequest request = host_only(
      "#include <cuda.h>\n#include <infiniband/verbs.h>\n#include <nccl.h>\n"
      "#include <nvrtc.h>\n"
      "void* used[] = {(void*)&cuInit, (void*)&ncclAllReduce, (void*)&ibv_open_device, "
      "(void*)&nvrtcVersion};\n");
  request.links = {"cuda", "nccl", "ibverbs", "nvrtc"};
  BuildResult result = build_candidate(request, tools_without_cache());
  ASSERT_EQ(result.outcome, BuildOutcome::kOk) << result.reason << result.log;
  for (const char* needed :
       {"libcudart.so.13", "libcuda.so.1", "libnccl.so.2", "libibverbs.so.1", "libnvrtc.so.13"}) {
    EXPECT_TRUE(contains(result.library, needed)) << needed;
  }
}

TEST(BuildTest, UnusableSourcesAreCompileErrorsWithAReason) {
  auto reason_for = [](std::vector<SourceFile> sources) {
    BuildRequest request;
    request.sources = std::move(sources);
    BuildResult result = build_candidate(request, tools_without_cache());
    EXPECT_EQ(result.outcome, BuildOutcome::kCompileError);
    return result.reason;
  };
  EXPECT_EQ(reason_for({}), "there is no .cu or .cc file to compile");
  EXPECT_EQ(reason_for({{"a.h", ""}}), "there is no .cu or .cc file to compile");
  EXPECT_THAT(reason_for({{"a.cu", ""}, {"task.h.gch", ""}}), HasSubstr("task.h.gch: only .cu"));
  EXPECT_THAT(reason_for({{"a.cu", ""}, {"a.cu", ""}}), HasSubstr("given twice"));
  EXPECT_THAT(reason_for({{"a.cu", ""}, {"b/a.cc", ""}}), HasSubstr("b/a.cc: another compiled"));
  EXPECT_THAT(reason_for({{"a.cu", std::string(5 << 20, ' ')}}), HasSubstr("bytes of source"));
}

TEST(BuildTest, UnknownLibrariesAndTargetsAreTheCallersFault) {
  BuildRequest request = host_only();
  request.links = {"mpi"};
  EXPECT_THROW(build_candidate(request, tools_without_cache()), Error);
  request = host_only();
  request.target = "compute_90a -rdc=true";
  EXPECT_THROW(build_candidate(request, tools_without_cache()), Error);
}

TEST(BuildTest, MissingToolsAreNotTheCandidatesFault) {
  BuildTools tools = tools_without_cache();
  tools.cuda_folder = "/no/cuda";
  EXPECT_THROW(build_candidate(host_only(), tools), Error);
}

TEST(BuildTest, TimeoutsAreNotKept) {
  TempDir cache("build-test-");
  BuildTools tools = tools_without_cache();
  tools.cache_folder = cache.path() + "/build";
  tools.timeout_ms = 1;
  EXPECT_EQ(build_candidate(host_only(), tools).outcome, BuildOutcome::kTimeout);
  tools.timeout_ms = 60'000;
  BuildResult result = build_candidate(host_only(), tools);
  EXPECT_EQ(result.outcome, BuildOutcome::kOk) << result.log;
  EXPECT_FALSE(result.cached);
}

struct BuildCacheTest : ::testing::Test {
  BuildCacheTest() { tools.cache_folder = folder.path() + "/build"; }

  BuildResult build(const BuildRequest& request) { return build_candidate(request, tools); }

  TempDir folder{"build-cache-test-"};
  BuildTools tools = BuildTools::of_this_machine();
};

TEST_F(BuildCacheTest, TheSameSourcesAreCompiledOnce) {
  BuildResult first = build(host_only());
  BuildResult second = build(host_only());
  EXPECT_FALSE(first.cached);
  EXPECT_TRUE(second.cached);
  EXPECT_TRUE(first.library == second.library);
  EXPECT_EQ(fs::status(tools.cache_folder).permissions(), fs::perms::owner_all);
}

TEST_F(BuildCacheTest, FailuresAreKeptWithTheirLog) {
  BuildResult first = build(host_only("syntax error\n"));
  BuildResult second = build(host_only("syntax error\n"));
  EXPECT_TRUE(second.cached);
  EXPECT_EQ(second.outcome, BuildOutcome::kCompileError);
  EXPECT_EQ(first.log, second.log);
  EXPECT_EQ(first.reason, second.reason);
}

TEST_F(BuildCacheTest, EverythingThatMattersChangesTheKey) {
  std::string plain = cache_key(host_only(), tools);
  EXPECT_EQ(cache_key(host_only(), tools), plain);
  EXPECT_NE(cache_key(host_only(" "), tools), plain);
  EXPECT_NE(cache_key(host_only("", "other.cc"), tools), plain);
  BuildRequest request = host_only();
  request.links = {"cuda"};
  EXPECT_NE(cache_key(request, tools), plain);
  request = host_only();
  request.target = "compute_80";
  EXPECT_NE(cache_key(request, tools), plain);
  request = host_only();
  request.forbidden_symbols = {"nccl*"};
  EXPECT_NE(cache_key(request, tools), plain);
  TempDir headers("build-headers-");
  std::ofstream(headers.path() + "/new.h") << "x";
  BuildTools other = tools;
  other.include_folder = headers.path();
  EXPECT_NE(cache_key(host_only(), other), plain);
}

TEST_F(BuildCacheTest, DamagedEntriesAreBuiltAnew) {
  build(host_only());
  for (const char* extension : {".so", ".json"}) {
    for (const auto& entry : fs::directory_iterator(tools.cache_folder)) {
      if (entry.path().extension() != extension) continue;
      std::string content = value_or_throw(read_file(entry.path().string()));
      content[content.size() / 2] ^= 1;
      std::ofstream(entry.path(), std::ios::binary) << content;
    }
    BuildResult rebuilt = build(host_only());
    EXPECT_FALSE(rebuilt.cached) << extension;
    EXPECT_EQ(rebuilt.outcome, BuildOutcome::kOk) << extension;
    EXPECT_TRUE(build(host_only()).cached) << extension;
  }
}

TEST_F(BuildCacheTest, ManyMayBuildTheSameAtOnce) {
  std::vector<BuildResult> results(4);
  std::vector<std::thread> threads;
  for (unsigned index = 0; index < results.size(); ++index) {
    threads.emplace_back([this, index, &results] {
      BuildRequest request = host_only();
      request.box_slot = index;
      results[index] = build(request);
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const BuildResult& result : results) EXPECT_EQ(result.outcome, BuildOutcome::kOk);
  EXPECT_TRUE(build(host_only()).cached);
  for (const auto& entry : fs::directory_iterator(tools.cache_folder)) {
    EXPECT_TRUE(entry.path().extension() == ".so" || entry.path().extension() == ".json");
  }
}

// What a hijacked compiler could leave instead of a library. Runs the jail's own program outside.
TEST(BoxBuildTest, LinksAndPipesAreNotFollowed) {
  for (const char* command : {"ln -s /etc/passwd", "mkfifo", "mkdir"}) {
    TempDir folder("box-build-test-");
    UniqueFd products(::memfd_create("products", MFD_CLOEXEC));
    ProcessOptions options;
    std::string out = folder.path() + "/out";
    options.argv = {COMMBENCH_BOX_BUILD,
                    "3",
                    out,
                    ".so",
                    "/bin/sh",
                    "-c",
                    std::string(command) + " " + out + "/out.so"};
    options.env = {"PATH=/usr/bin:/bin"};
    options.fds = {{products.get(), 3}};
    CompletedProcess done = run_process(options, 10'000);
    EXPECT_EQ(done.status.code, 126) << command << done.standard_error;
    EXPECT_EQ(::lseek(products.get(), 0, SEEK_END), 0) << command;
  }
}

}  // namespace
}  // namespace cb::build
