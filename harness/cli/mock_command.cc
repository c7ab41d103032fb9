#include <fmt/format.h>

#include <csignal>

#include "harness/cli/command.h"
#include "search/llm/mock/server.h"

namespace cb::cli {
namespace {

struct MockOptions {
  std::string script;
  int port = 0;
};

/// Serves until the user ends it.
int serve(const Common& common, const MockOptions& options) {
  // Blocked before the server's threads exist, so that this thread alone takes them.
  sigset_t ends;
  sigemptyset(&ends);
  sigaddset(&ends, SIGINT);
  sigaddset(&ends, SIGTERM);
  ::pthread_sigmask(SIG_BLOCK, &ends, nullptr);
  llm::MockServer server(llm::Script::load_file(options.script), options.port);
  if (common.json) {
    print(dump_json({{"url", server.url()}}) + "\n");
  } else {
    print(fmt::format("{0}/v1\n", server.url()));
  }
  std::fflush(stdout);
  if (!common.quiet) {
    fmt::print(stderr,
               "Ask it with OPENAI_BASE_URL={0}/v1 (openai/NAME, openai-responses/NAME), or\n"
               "ANTHROPIC_BASE_URL={0} (anthropic/NAME). Ctrl-C ends it.\n",
               server.url());
  }
  int signal = 0;
  ::sigwait(&ends, &signal);
  if (!common.quiet) fmt::print(stderr, "{} answers given\n", server.served());
  return kDone;
}

}  // namespace

void add_mock_llm(CLI::App& app, const Common& common, int& exit_code) {
  auto options = std::make_shared<MockOptions>();
  CLI::App* command = app.add_subcommand(
      "mock-llm", "a server that answers like a model's, from a script, for tests");
  command->add_option("--script", options->script, "the answers, a YAML file")
      ->required()
      ->option_text("FILE");
  command->add_option("--port", options->port, "port on 127.0.0.1; 0: any")->option_text("N");
  command->callback([&common, &exit_code, options] { exit_code = serve(common, *options); });
}

}  // namespace cb::cli
