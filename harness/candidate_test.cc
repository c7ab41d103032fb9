#include "harness/candidate.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "base/file.h"

namespace cb::harness {
namespace {

namespace fs = std::filesystem;

TEST(CandidateTest, AFileIsItsOwnSource) {
  TempDir folder("candidate");
  write_file(folder.path() + "/t.x.cu", "code");
  Candidate candidate = Candidate::load(folder.path() + "/t.x.cu");
  ASSERT_EQ(candidate.sources.size(), 1u);
  EXPECT_EQ(candidate.sources[0].name, "t.x.cu");
  EXPECT_EQ(candidate.sources[0].content, "code");
}

TEST(CandidateTest, AFolderBringsItsSourcesAndHeaders) {
  TempDir folder("candidate");
  fs::create_directories(folder.path() + "/sub");
  write_file(folder.path() + "/main.cu", "a");
  write_file(folder.path() + "/sub/helper.cuh", "b");
  write_file(folder.path() + "/notes.txt", "c");
  Candidate candidate = Candidate::load(folder.path());
  ASSERT_EQ(candidate.sources.size(), 2u);
  EXPECT_EQ(candidate.sources[1].name, "sub/helper.cuh");
}

TEST(CandidateTest, TheHashCoversNamesAndContents) {
  TempDir folder("candidate");
  write_file(folder.path() + "/a.cu", "ab");
  std::string first = Candidate::load(folder.path()).sha256;
  write_file(folder.path() + "/a.cu", "ac");
  EXPECT_NE(Candidate::load(folder.path()).sha256, first);
}

TEST(CandidateTest, NothingToCompileIsTheUsersError) {
  TempDir folder("candidate");
  write_file(folder.path() + "/a.h", "");
  EXPECT_THROW(Candidate::load(folder.path()), Error);
  EXPECT_THROW(Candidate::load(folder.path() + "/none.cu"), Error);
}

TEST(CandidateTest, FilesAreFoundWithTheirTasks) {
  TempDir folder("candidate");
  fs::create_directories(folder.path() + "/sub");
  write_file(folder.path() + "/ar.cu", "");
  write_file(folder.path() + "/sub/p2p.fast.fixed.cu", "");
  write_file(folder.path() + "/expected.yaml", "");
  std::vector<CandidateFile> found = find_candidates(folder.path());
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].task, "ar");
  EXPECT_EQ(found[1].name, "sub/p2p.fast.fixed.cu");
  EXPECT_EQ(found[1].task, "p2p");
}

}  // namespace
}  // namespace cb::harness
