#include "search/llm/provider.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <filesystem>

#include "base/error.h"
#include "search/llm/cassette.h"
#include "search/llm/http.h"
#include "search/llm/local_clients.h"

namespace cb::llm {
namespace {

using Kind = ModelName::Kind;
using Wire = ModelName::Wire;

struct Provider {
  const char* prefix;
  Wire wire;
  const char* base_url;
  const char* variable;  ///< start of the names of its environment variables
  bool needs_key;
};
constexpr Provider kProviders[] = {
    {"openai", Wire::kOfficialChat, "https://api.openai.com/v1", "OPENAI", true},
    {"openai-responses", Wire::kResponses, "https://api.openai.com/v1", "OPENAI", true},
    {"anthropic", Wire::kMessages, "https://api.anthropic.com", "ANTHROPIC", true},
    {"gemini", Wire::kChat, "https://generativelanguage.googleapis.com/v1beta/openai", "GEMINI",
     true},
    {"ollama", Wire::kChat, "http://localhost:11434/v1", "OLLAMA", false},
    {"local", Wire::kChat, "http://localhost:8000/v1", "LOCAL", false},
};

std::string variable(const std::string& name) {
  const char* value = std::getenv(name.c_str());
  return value == nullptr ? "" : value;
}

std::string without_last_slash(std::string url) {
  while (!url.empty() && url.back() == '/') url.pop_back();
  return url;
}

std::string upper(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) {
    return std::isalnum(c) != 0 ? static_cast<char>(std::toupper(c)) : '_';
  });
  return text;
}

Error unknown(const std::string& text) {
  return Error(ErrorCode::kUsage,
               fmt::format("\"{}\" is no model: openai/NAME, openai-responses/NAME, "
                           "anthropic/NAME, gemini/NAME, ollama/NAME, local/NAME, "
                           "openai-api/SERVICE/NAME, cmd:COMMAND, file:FOLDER or cassette:FOLDER",
                           text));
}

std::optional<ModelName> parse_local(const std::string& text) {
  constexpr std::pair<const char*, Kind> kForms[] = {
      {"cmd:", Kind::kCommand}, {"file:", Kind::kFolder}, {"cassette:", Kind::kCassette}};
  for (const auto& [prefix, kind] : kForms) {
    if (text.rfind(prefix, 0) != 0) continue;
    ModelName name{.kind = kind, .text = text, .model = text.substr(std::string(prefix).size())};
    if (name.model.empty()) throw unknown(text);
    return name;
  }
  return std::nullopt;
}

ModelName parse_service(const std::string& text, const std::string& rest) {
  size_t slash = rest.find('/');
  if (slash == std::string::npos || slash == 0 || slash + 1 == rest.size()) throw unknown(text);
  std::string service = upper(rest.substr(0, slash));
  ModelName name{.text = text, .model = rest.substr(slash + 1)};
  name.base_url = without_last_slash(variable(service + "_BASE_URL"));
  name.key_variable = service + "_API_KEY";
  if (name.base_url.empty()) {
    throw Error(ErrorCode::kUsage, fmt::format("{}: {}_BASE_URL is not set", text, service));
  }
  return name;
}

std::unique_ptr<Protocol> protocol_of(const ModelName& name) {
  Endpoint endpoint{name.base_url, name.model, variable(name.key_variable)};
  if (endpoint.key.empty() && name.needs_key) {
    throw Error(ErrorCode::kUsage, fmt::format("{}: {} is not set", name.text, name.key_variable));
  }
  switch (name.wire) {
    case Wire::kResponses:
      return openai_responses(std::move(endpoint));
    case Wire::kMessages:
      return anthropic_messages(std::move(endpoint));
    case Wire::kOfficialChat:
      return openai_chat(std::move(endpoint), true);
    case Wire::kChat:
      break;
  }
  return openai_chat(std::move(endpoint), false);
}

std::shared_ptr<Client> connect_one(const ModelName& name, const ConnectOptions& options,
                                    std::shared_ptr<Clock> clock) {
  switch (name.kind) {
    case Kind::kCommand:
      return command_client(name.model, options.limits);
    case Kind::kFolder:
      return file_client(name.model, options.limits, std::move(clock));
    case Kind::kCassette:
      if (!std::filesystem::is_directory(name.model)) {
        throw Error(ErrorCode::kUsage, fmt::format("{}: no such folder", name.text));
      }
      return cassette_client(std::make_shared<Cassette>(name.model),
                             options.strict ? CassetteMode::kStrict : CassetteMode::kReplay,
                             nullptr);
    case Kind::kHttp:
      break;
  }
  return patient_client(http_client(protocol_of(name), options.limits), options.patience,
                        std::move(clock));
}

}  // namespace

std::string ModelName::record_name() const {
  if (kind != Kind::kCassette) return text;
  return "scripted/" + std::filesystem::path(without_last_slash(model)).filename().string();
}

ModelName parse_model_name(const std::string& text) {
  if (auto local = parse_local(text)) return *std::move(local);
  size_t slash = text.find('/');
  if (slash == std::string::npos || slash + 1 == text.size()) throw unknown(text);
  const std::string prefix = text.substr(0, slash);
  const std::string rest = text.substr(slash + 1);
  if (prefix == "openai-api") return parse_service(text, rest);
  for (const Provider& provider : kProviders) {
    if (prefix != provider.prefix) continue;
    ModelName name{.wire = provider.wire, .text = text, .model = rest};
    name.base_url = without_last_slash(variable(std::string(provider.variable) + "_BASE_URL"));
    name.needs_key = provider.needs_key;
    name.key_variable = std::string(provider.variable) + "_API_KEY";
    if (name.base_url.empty()) name.base_url = provider.base_url;
    return name;
  }
  throw unknown(text);
}

std::shared_ptr<Client> connect(const ModelName& name, const ConnectOptions& options,
                                std::shared_ptr<Clock> clock) {
  std::shared_ptr<Client> client = connect_one(name, options, std::move(clock));
  if (options.record_folder.empty()) return client;
  return cassette_client(std::make_shared<Cassette>(options.record_folder), CassetteMode::kRecord,
                         std::move(client));
}

}  // namespace cb::llm
