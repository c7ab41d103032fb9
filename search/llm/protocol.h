#pragma once

// The wire formats of providers: what a request looks like, and how a reply is put together from
// its events. Nothing here touches the network.

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "search/llm/completion.h"
#include "search/llm/sse.h"

namespace cb::llm {

struct HttpCall {
  std::string url;
  std::vector<std::pair<std::string, std::string>> headers;  ///< may hold the key
  std::string body;
};

/// Puts one reply together from the events of its stream.
class ReplyReader {
 public:
  virtual ~ReplyReader() = default;
  virtual void take(const EventStream::Event& event) = 0;
  /// The answer so far.
  const std::string& text() const { return reply_.text; }
  /// After the end of the stream: the reply, or why it is none.
  Completion finish();
  /// After we stopped reading.
  Reply cut_off();

 protected:
  /// Parses the data of an event; nothing, and a failure noted, when it is no object.
  std::optional<Json> parse(const EventStream::Event& event);
  void fail(FailureKind kind, const std::string& message);

  Reply reply_;
  bool is_complete_ = false;  ///< the stream said that it ends here
  std::optional<Failure> failure_;
};

class Protocol {
 public:
  virtual ~Protocol() = default;
  virtual HttpCall call(const Request& request) const = 0;
  virtual std::unique_ptr<ReplyReader> reader() const = 0;
};

struct Endpoint {
  std::string base_url;  ///< without a slash at the end, e.g. https://api.openai.com/v1
  std::string model;
  std::string key;  ///< empty: none is sent
};

/// POST BASE/chat/completions: OpenAI, Gemini's compatible endpoint, vLLM, SGLang, llama.cpp,
/// Ollama. `official`: limits are asked for as OpenAI's newer models want it.
std::unique_ptr<Protocol> openai_chat(Endpoint endpoint, bool official);
/// POST BASE/responses.
std::unique_ptr<Protocol> openai_responses(Endpoint endpoint);
/// POST BASE/v1/messages. The system text is marked for caching.
std::unique_ptr<Protocol> anthropic_messages(Endpoint endpoint);

/// What an HTTP answer other than 200 means. `body` is the provider's; its message is quoted.
Failure failure_of(int status, const std::string& body, std::optional<double> retry_after_s);

/// Retry-After: seconds, or a date of which the remaining time from `now_unix` is taken.
std::optional<double> parse_retry_after(const std::string& value, double now_unix);

}  // namespace cb::llm
