#include "harness/build/source_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace cb::build {
namespace {

std::vector<std::string> directives_of(std::string_view source) {
  std::vector<std::string> found;
  for (const Directive& directive : scan_directives(source)) {
    found.push_back(std::to_string(directive.line) + " " + directive.name + " " + directive.rest);
  }
  return found;
}

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(DirectiveTest, HidingPlacesAreSeen) {
  EXPECT_THAT(directives_of("#include <a.h>\n  #  include \"b.h\" // c\n"),
              ElementsAre("1 include <a.h>", "2 include \"b.h\""));
  EXPECT_THAT(directives_of("/* x\n */ # /* y */ line 5\n"), ElementsAre("2 line 5"));
  EXPECT_THAT(directives_of("#li\\\nne 5\n%:line 6\n"), ElementsAre("1 line 5", "3 line 6"));
  EXPECT_THAT(directives_of("# 12 \"x.h\" 1\n"), ElementsAre("1 line \"x.h\" 1"));
  EXPECT_THAT(directives_of("int a = 1'000; // '\n#line 3\n"), ElementsAre("2 line 3"));
  EXPECT_THAT(directives_of("auto s = uR\"x(\")y\" #line 1 )x\";\n#line 2\n"),
              ElementsAre("2 line 2"));
  EXPECT_THAT(directives_of("#define A \"/*\"\n#line 2 // */\n"),
              ElementsAre("1 define A \"/*\"", "2 line 2"));
  EXPECT_THAT(directives_of("#error don't /*\n#line 2\n"),
              ElementsAre("1 error don't /*", "2 line 2"));
  EXPECT_THAT(directives_of("#if __has_include(</*>)\n#line 2\n#endif\n"),
              ::testing::Contains("1 line __has_include(<"));
}

TEST(DirectiveTest, TextIsNotADirective) {
  EXPECT_THAT(directives_of("// #line 1\n/* #line 2 */\nconst char* s = \"\\\n#line 3\";\n"),
              IsEmpty());
  EXPECT_THAT(directives_of("auto s = R\"(\n#line 4\n)\";\nint x = a # b;\n"), IsEmpty());
  EXPECT_THAT(directives_of("auto c = '\"';\nint y;\n"), IsEmpty());
}

TEST(DirectiveTest, UnfinishedTextEnds) {
  for (const char* source : {"/*", "\"", "R\"(", "R\"", "#", "\\", "'", "%:", "#include <"}) {
    scan_directives(source);
  }
}

TEST(InclusionTest, LineAndIncluderComeFromTheMarkers) {
  const char* text =
      "# 0 \"/box/src/a.cu\"\n"
      "# 0 \"<built-in>\"\n"
      "# 1 \"/box/cuda/include/cuda_runtime.h\" 1\n"
      "# 0 \"<command-line>\" 2\n"
      "# 1 \"/box/src/a.cu\"\n"
      "int first;\n"
      "# 1 \"/box/src/b.cuh\" 1\n"
      "\n"
      "\n"
      "# 1 \"/usr/include/stdio.h\" 1 3 4\n"
      "# 1 \"/usr/include/features.h\" 1 3 4\n"
      "# 5 \"/usr/include/stdio.h\" 2 3 4\n"
      "# 4 \"/box/src/b.cuh\" 2\n"
      "# 3 \"/box/src/a.cu\" 2\n"
      "# 1 \"/usr/include/math.h\" 1 3 4\n";
  std::vector<std::string> found;
  for (const Inclusion& inclusion : inclusions_from(text, "/box/src/")) {
    found.push_back(inclusion.includer + ":" + std::to_string(inclusion.line) + " " +
                    inclusion.header);
  }
  EXPECT_THAT(found,
              ElementsAre("/box/src/a.cu:2 /box/src/b.cuh", "/box/src/b.cuh:3 /usr/include/stdio.h",
                          "/box/src/a.cu:3 /usr/include/math.h"));
}

TEST(IncludePolicyTest, NamesAreThoseThatPeopleWrite) {
  EXPECT_EQ(header_name("/usr/include/x86_64-linux-gnu/sys/mman.h"), "sys/mman.h");
  EXPECT_EQ(header_name("/usr/include/c++/12/vector"), "vector");
  EXPECT_EQ(header_name("/usr/include/x86_64-linux-gnu/c++/12/bits/stdc++.h"), "bits/stdc++.h");
  EXPECT_EQ(header_name("/box/cuda/bin/../targets/x86_64-linux/include/cccl/cub/cub.cuh"),
            "cub/cub.cuh");
}

TEST(IncludePolicyTest, AllowsWhatCandidatesNeedAndNothingElse) {
  IncludePolicy none;
  for (const char* header :
       {"/usr/include/pthread.h", "/usr/include/x86_64-linux-gnu/sys/mman.h",
        "/usr/include/c++/12/vector", "/usr/lib/gcc/x86_64-linux-gnu/12/include/immintrin.h",
        "/box/include/commbench/task.h", "/box/src/mine.cuh",
        "/box/cuda/bin/../targets/x86_64-linux/include/cooperative_groups.h"}) {
    EXPECT_EQ(why_forbidden(header, none), "") << header;
  }
  for (const char* header :
       {"/usr/include/openssl/sha.h", "/usr/include/nlohmann/json.hpp", "/tmp/out/a.cu",
        "/box/src/../../usr/include/openssl/sha.h", "/box/cuda/../../usr/include/openssl/sha.h",
        "/box/cuda/include/nccl.h", "/usr/include/infiniband/verbs.h", "relative.h"}) {
    EXPECT_NE(why_forbidden(header, none), "") << header;
  }
  EXPECT_EQ(why_forbidden("/box/cuda/include/nccl.h", {{"nccl"}, {}}), "");
  EXPECT_EQ(why_forbidden("/usr/include/infiniband/verbs.h", {{"ibverbs"}, {}}), "");
  EXPECT_EQ(why_forbidden("/usr/include/pthread.h", {{}, {"pthread*"}}), "the task forbids it");
}

TEST(DeviceCallTest, OnlyTheForbiddenFunctionsCount) {
  EXPECT_NE(forbidden_device_call(".extern .func  (.param .b64 func_retval0) malloc\n(\n"), "");
  EXPECT_NE(forbidden_device_call("\n.extern .func free\n(\n"), "");
  EXPECT_NE(
      forbidden_device_call(".extern .func (.param .b32 r) cudaLaunchDeviceV2(.param .b64 a)"), "");
  EXPECT_EQ(forbidden_device_call(".extern .func  (.param .b32 func_retval0) vprintf\n"), "");
  EXPECT_EQ(forbidden_device_call(".func malloc_mine\n.extern .func freedom\n.extern .func"), "");
}

}  // namespace
}  // namespace cb::build
