#pragma once

// The server's side of the three protocols: requests read, replies written.

#include <string>
#include <vector>

#include "base/json.h"
#include "search/llm/mock/script.h"

namespace cb::llm {

enum class WireFormat { kChat, kResponses, kMessages };

struct MockRequest {
  std::string model;
  std::string prompt;  ///< system text and messages
  bool stream = false;
  bool wants_usage = false;  ///< in the stream of chat completions
};

/// Throws Error(kUsage) that says what the protocol misses.
MockRequest read_request(WireFormat format, const std::string& body);

struct MockUsage {
  uint64_t input = 0;
  uint64_t cached = 0;
  uint64_t output = 0;
};

/// The whole answer as one JSON object.
Json whole_reply(WireFormat format, const MockRequest& request, const ScriptedReply& reply,
                 const MockUsage& usage);
/// The answer as the bytes of server-sent events, one element for each.
std::vector<std::string> streamed_reply(WireFormat format, const MockRequest& request,
                                        const ScriptedReply& reply, const MockUsage& usage);
/// An error in the protocol's form.
Json error_reply(WireFormat format, const std::string& type, const std::string& message);

}  // namespace cb::llm
