#include "base/yaml.h"

#include <gtest/gtest.h>

#include <functional>

namespace cb {
namespace {

std::string error_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& e) {
    return e.what();
  }
  return "no error";
}

TEST(YamlTest, ReadsNestedValues) {
  Yaml root = Yaml::load_text("a: {b: [1, 4K], c: true}\nd: x\n", "t.yaml");
  EXPECT_EQ(root.at("a").at("b").integers(), (std::vector<int64_t>{1, 4096}));
  EXPECT_TRUE(root.at("a").at("c").boolean());
  EXPECT_EQ(root.at("d").text(), "x");
  EXPECT_FALSE(root.has("e"));
  root.finish();
}

TEST(YamlTest, ErrorsNameFileLineAndPath) {
  Yaml root = Yaml::load_text("cases:\n  - dtype: f32\n  - dtype: fp9\n", "t.yaml");
  EXPECT_EQ(error_of([&] {
              root.at("cases").items()[1].at("dtype").one_of({"f32", "f16"});
            }),
            "t.yaml:3: cases[1].dtype: unknown \"fp9\" (known: f32, f16)");
  EXPECT_EQ(error_of([&] { root.at("cases").items()[0].at("bytes"); }),
            "t.yaml:2: cases[0]: missing key \"bytes\"");
  EXPECT_EQ(error_of([&] { root.at("cases").text(); }), "t.yaml:2: cases: expected a single value");
}

TEST(YamlTest, AnUnreadKeyIsAnError) {
  Yaml root = Yaml::load_text("id: x\ntimout: 3\n", "t.yaml");
  root.at("id").text();
  root.find("timeout");
  EXPECT_EQ(error_of([&] { root.finish(); }),
            "t.yaml:2: timout: unknown key (known here: id, timeout)");
}

TEST(YamlTest, ARepeatedKeyIsAnError) {
  EXPECT_EQ(error_of([] { Yaml::load_text("a: 1\na: 2\n", "t.yaml"); }),
            "t.yaml:2: a: key given twice");
}

TEST(YamlTest, BrokenSyntaxNamesTheLine) {
  EXPECT_EQ(error_of([] { Yaml::load_text("a: [1\nb: 2\n", "t.yaml"); }).substr(0, 7), "t.yaml:");
}

TEST(YamlTest, NumbersAreChecked) {
  Yaml root = Yaml::load_text("n: many\nm: 5\n", "t.yaml");
  EXPECT_EQ(error_of([&] { root.at("n").integer(); }),
            "t.yaml:1: n: \"many\" is not a whole number (64, 4K and 16M are)");
  EXPECT_EQ(error_of([&] { root.at("m").integer(0, 4); }), "t.yaml:2: m: 5 is outside 0 to 4");
}

}  // namespace
}  // namespace cb
