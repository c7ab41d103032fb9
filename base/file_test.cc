#include "base/file.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace cb {
namespace {

TEST(FileTest, WriteThenRead) {
  TempDir folder("cb-test-");
  std::string path = folder.path() + "/a";
  write_file(path, "one");
  write_file(path, "two");
  EXPECT_EQ(*read_file(path), "two");
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder.path()), {}), 1);
}

TEST(FileTest, ALimitIsAnErrorThatSaysSo) {
  TempDir folder("cb-test-");
  std::string path = folder.path() + "/a";
  write_file(path, "12345");
  Result<std::string> content = read_file(path, 4);
  ASSERT_FALSE(content);
  EXPECT_NE(content.error().message().find("larger than the 4 bytes"), std::string::npos);
}

TEST(DurableLogTest, ATornLastLineIsIgnoredAndCutOff) {
  TempDir folder("cb-test-");
  std::string path = folder.path() + "/records.jsonl";
  DurableLog(path).append("first");
  std::ofstream(path, std::ios::app) << "torn";
  EXPECT_EQ(*read_lines(path), std::vector<std::string>{"first"});
  DurableLog(path).append("second");
  EXPECT_EQ(*read_lines(path), (std::vector<std::string>{"first", "second"}));
}

TEST(TempDirTest, RemovesItsContent) {
  std::string path;
  {
    TempDir folder("cb-test-");
    path = folder.path();
    write_file(path + "/a", "x");
  }
  EXPECT_FALSE(std::filesystem::exists(path));
}

}  // namespace
}  // namespace cb
