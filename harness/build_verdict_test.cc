#include "harness/build_verdict.h"

#include <gtest/gtest.h>

namespace cb::harness {
namespace {

using build::BuildOutcome;
using results::Verdict;

build::BuildResult failed(BuildOutcome outcome, const std::string& reason,
                          const std::string& log = "") {
  build::BuildResult built;
  built.outcome = outcome;
  built.reason = reason;
  built.log = log;
  return built;
}

TEST(BuildVerdictTest, ALibraryIsNoEvidence) {
  EXPECT_FALSE(evidence_of_build(build::BuildResult{}));
}

TEST(BuildVerdictTest, CompileErrorsNameTheFirstErrorsLine) {
  auto evidence = evidence_of_build(
      failed(BuildOutcome::kCompileError, "nvcc failed (exit code 2)",
             "a.cu(12): warning #177-D: unused\na.cu(67): error: identifier \"x\" is undefined\n\n"
             "a.cu(70): error: expected a \";\"\n"));
  ASSERT_TRUE(evidence);
  EXPECT_EQ(evidence->verdict, Verdict::kCompileError);
  EXPECT_EQ(evidence->finding.file, "a.cu");
  EXPECT_EQ(evidence->finding.line, 67);
  EXPECT_EQ(evidence->finding.message, "identifier \"x\" is undefined");
}

TEST(BuildVerdictTest, HostCompilersErrorsAreUnderstood) {
  auto evidence = evidence_of_build(failed(BuildOutcome::kCompileError, "nvcc failed",
                                           "sub/b.cc:3:10: fatal error: x.h: No such file\n"));
  EXPECT_EQ(evidence->finding.file, "sub/b.cc");
  EXPECT_EQ(evidence->finding.line, 3);
}

TEST(BuildVerdictTest, ForbiddenReasonsAreWords) {
  auto include = evidence_of_build(
      failed(BuildOutcome::kForbidden, "a.cu:4: dlfcn.h may not be included: the task forbids it"));
  EXPECT_EQ(include->verdict, Verdict::kForbidden);
  EXPECT_EQ(include->reason, "include");
  EXPECT_EQ(include->finding.line, 4);
  EXPECT_EQ(evidence_of_build(
                failed(BuildOutcome::kForbidden, "the library uses dlopen, which the task forbids"))
                ->reason,
            "symbol");
}

TEST(BuildVerdictTest, LimitsOfTheCompilerAreCompileErrors) {
  build::BuildResult built = failed(BuildOutcome::kLimit, "the compiler reached its limit: memory");
  built.limit = LimitHit::kMemory;
  auto evidence = evidence_of_build(built);
  EXPECT_EQ(evidence->verdict, Verdict::kCompileError);
  EXPECT_EQ(evidence->reason, "limit_memory");
  EXPECT_EQ(evidence_of_build(failed(BuildOutcome::kTimeout, "slow"))->reason, "timeout");
}

TEST(BuildVerdictTest, HostileLogsAreOnlyText) {
  std::string log(1 << 20, 'x');
  log += "(99999999999999999999): error: \x1b[31m\n";
  auto evidence = evidence_of_build(failed(BuildOutcome::kCompileError, "nvcc failed", log));
  EXPECT_EQ(evidence->finding.line, 0);
}

}  // namespace
}  // namespace cb::harness
