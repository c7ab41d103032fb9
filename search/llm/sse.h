#pragma once

#include <functional>
#include <string>
#include <string_view>

namespace cb::llm {

/// Reads a stream of server-sent events (WHATWG HTML, section "Server-sent events") as it arrives,
/// in pieces of any size.
class EventStream {
 public:
  struct Event {
    std::string type;  ///< empty where the stream names none
    std::string data;
  };
  using Sink = std::function<void(const Event&)>;

  explicit EventStream(Sink sink) : sink_(std::move(sink)) {}

  void feed(std::string_view bytes);

 private:
  void take_line(std::string_view line);

  Sink sink_;
  std::string line_;
  Event event_;
  bool has_data_ = false;
  bool skip_newline_ = false;
};

}  // namespace cb::llm
