// Keys and candidates are kept apart: see search/llm/agent.h.

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>

#include "base/file.h"
#include "base/text.h"
#include "harness/cli/eval_options.h"
#include "search/llm/agent.h"

namespace cb::cli {
namespace {

/// Numbers of the descriptors of the connections, separated by commas.
constexpr const char* kAgentVariable = "COMMBENCH_LLM_AGENT";

/// Serves until the process that asks has ended.
[[noreturn]] void serve(const llm::ModelName& name, const EvalCommand& command,
                        std::vector<UniqueFd> connections) {
  // Neither a debugger nor /proc shows this process to another of the same user.
  ::prctl(PR_SET_DUMPABLE, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);
  int code = kDone;
  try {
    llm::ConnectOptions options;
    options.record_folder = command.record;
    std::shared_ptr<llm::Client> client = llm::connect(name, options);
    std::vector<int> fds;
    for (const UniqueFd& connection : connections) fds.push_back(connection.get());
    llm::serve_requests(fds, *client);
  } catch (const Error& error) {
    std::fprintf(stderr, "commbench: %s\n", error.what());
    code = exit_code_of(error.code());
  }
  ::_exit(code);
}

std::vector<std::string> own_arguments() {
  std::vector<std::string> arguments;
  for (std::string& word : split(value_or_throw(read_file("/proc/self/cmdline")), '\0')) {
    arguments.push_back(std::move(word));
  }
  if (!arguments.empty() && arguments.back().empty()) arguments.pop_back();
  return arguments;
}

[[noreturn]] void begin_anew(const std::vector<UniqueFd>& connections) {
  std::string numbers;
  for (const UniqueFd& connection : connections) {
    ::fcntl(connection.get(), F_SETFD, 0);
    numbers += (numbers.empty() ? "" : ",") + std::to_string(connection.get());
  }
  ::setenv(kAgentVariable, numbers.c_str(), 1);
  for (const std::string& variable : llm::key_variables()) ::unsetenv(variable.c_str());
  std::vector<std::string> arguments = own_arguments();
  std::vector<char*> argv;
  for (std::string& word : arguments) argv.push_back(word.data());
  argv.push_back(nullptr);
  ::execv("/proc/self/exe", argv.data());
  throw system_error("run /proc/self/exe");
}

}  // namespace

std::shared_ptr<llm::Client> adopt_agent() {
  const char* numbers = std::getenv(kAgentVariable);
  if (numbers == nullptr) return nullptr;
  std::vector<UniqueFd> connections;
  for (const std::string& number : split(numbers, ',')) {
    connections.emplace_back(std::atoi(number.c_str()));
    ::fcntl(connections.back().get(), F_SETFD, FD_CLOEXEC);
  }
  ::unsetenv(kAgentVariable);
  return llm::agent_client(std::move(connections));
}

void hand_over_keys(const llm::ModelName& name, const EvalCommand& command) {
  if (std::getenv(kAgentVariable) != nullptr) return;
  bool asks_outside =
      name.kind == llm::ModelName::Kind::kHttp || name.kind == llm::ModelName::Kind::kCommand;
  if (!asks_outside) return;
  // What is wrong with the model's name or key is said here, before anything is started.
  llm::connect(name, {});
  auto [agent, client] = llm::agent_connections(static_cast<size_t>(command.requests));
  pid_t pid = ::fork();
  if (pid < 0) throw system_error("fork");
  if (pid == 0) {
    client.clear();
    serve(name, command, std::move(agent));
  }
  agent.clear();
  begin_anew(client);
}

}  // namespace cb::cli
