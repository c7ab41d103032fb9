#include "search/llm/local_clients.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>

#include "base/file.h"
#include "base/hash.h"
#include "base/process.h"
#include "base/text.h"

namespace cb::llm {
namespace {

namespace fs = std::filesystem;

constexpr double kPollSeconds = 0.5;
constexpr size_t kNameDigits = 16;

class CommandClient : public Client {
 public:
  CommandClient(std::string command, Limits limits)
      : command_(std::move(command)), limits_(std::move(limits)) {}

  Completion complete(const Request& request) override {
    TempDir folder("commbench-prompt-");
    const std::string prompt = folder.path() + "/prompt";
    write_file(prompt, prompt_text(request));
    ProcessOptions options;
    // The process runner gives children no stdin, so that the shell opens it.
    options.argv = {"/bin/sh", "-c", fmt::format("exec < \"$0\"; {}", command_), prompt};
    for (char** entry = environ; *entry != nullptr; ++entry) options.env.emplace_back(*entry);
    options.output_limit = limits_.max_reply_bytes + 1;
    CompletedProcess done =
        run_process(options, static_cast<int>(std::min(limits_.total_timeout_s, 1e6) * 1000));
    if (done.timed_out) {
      return fail(FailureKind::kTimeout, fmt::format("no end after {} s", limits_.total_timeout_s));
    }
    if (!done.status.success()) {
      return fail(FailureKind::kCommand, fmt::format("{}: {}", done.status.describe(),
                                                     printable(done.standard_error, 500)));
    }
    if (done.standard_output.size() > limits_.max_reply_bytes) {
      return fail(FailureKind::kTooLarge,
                  fmt::format("more than {} bytes of answer", limits_.max_reply_bytes));
    }
    Reply reply;
    reply.text = std::move(done.standard_output);
    reply.finish_reason = "exit";
    reply.model = command_;
    return reply;
  }

 private:
  Completion fail(FailureKind kind, const std::string& why) const {
    return tl::unexpected(Failure{kind, fmt::format("cmd:{}: {}", command_, why)});
  }

  std::string command_;
  Limits limits_;
};

class FileClient : public Client {
 public:
  FileClient(std::string folder, Limits limits, std::shared_ptr<Clock> clock)
      : folder_(std::move(folder)), limits_(std::move(limits)), clock_(std::move(clock)) {}

  Completion complete(const Request& request) override {
    fs::create_directories(folder_);
    const std::string prompt = prompt_text(request);
    const std::string name = folder_ + "/" + sha256_hex(prompt).substr(0, kNameDigits);
    if (!fs::exists(name + ".prompt.md")) write_file(name + ".prompt.md", prompt);
    const double deadline = clock_->now() + limits_.total_timeout_s;
    const std::string answer = name + ".reply.md";
    while (!fs::exists(answer)) {
      if (clock_->now() > deadline) {
        return tl::unexpected(
            Failure{FailureKind::kTimeout,
                    fmt::format("nobody wrote {} within {} s", answer, limits_.total_timeout_s)});
      }
      clock_->sleep(kPollSeconds);
    }
    auto text = read_file(answer, limits_.max_reply_bytes);
    if (!text) return tl::unexpected(Failure{FailureKind::kTooLarge, text.error().message()});
    Reply reply;
    reply.text = std::move(*text);
    reply.finish_reason = "file";
    reply.model = "file";
    return reply;
  }

 private:
  std::string folder_;
  Limits limits_;
  std::shared_ptr<Clock> clock_;
};

}  // namespace

std::string prompt_text(const Request& request) {
  std::string text = request.system;
  if (!text.empty() && text.back() != '\n') text += '\n';
  for (const Message& message : request.messages) {
    if (request.messages.size() > 1) {
      text += message.role == Message::Role::kUser ? "\n## user\n\n" : "\n## assistant\n\n";
    } else if (!text.empty()) {
      text += '\n';
    }
    text += message.text;
    if (text.empty() || text.back() != '\n') text += '\n';
  }
  return text;
}

std::unique_ptr<Client> command_client(std::string command, Limits limits) {
  return std::make_unique<CommandClient>(std::move(command), std::move(limits));
}

std::unique_ptr<Client> file_client(std::string folder, Limits limits,
                                    std::shared_ptr<Clock> clock) {
  return std::make_unique<FileClient>(std::move(folder), std::move(limits), std::move(clock));
}

}  // namespace cb::llm
