#pragma once

#include <memory>
#include <string>

#include "search/llm/mock/script.h"

namespace cb::llm {

/// Serves a script over HTTP: POST /v1/chat/completions, /v1/responses and /v1/messages, streamed
/// or whole, and GET /v1/models. Listens on 127.0.0.1 only.
class MockServer {
 public:
  /// `port` 0: any that is free. Throws Error(kSystem) when it cannot listen.
  MockServer(Script script, int port);
  ~MockServer();

  int port() const;
  /// http://127.0.0.1:PORT
  std::string url() const;
  /// Answers given so far.
  uint64_t served() const;
  /// Serves until stop() is called by another thread or a signal handler's thread.
  void wait();
  void stop();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace cb::llm
