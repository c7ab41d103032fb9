#include "search/llm/agent.h"

#include <fmt/format.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <condition_variable>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <thread>

#include "base/error.h"

namespace cb::llm {
namespace {

constexpr size_t kMaxMessage = size_t{64} << 20;

bool send_all(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    ssize_t sent = ::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) return false;
    bytes.remove_prefix(static_cast<size_t>(sent));
  }
  return true;
}

bool receive_all(int fd, char* to, size_t bytes) {
  while (bytes > 0) {
    ssize_t received = ::recv(fd, to, bytes, 0);
    if (received < 0 && errno == EINTR) continue;
    if (received <= 0) return false;
    to += received;
    bytes -= static_cast<size_t>(received);
  }
  return true;
}

bool send_json(int fd, const Json& json) {
  std::string text = dump_json(json);
  return send_all(fd, fmt::format("{}\n", text.size())) && send_all(fd, text);
}

/// Nothing when the connection is closed or what comes is no message.
std::optional<Json> receive_json(int fd) {
  std::string digits;
  for (char c = 0; receive_all(fd, &c, 1) && digits.size() < 12;) {
    if (c == '\n') break;
    digits += c;
  }
  size_t bytes = 0;
  auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), bytes);
  if (digits.empty() || error != std::errc() || end != digits.data() + digits.size() ||
      bytes > kMaxMessage) {
    return std::nullopt;
  }
  std::string text(bytes, '\0');
  if (!receive_all(fd, text.data(), bytes)) return std::nullopt;
  Json json = Json::parse(text, nullptr, false);
  if (!json.is_object()) return std::nullopt;
  return json;
}

Request request_from(const Json& json) {
  Request request;
  request.system = json.at("system").get<std::string>();
  for (const Json& message : json.at("messages")) {
    bool is_user = message.at("role").get<std::string>() == "user";
    request.messages.push_back({is_user ? Message::Role::kUser : Message::Role::kAssistant,
                                message.at("text").get<std::string>()});
  }
  request.max_output_tokens = json.at("max_output_tokens").get<uint64_t>();
  if (!json.at("temperature").is_null()) request.temperature = json["temperature"].get<double>();
  request.sample = json.at("sample").get<uint32_t>();
  request.label = json.at("label").get<std::string>();
  return request;
}

Json to_json(const Failure& failure) {
  return {{"kind", static_cast<int>(failure.kind)},
          {"message", failure.message},
          {"http_status", failure.http_status}};
}

void serve_one(int fd, Client& client) {
  while (auto json = receive_json(fd)) {
    Completion done = client.complete(request_from(*json));
    Json answer = done ? Json{{"reply", to_json(*done)}} : Json{{"failure", to_json(done.error())}};
    if (!send_json(fd, answer)) return;
  }
}

class AgentClient : public Client {
 public:
  explicit AgentClient(std::vector<UniqueFd> connections) : connections_(std::move(connections)) {
    for (const UniqueFd& connection : connections_) free_.push_back(connection.get());
  }

  Completion complete(const Request& request) override {
    int fd = take();
    std::optional<Json> answer;
    Json question = to_json(request);
    question["label"] = request.label;
    if (send_json(fd, question)) answer = receive_json(fd);
    // A connection that is out of step must not be believed again; it fails at once from now on.
    if (!answer) ::shutdown(fd, SHUT_RDWR);
    give_back(fd);
    if (!answer) {
      return tl::unexpected(
          Failure{FailureKind::kCommand, "the process that asks the model has ended"});
    }
    if (auto reply = answer->find("reply"); reply != answer->end()) return reply_from_json(*reply);
    const Json& failure = answer->at("failure");
    return tl::unexpected(Failure{static_cast<FailureKind>(failure.at("kind").get<int>()),
                                  failure.at("message").get<std::string>(),
                                  failure.at("http_status").get<int>()});
  }

 private:
  int take() {
    std::unique_lock lock(mutex_);
    is_free_.wait(lock, [this] { return !free_.empty(); });
    int fd = free_.back();
    free_.pop_back();
    return fd;
  }

  void give_back(int fd) {
    std::lock_guard lock(mutex_);
    free_.push_back(fd);
    is_free_.notify_one();
  }

  std::vector<UniqueFd> connections_;
  std::mutex mutex_;
  std::condition_variable is_free_;
  std::vector<int> free_;
};

}  // namespace

void serve_requests(const std::vector<int>& connections, Client& client) {
  std::vector<std::thread> threads;
  threads.reserve(connections.size());
  for (int fd : connections) threads.emplace_back([fd, &client] { serve_one(fd, client); });
  for (std::thread& thread : threads) thread.join();
}

std::unique_ptr<Client> agent_client(std::vector<UniqueFd> connections) {
  return std::make_unique<AgentClient>(std::move(connections));
}

std::pair<std::vector<UniqueFd>, std::vector<UniqueFd>> agent_connections(size_t count) {
  std::pair<std::vector<UniqueFd>, std::vector<UniqueFd>> ends;
  for (size_t i = 0; i < count; ++i) {
    int pair[2];
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0) {
      throw system_error("make a pair of sockets");
    }
    ends.first.emplace_back(pair[0]);
    ends.second.emplace_back(pair[1]);
  }
  return ends;
}

std::vector<std::string> key_variables() {
  std::vector<std::string> names;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    std::string name(*entry, std::string_view(*entry).find('='));
    if (name.ends_with("_API_KEY") || name.ends_with("_TOKEN") ||
        name.find("_SECRET") != std::string::npos) {
      names.push_back(std::move(name));
    }
  }
  return names;
}

}  // namespace cb::llm
