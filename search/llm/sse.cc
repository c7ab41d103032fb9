#include "search/llm/sse.h"

namespace cb::llm {

void EventStream::feed(std::string_view bytes) {
  for (char c : bytes) {
    // A line ends with LF, CR or CR LF.
    bool is_second_half = skip_newline_ && c == '\n';
    skip_newline_ = c == '\r';
    if (is_second_half) continue;
    if (c != '\n' && c != '\r') {
      line_ += c;
      continue;
    }
    take_line(line_);
    line_.clear();
  }
}

void EventStream::take_line(std::string_view line) {
  if (line.empty()) {
    if (has_data_) sink_(event_);
    event_ = {};
    has_data_ = false;
    return;
  }
  size_t colon = line.find(':');
  std::string_view field = line.substr(0, colon);
  std::string_view value;
  if (colon != std::string_view::npos) value = line.substr(colon + 1);
  if (!value.empty() && value.front() == ' ') value.remove_prefix(1);
  if (field == "event") {
    event_.type = value;
  } else if (field == "data") {
    if (has_data_) event_.data += '\n';
    event_.data += value;
    has_data_ = true;
  }
}

}  // namespace cb::llm
