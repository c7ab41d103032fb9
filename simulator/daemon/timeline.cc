#include "simulator/daemon/timeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <tuple>

#include "base/json.h"
#include "base/text.h"

namespace cb::sim {
namespace {

constexpr Time kBetweenSamples = 1'000'000;
constexpr size_t kMaxName = 120;
/// Row numbers of a kind start at its number times this.
constexpr int64_t kRowsOfKind = 100'000;
constexpr const char* kKindNames[Timeline::kNumKinds] = {"phase", "host thread", "stream", "blocks",
                                                         "waits"};

double in_us(Time time) { return static_cast<double>(time) / 1e6; }

std::string short_name(const std::string& name) { return printable(name, kMaxName); }

std::string row_name(Timeline::Kind kind, uint64_t key, size_t row) {
  std::string name = kKindNames[static_cast<size_t>(kind)];
  bool has_key = kind == Timeline::Kind::kCall || kind == Timeline::Kind::kStream;
  if (has_key) name += fmt::format(" {}", key);
  return row == 0 ? name : fmt::format("{} ({})", name, row + 1);
}

Json metadata(const char* what, int rank, int64_t row, const std::string& name) {
  Json json = {{"ph", "M"}, {"name", what}, {"pid", rank}, {"args", {{"name", name}}}};
  if (row >= 0) json["tid"] = row;
  return json;
}

}  // namespace

bool Timeline::has_room(Kind kind) {
  auto index = static_cast<size_t>(kind);
  bool room = kept_[index] < kMaxSpans;
  ++(room ? kept_ : dropped_)[index];
  return room;
}

void Timeline::add(Kind kind, int rank, uint64_t key, const std::string& name, Time start, Time end,
                   std::string arguments) {
  if (!has_room(kind)) return;
  spans_.push_back(
      {kind, rank, key, short_name(name), start, std::max(start, end), std::move(arguments)});
}

void Timeline::phase_started(int rank, const std::string& name, Time time) {
  phase_ended(rank, time);
  if (!has_room(Kind::kPhase)) return;
  phases_[rank] = {Kind::kPhase, rank, 0, name, time, time};
}

void Timeline::phase_ended(int rank, Time time) {
  auto open = phases_.find(rank);
  if (open == phases_.end()) return;
  open->second.end = std::max(open->second.start, time);
  spans_.push_back(std::move(open->second));
  phases_.erase(open);
}

void Timeline::sample_links(int device, Time time) {
  if (resources_ == nullptr) return;
  Time& last = sampled_[device];
  if (last != 0 && time < last + kBetweenSamples) return;
  last = time;
  for (int peer = 0; peer < profile_.num_devices(); ++peer) {
    if (peer == device) continue;
    uint64_t bytes = resources_->link_bytes(device, peer);
    uint64_t& before = last_bytes_[{device, peer}];
    if (bytes == before) continue;
    before = bytes;
    if (samples_.size() >= kMaxSamples) {
      ++dropped_samples_;
      continue;
    }
    samples_.push_back({device, peer, time, bytes});
  }
}

void Timeline::block_started(const KernelLaunch& launch, uint64_t run, uint64_t block, uint32_t sm,
                             Time time) {
  if (!has_room(Kind::kBlock)) return;
  Span span{Kind::kBlock, launch.rank, 0, short_name(fmt::format("block {}", block)), time, time};
  span.arguments = dump_json({{"kernel", short_name(launch.name)}, {"block", block}, {"sm", sm}});
  blocks_[{run, block}] = std::move(span);
}

void Timeline::block_ended(uint64_t run, uint64_t block, Time time) {
  auto open = blocks_.find({run, block});
  if (open == blocks_.end()) return;
  open->second.end = std::max(open->second.start, time);
  sample_links(open->second.rank, open->second.end);
  spans_.push_back(std::move(open->second));
  blocks_.erase(open);
}

void Timeline::wait_started(uint64_t number, const Waiter& waiter, Time time) {
  if (!has_room(Kind::kWait)) return;
  const CodePlace& place = waiter.place;
  Span span{Kind::kWait, place.rank, 0, short_name("waits for " + waiter.waits_for), time, time};
  span.arguments = dump_json({{"kernel", short_name(place.kernel)},
                              {"at", fmt::format("{}:{}", short_name(place.file), place.line)},
                              {"block", {place.block[0], place.block[1], place.block[2]}},
                              {"thread", {place.thread[0], place.thread[1], place.thread[2]}},
                              {"threads", waiter.num_threads}});
  waits_[number] = std::move(span);
}

void Timeline::wait_ended(uint64_t number, Time time) {
  auto open = waits_.find(number);
  if (open == waits_.end()) return;
  open->second.end = std::max(open->second.start, time);
  spans_.push_back(std::move(open->second));
  waits_.erase(open);
}

// Rows of a rank: those of one kind and key lie together, each holding spans that do not overlap.
void Timeline::write(std::vector<Span> spans, Json& trace) const {
  std::stable_sort(spans.begin(), spans.end(), [](const Span& one, const Span& other) {
    return std::tie(one.rank, one.kind, one.key, one.start, one.end) <
           std::tie(other.rank, other.kind, other.key, other.start, other.end);
  });
  Json& events = trace["traceEvents"];
  std::array<size_t, kNumKinds> hidden = dropped_;
  int64_t next_row = 0;
  for (size_t first = 0; first < spans.size();) {
    const Span& head = spans[first];
    bool is_new_kind =
        first == 0 || spans[first - 1].rank != head.rank || spans[first - 1].kind != head.kind;
    if (is_new_kind) next_row = static_cast<int64_t>(head.kind) * kRowsOfKind;
    std::vector<std::vector<const Span*>> rows;
    size_t at = first;
    for (; at < spans.size() && spans[at].rank == head.rank && spans[at].kind == head.kind &&
           spans[at].key == head.key;
         ++at) {
      const Span& span = spans[at];
      auto row = std::find_if(rows.begin(), rows.end(),
                              [&](const auto& one) { return one.back()->end <= span.start; });
      if (row != rows.end()) {
        row->push_back(&span);
      } else if (rows.size() < kMaxRows) {
        rows.push_back({&span});
      } else {
        ++hidden[static_cast<size_t>(span.kind)];
      }
    }
    for (size_t row = 0; row < rows.size(); ++row, ++next_row) {
      events.push_back(
          metadata("thread_name", head.rank, next_row, row_name(head.kind, head.key, row)));
      for (const Span* span : rows[row]) {
        Json arguments = span->arguments.empty() ? Json::object() : Json::parse(span->arguments);
        if (span->is_open) arguments["unfinished"] = true;
        events.push_back({{"ph", "X"},
                          {"pid", span->rank},
                          {"tid", next_row},
                          {"cat", kKindNames[static_cast<size_t>(span->kind)]},
                          {"name", span->name},
                          {"ts", in_us(span->start)},
                          {"dur", in_us(span->end - span->start)},
                          {"args", std::move(arguments)}});
      }
    }
    first = at;
  }
  for (size_t kind = 0; kind < kNumKinds; ++kind) {
    trace["otherData"]["left_out"][kKindNames[kind]] = hidden[kind];
  }
}

Json Timeline::to_json(Time time) const {
  Json trace;
  trace["displayTimeUnit"] = "ns";
  trace["otherData"] = {{"profile", profile_.name}};
  trace["traceEvents"] = Json::array();
  std::vector<Span> spans = spans_;
  auto add_open = [&](Span span) {
    span.end = std::max(span.start, time);
    span.is_open = true;
    spans.push_back(std::move(span));
  };
  for (const auto& [rank, span] : phases_) add_open(span);
  for (const auto& [block, span] : blocks_) add_open(span);
  for (const auto& [number, span] : waits_) add_open(span);
  std::set<int> ranks;
  for (const Span& span : spans) ranks.insert(span.rank);
  for (int rank : ranks) {
    trace["traceEvents"].push_back(
        metadata("process_name", rank, -1, fmt::format("rank {}", rank)));
  }
  write(std::move(spans), trace);
  std::vector<Sample> samples = samples_;
  std::stable_sort(samples.begin(), samples.end(), [](const Sample& one, const Sample& other) {
    return std::tie(one.from, one.to, one.time) < std::tie(other.from, other.to, other.time);
  });
  for (const Sample& sample : samples) {
    trace["traceEvents"].push_back({{"ph", "C"},
                                    {"pid", sample.from},
                                    {"name", fmt::format("NVLink to {}", sample.to)},
                                    {"ts", in_us(sample.time)},
                                    {"args", {{"bytes", sample.bytes}}}});
  }
  trace["otherData"]["left_out"]["link values"] = dropped_samples_;
  return trace;
}

}  // namespace cb::sim
