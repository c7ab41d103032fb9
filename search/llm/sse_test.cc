#include "search/llm/sse.h"

#include <gtest/gtest.h>

#include <vector>

namespace cb::llm {
namespace {

std::vector<EventStream::Event> read(const std::string& text, size_t piece) {
  std::vector<EventStream::Event> events;
  EventStream stream([&](const EventStream::Event& event) { events.push_back(event); });
  for (size_t at = 0; at < text.size(); at += piece) {
    stream.feed(std::string_view(text).substr(at, piece));
  }
  return events;
}

const std::string kStream =
    ": a comment\n"
    "event: first\n"
    "data: one\n"
    "data:two\n"
    "\n"
    "data: crlf\r\n"
    "\r\n"
    "id: 7\n"
    "\n"
    "data: {\"a\": \"b: c\"}\n"
    "\n"
    "data: never ended\n";

class EventStreamPieces : public ::testing::TestWithParam<size_t> {};

TEST_P(EventStreamPieces, GiveTheSameEvents) {
  auto events = read(kStream, GetParam());
  ASSERT_EQ(events.size(), 3u);
  EXPECT_EQ(events[0].type, "first");
  EXPECT_EQ(events[0].data, "one\ntwo");
  EXPECT_EQ(events[1].type, "");
  EXPECT_EQ(events[1].data, "crlf");
  EXPECT_EQ(events[2].data, "{\"a\": \"b: c\"}");
}

INSTANTIATE_TEST_SUITE_P(OfAnySize, EventStreamPieces, ::testing::Values(1, 2, 3, 7, 1000));

}  // namespace
}  // namespace cb::llm
