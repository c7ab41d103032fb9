#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace cb::llm {

/// How an answer of the mock server goes wrong.
enum class Fault {
  kNone,
  kRateLimit,     ///< 429 with Retry-After
  kQuota,         ///< 429 insufficient_quota
  kServerError,   ///< 500
  kOverloaded,    ///< 529, as Anthropic answers
  kUnauthorized,  ///< 401
  kTruncated,     ///< the connection breaks in the middle of the answer
  kMalformed,     ///< an event that is no JSON
  kHuge,          ///< an answer that goes on for `bytes`
  kRefusal,       ///< the model declines
  kSilent,        ///< headers, then nothing for delay_ms, then the end
};

/// One answer. A request takes the first of the script that fits it and is not used up.
struct ScriptedReply {
  std::string text;
  std::string finish = "stop";    ///< stop or length
  std::string match;              ///< only for prompts that contain it
  std::optional<uint64_t> times;  ///< nothing: for ever
  Fault fault = Fault::kNone;
  std::optional<double> retry_after_s;
  uint64_t chunk_bytes = 24;           ///< of text in one event
  uint64_t delay_ms = 0;               ///< before each event
  uint64_t bytes = uint64_t{1} << 26;  ///< kHuge
};

/// What a mock server answers, and which keys it takes.
class Script {
 public:
  /// YAML: `key` (optional) and `replies`, a list of mappings with the fields of ScriptedReply;
  /// `file` in place of `text` is relative to the script. Throws Error(kConfig) with file and line.
  static Script load_file(const std::string& path);
  static Script load_text(const std::string& text, const std::string& name);

  const std::string& key() const { return key_; }
  const std::vector<ScriptedReply>& replies() const { return replies_; }

 private:
  std::string key_;  ///< empty: any
  std::vector<ScriptedReply> replies_;
};

/// The script while a server plays it. Thread-safe.
class ScriptPlayer {
 public:
  explicit ScriptPlayer(Script script);

  /// The answer to a prompt; nothing when the script has none left for it.
  std::optional<ScriptedReply> next(const std::string& prompt);
  const std::string& key() const { return script_.key(); }
  /// Tokens at the start of the prompt that an earlier prompt started with too.
  uint64_t cached_tokens(const std::string& prompt);
  uint64_t served() const;

 private:
  const Script script_;
  mutable std::mutex mutex_;
  std::vector<uint64_t> used_;
  std::vector<std::string> prompts_;
  uint64_t served_ = 0;
};

}  // namespace cb::llm
