#include "results/run_directory.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace cb::results {
namespace {

Json manifest() {
  Json json;
  json["command"] = "score";
  return json;
}

TEST(RunDirectoryTest, WritesTheManifestFirst) {
  TempDir folder("run-directory");
  RunDirectory run = RunDirectory::create(folder.path() + "/runs", manifest());
  Result<Json> read = read_manifest(run.path());
  ASSERT_TRUE(read);
  EXPECT_EQ(read->at("command"), "score");
  EXPECT_EQ(read->at("id"), run.id());
  EXPECT_TRUE(read_records(run.path())->empty());
}

TEST(RunDirectoryTest, ManifestsGrow) {
  TempDir folder("run-directory");
  RunDirectory run = RunDirectory::create(folder.path(), manifest());
  Json more;
  more["run_key"] = "00";
  run.extend_manifest(more);
  EXPECT_EQ(read_manifest(run.path())->at("run_key"), "00");
  EXPECT_EQ(read_manifest(run.path())->at("command"), "score");
}

TEST(RunDirectoryTest, RunsOfOneSecondHaveFoldersOfTheirOwn) {
  TempDir folder("run-directory");
  RunDirectory first = RunDirectory::create(folder.path(), manifest());
  RunDirectory second = RunDirectory::create(folder.path(), manifest());
  EXPECT_NE(first.path(), second.path());
}

TEST(RunDirectoryTest, ATornLastLineIsIgnored) {
  TempDir folder("run-directory");
  RunDirectory run = RunDirectory::create(folder.path(), manifest());
  Record record;
  record.task = "first";
  run.append(record);
  std::ofstream(run.path() + "/records.jsonl", std::ios::app) << "{\"schema\": 1, \"ta";
  Result<std::vector<Record>> records = read_records(run.path());
  ASSERT_TRUE(records) << records.error().message();
  ASSERT_EQ(records->size(), 1u);
  EXPECT_EQ(records->front().task, "first");
}

TEST(RunDirectoryTest, AnyOtherBadLineIsAnErrorWithItsNumber) {
  TempDir folder("run-directory");
  RunDirectory run = RunDirectory::create(folder.path(), manifest());
  run.append(Record{});
  std::ofstream(run.path() + "/records.jsonl", std::ios::app) << "{}\n";
  Result<std::vector<Record>> records = read_records(run.path());
  ASSERT_FALSE(records);
  EXPECT_NE(records.error().message().find("records.jsonl:2"), std::string::npos);
}

TEST(RunDirectoryTest, GoesOnWhereItStopped) {
  TempDir folder("run-directory");
  std::string path;
  {
    RunDirectory run = RunDirectory::create(folder.path(), manifest());
    path = run.path();
    run.append(Record{});
  }
  std::ofstream(path + "/records.jsonl", std::ios::app) << "{\"schema\": 2, \"ta";
  RunDirectory run = RunDirectory::open(path);
  run.append(Record{});
  EXPECT_EQ(read_records(path)->size(), 2u);
  EXPECT_EQ(run.manifest().at("id").get<std::string>(), run.id());
  EXPECT_THROW(RunDirectory::open(folder.path()), Error);
}

TEST(RunDirectoryTest, AttemptsHaveFolders) {
  TempDir folder("run-directory");
  RunDirectory run = RunDirectory::create(folder.path(), manifest());
  std::string path = run.attempt_folder("a2a-direct", 2);
  EXPECT_TRUE(std::filesystem::is_directory(path));
  EXPECT_EQ(path, run.path() + "/attempts/a2a-direct/2");
}

}  // namespace
}  // namespace cb::results
