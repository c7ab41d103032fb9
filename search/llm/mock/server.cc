#include "search/llm/mock/server.h"

#include <fmt/format.h>
#include <httplib.h>

#include <chrono>
#include <nlohmann/json.hpp>
#include <thread>

#include "search/llm/mock/wire.h"
#include "search/llm/patient_client.h"

namespace cb::llm {
namespace {

constexpr const char* kJson = "application/json";

/// The status and error type with which a fault answers; status 200: it shows in the answer itself.
struct FaultAnswer {
  int status;
  const char* type;
  const char* message;
};
FaultAnswer answer_of(Fault fault) {
  switch (fault) {
    case Fault::kRateLimit:
      return {429, "rate_limit_exceeded", "Rate limit reached"};
    case Fault::kQuota:
      return {429, "insufficient_quota", "You exceeded your current quota"};
    case Fault::kServerError:
      return {500, "server_error", "The server had an error"};
    case Fault::kOverloaded:
      return {529, "overloaded_error", "Overloaded"};
    case Fault::kUnauthorized:
      return {401, "invalid_api_key", "Incorrect API key provided"};
    default:
      return {200, "", ""};
  }
}

std::string key_of(const httplib::Request& request) {
  std::string key = request.get_header_value("x-api-key");
  if (!key.empty()) return key;
  std::string bearer = request.get_header_value("Authorization");
  return bearer.rfind("Bearer ", 0) == 0 ? bearer.substr(7) : "";
}

/// Writes events one by one; false ends the connection.
class EventSource {
 public:
  EventSource(std::vector<std::string> events, ScriptedReply reply)
      : events_(std::move(events)), reply_(std::move(reply)) {}

  bool write_next(httplib::DataSink& sink) {
    if (reply_.delay_ms > 0)
      std::this_thread::sleep_for(std::chrono::milliseconds(reply_.delay_ms));
    if (reply_.fault == Fault::kTruncated && next_ >= events_.size() / 2) return false;
    if (reply_.fault == Fault::kSilent && next_ == 1) return false;
    if (reply_.fault == Fault::kMalformed && next_ == 1) {
      const std::string noise = "data: {\"choices\": [{\"delta\": \n\n";
      ++next_;
      return sink.write(noise.data(), noise.size());
    }
    if (reply_.fault == Fault::kHuge && next_ == 2 && written_ < reply_.bytes) {
      const std::string& again = events_[1];
      written_ += again.size();
      return sink.write(again.data(), again.size());
    }
    if (next_ == events_.size()) {
      sink.done();
      return true;
    }
    const std::string& event = events_[next_++];
    return sink.write(event.data(), event.size());
  }

 private:
  std::vector<std::string> events_;
  ScriptedReply reply_;
  size_t next_ = 0;
  uint64_t written_ = 0;
};

}  // namespace

struct MockServer::State {
  explicit State(Script script) : player(std::move(script)) {}

  ScriptPlayer player;
  httplib::Server server;
  int port = 0;
  std::thread thread;

  void answer(WireFormat format, const httplib::Request& request, httplib::Response& response) {
    response.set_header("x-request-id", fmt::format("mock-{}", player.served() + 1));
    if (!player.key().empty() && key_of(request) != player.key()) {
      refuse(format, response, answer_of(Fault::kUnauthorized));
      return;
    }
    MockRequest asked;
    try {
      asked = read_request(format, request.body);
    } catch (const Error& error) {
      refuse(format, response, {400, "invalid_request_error", error.what()});
      return;
    }
    auto reply = player.next(asked.prompt);
    if (!reply) {
      refuse(format, response, {400, "script_exhausted", "the script has no reply left for this"});
      return;
    }
    FaultAnswer fault = answer_of(reply->fault);
    if (fault.status != 200) {
      if (reply->retry_after_s) {
        response.set_header("Retry-After", fmt::format("{}", *reply->retry_after_s));
      }
      refuse(format, response, fault);
      return;
    }
    MockUsage usage{.input = estimated_tokens(asked.prompt.size()),
                    .cached = player.cached_tokens(asked.prompt),
                    .output = estimated_tokens(reply->text.size())};
    send(format, response, asked, *reply, usage);
  }

  static void refuse(WireFormat format, httplib::Response& response, const FaultAnswer& fault) {
    response.status = fault.status;
    response.set_content(dump_json(error_reply(format, fault.type, fault.message)), kJson);
  }

  static void send(WireFormat format, httplib::Response& response, const MockRequest& asked,
                   const ScriptedReply& reply, const MockUsage& usage) {
    if (!asked.stream) {
      response.set_content(dump_json(whole_reply(format, asked, reply, usage)), kJson);
      return;
    }
    auto source = std::make_shared<EventSource>(streamed_reply(format, asked, reply, usage), reply);
    response.set_chunked_content_provider(
        "text/event-stream",
        [source](size_t, httplib::DataSink& sink) { return source->write_next(sink); });
  }
};

MockServer::MockServer(Script script, int port)
    : state_(std::make_unique<State>(std::move(script))) {
  State& state = *state_;
  constexpr std::pair<const char*, WireFormat> kRoutes[] = {
      {"/v1/chat/completions", WireFormat::kChat},
      {"/v1/responses", WireFormat::kResponses},
      {"/v1/messages", WireFormat::kMessages}};
  for (const auto& [path, format] : kRoutes) {
    state.server.Post(path, [&state, format = format](const httplib::Request& request,
                                                      httplib::Response& response) {
      state.answer(format, request, response);
    });
  }
  state.server.Get("/v1/models", [](const httplib::Request&, httplib::Response& response) {
    Json model{{"id", "mock"}, {"object", "model"}, {"created", 0}, {"owned_by", "commbench"}};
    response.set_content(dump_json({{"object", "list"}, {"data", Json::array({model})}}), kJson);
  });
  state.server.set_keep_alive_max_count(1000);
  state.port = port == 0 ? state.server.bind_to_any_port("127.0.0.1")
               : state.server.bind_to_port("127.0.0.1", port) ? port
                                                              : -1;
  if (state.port <= 0) {
    throw Error(ErrorCode::kSystem, fmt::format("cannot listen on 127.0.0.1:{}", port));
  }
  state.thread = std::thread([&state] { state.server.listen_after_bind(); });
  while (!state.server.is_running()) std::this_thread::yield();
}

MockServer::~MockServer() {
  stop();
  if (state_->thread.joinable()) state_->thread.join();
}

int MockServer::port() const { return state_->port; }

std::string MockServer::url() const { return fmt::format("http://127.0.0.1:{}", state_->port); }

uint64_t MockServer::served() const { return state_->player.served(); }

void MockServer::wait() {
  if (state_->thread.joinable()) state_->thread.join();
}

void MockServer::stop() { state_->server.stop(); }

}  // namespace cb::llm
