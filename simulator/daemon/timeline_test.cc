#include "simulator/daemon/timeline.h"

#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>

namespace cb::sim {
namespace {

using Kind = Timeline::Kind;

class TimelineTest : public ::testing::Test {
 protected:
  Profile profile_ = value_or_throw(load_profile("h100x8"));
  Timeline timeline_{profile_};

  /// Every row's spans follow each other.
  void expect_well_formed(const Json& trace) {
    std::map<std::pair<int, int64_t>, double> end_of_row;
    for (const Json& event : trace.at("traceEvents")) {
      if (event.at("ph") != "X") continue;
      double start = event.at("ts").get<double>();
      double& end = end_of_row[{event.at("pid").get<int>(), event.at("tid").get<int64_t>()}];
      EXPECT_GE(start, end - 1e-9) << event.dump();
      EXPECT_GE(event.at("dur").get<double>(), 0);
      end = start + event.at("dur").get<double>();
    }
  }
  static size_t count(const Json& trace, const char* phase) {
    size_t number = 0;
    for (const Json& event : trace.at("traceEvents")) number += event.at("ph") == phase ? 1 : 0;
    return number;
  }
};

TEST_F(TimelineTest, OverlappingSpansGetRowsOfTheirOwn) {
  timeline_.add(Kind::kStream, 1, 16, "kernel a", 1'000'000, 5'000'000, R"({"grid":[1,1,1]})");
  timeline_.add(Kind::kStream, 1, 16, "kernel b", 3'000'000, 6'000'000);
  timeline_.add(Kind::kStream, 1, 16, "kernel c", 5'000'000, 7'000'000);
  timeline_.add(Kind::kCall, 1, 0, "launch", 0, 1'000'000);
  Json trace = timeline_.to_json(8'000'000);
  expect_well_formed(trace);
  EXPECT_EQ(count(trace, "X"), 4u);
  std::map<std::string, int64_t> rows;
  for (const Json& event : trace.at("traceEvents")) {
    if (event.at("ph") == "X") rows[event.at("name")] = event.at("tid").get<int64_t>();
  }
  EXPECT_EQ(rows["kernel a"], rows["kernel c"]);
  EXPECT_NE(rows["kernel a"], rows["kernel b"]);
}

TEST_F(TimelineTest, WhatHasNotEndedIsMarked) {
  Waiter waiter;
  waiter.place.rank = 0;
  waiter.waits_for = "flag";
  timeline_.wait_started(7, waiter, 2'000'000);
  timeline_.phase_started(0, "step", 1'000'000);
  Json trace = timeline_.to_json(9'000'000);
  size_t unfinished = 0;
  for (const Json& event : trace.at("traceEvents")) {
    if (event.at("ph") != "X") continue;
    unfinished += event.at("args").value("unfinished", false) ? 1 : 0;
    EXPECT_DOUBLE_EQ(event.at("ts").get<double>() + event.at("dur").get<double>(), 9.0);
  }
  EXPECT_EQ(unfinished, 2u);
}

TEST_F(TimelineTest, IsBoundedAndSaysWhatIsMissing) {
  for (Time i = 0; i < Timeline::kMaxSpans + 10; ++i) {
    timeline_.add(Kind::kCall, 0, 0, "poll", i * 1'000, i * 1'000 + 500);
  }
  for (size_t i = 0; i < Timeline::kMaxRows + 3; ++i) {
    timeline_.add(Kind::kStream, 0, 1, "kernel", 0, 1'000);
  }
  Json trace = timeline_.to_json(100'000'000);
  expect_well_formed(trace);
  EXPECT_EQ(count(trace, "X"), Timeline::kMaxSpans + Timeline::kMaxRows);
  EXPECT_EQ(trace.at("otherData").at("left_out").at("host thread"), 10);
  EXPECT_EQ(trace.at("otherData").at("left_out").at("stream"), 3);
}

}  // namespace
}  // namespace cb::sim
