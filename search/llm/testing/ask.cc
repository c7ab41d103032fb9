// Asks a model once and prints the reply as JSON: for checking the client against servers that are
// not ours.
//
//   llm_ask MODEL PROMPT

#include <cstdio>
#include <nlohmann/json.hpp>

#include "search/llm/provider.h"

int main(int argc, char** argv) {
  using namespace cb;
  if (argc != 3) {
    std::fprintf(stderr, "usage: llm_ask MODEL PROMPT\n");
    return 2;
  }
  try {
    llm::Request request;
    request.system = "Answer briefly.";
    request.messages = {{llm::Message::Role::kUser, argv[2]}};
    request.max_output_tokens = 200;
    llm::ConnectOptions options;
    options.patience.first_backoff_s = 0.1;
    auto done = llm::connect(llm::parse_model_name(argv[1]), options)->complete(request);
    if (!done) {
      std::fprintf(stderr, "%s: %s\n", llm::to_string(done.error().kind),
                   done.error().message.c_str());
      return 1;
    }
    std::printf("%s\n", dump_json(llm::to_json(*done)).c_str());
    return 0;
  } catch (const Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 2;
  }
}
