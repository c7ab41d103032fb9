#include "search/llm/provider.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "base/error.h"
#include "base/file.h"

namespace cb::llm {
namespace {

/// Sets a variable for a test.
class Variable {
 public:
  Variable(const char* name, const char* value) : name_(name) { ::setenv(name, value, 1); }
  ~Variable() { ::unsetenv(name_); }

 private:
  const char* name_;
};

TEST(ModelName, NamesAProviderAndAModel) {
  ModelName name = parse_model_name("anthropic/some-model");
  EXPECT_EQ(name.wire, ModelName::Wire::kMessages);
  EXPECT_EQ(name.model, "some-model");
  EXPECT_EQ(name.key_variable, "ANTHROPIC_API_KEY");
  EXPECT_EQ(parse_model_name("local/org/model").model, "org/model");
}

TEST(ModelName, TakesTheAddressFromTheEnvironment) {
  Variable url("OPENAI_BASE_URL", "http://127.0.0.1:1/v1/");
  EXPECT_EQ(parse_model_name("openai/m").base_url, "http://127.0.0.1:1/v1");
  EXPECT_THROW(parse_model_name("openai-api/my-service/m"), Error);
  Variable service("MY_SERVICE_BASE_URL", "https://s/v1");
  ModelName name = parse_model_name("openai-api/my-service/a/b");
  EXPECT_EQ(name.model, "a/b");
  EXPECT_EQ(name.base_url, "https://s/v1");
  EXPECT_EQ(name.key_variable, "MY_SERVICE_API_KEY");
}

TEST(ModelName, NeverShowsACassetteAsAModel) {
  EXPECT_EQ(parse_model_name("cassette:examples/cassettes/demo/").record_name(), "scripted/demo");
  EXPECT_EQ(parse_model_name("cmd:./agent").record_name(), "cmd:./agent");
}

TEST(ModelName, RefusesWhatItDoesNotKnow) {
  for (const char* text : {"", "gpt", "openai/", "nobody/m", "cmd:", "cassette:", "openai-api/x"}) {
    EXPECT_THROW(parse_model_name(text), Error) << text;
  }
}

TEST(Connect, SaysWhichKeyIsMissing) {
  ::unsetenv("ANTHROPIC_API_KEY");
  try {
    connect(parse_model_name("anthropic/m"), {});
    FAIL() << "connected";
  } catch (const Error& error) {
    EXPECT_NE(error.message().find("ANTHROPIC_API_KEY"), std::string::npos);
  }
  EXPECT_THROW(connect(parse_model_name("cassette:/no/such/folder"), {}), Error);
}

}  // namespace
}  // namespace cb::llm
