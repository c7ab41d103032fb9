#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "search/llm/client.h"
#include "search/llm/patient_client.h"
#include "search/llm/protocol.h"

namespace cb::llm {

/// A model by name, and how to reach it:
///   openai/NAME, openai-responses/NAME, anthropic/NAME, gemini/NAME
///   ollama/NAME, local/NAME            a server on this machine (LOCAL_BASE_URL; vLLM, SGLang,
///                                      llama.cpp)
///   openai-api/SERVICE/NAME            any compatible service: SERVICE_BASE_URL, SERVICE_API_KEY
///   cmd:COMMAND, file:FOLDER, cassette:FOLDER
struct ModelName {
  enum class Kind { kHttp, kCommand, kFolder, kCassette };
  enum class Wire { kChat, kOfficialChat, kResponses, kMessages };
  Kind kind = Kind::kHttp;
  Wire wire = Wire::kChat;
  std::string text;      ///< as given
  std::string model;     ///< the provider's name of it; command or folder
  std::string base_url;  ///< with what the environment says
  std::string key_variable;
  bool needs_key = false;

  /// How records call it: the text, but "scripted/NAME" for a cassette, which is nobody's answer.
  std::string record_name() const;
};

/// Reads *_BASE_URL from the environment. Throws Error(kUsage) that lists the forms.
ModelName parse_model_name(const std::string& text);

struct ConnectOptions {
  Limits limits;
  PatienceOptions patience;
  std::string record_folder;  ///< not empty: a cassette to record into
  bool strict = false;        ///< of a cassette: CassetteMode::kStrict
};

/// The client of a model, with patience where there is a network. The key is read from the
/// environment here and kept in memory only. Throws Error(kUsage) when it is missing.
std::shared_ptr<Client> connect(const ModelName& name, const ConnectOptions& options,
                                std::shared_ptr<Clock> clock = Clock::system());

}  // namespace cb::llm
