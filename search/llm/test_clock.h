#pragma once

#include <vector>

#include "search/llm/client.h"

namespace cb::llm {

/// Time that passes only in sleep().
class TestClock : public Clock {
 public:
  double now() override { return now_; }
  void sleep(double seconds) override {
    sleeps.push_back(seconds);
    now_ += seconds;
  }
  double random() override { return random_value; }

  std::vector<double> sleeps;
  double random_value = 0.5;

 private:
  double now_ = 0;
};

/// Answers from a list, and counts.
class ListClient : public Client {
 public:
  explicit ListClient(std::vector<Completion> answers) : answers_(std::move(answers)) {}
  Completion complete(const Request&) override {
    return answers_[std::min(asked++, answers_.size() - 1)];
  }
  size_t asked = 0;

 private:
  std::vector<Completion> answers_;
};

inline Completion failed(FailureKind kind, std::optional<double> retry_after_s = std::nullopt) {
  return tl::unexpected(Failure{kind, to_string(kind), 0, retry_after_s});
}

inline Completion answered(const std::string& text, uint64_t input = 0, uint64_t output = 0) {
  Reply reply;
  reply.text = text;
  if (input + output > 0) reply.usage = {.input = input, .output = output};
  return reply;
}

}  // namespace cb::llm
