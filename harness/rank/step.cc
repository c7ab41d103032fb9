// What makes a step's inputs appear and its outputs count. Where the content belongs to the whole
// step (Lifetime::kStep) it is written before the step and read after it. Where it belongs to each
// rank (kRank), buffers hold poison until that rank starts and again as soon as it is done, and
// what is judged is the snapshot of that moment.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "base/text.h"
#include "harness/rank/case_pool.h"
#include "simulator/protocol/protocol.h"
#include "tasks/poison.h"

namespace cb::harness {
namespace {

using results::Verdict;
using tasks::Region;

constexpr uint64_t kPieceBytes = 1 << 20;
// The rank that starts late is also slow: the others are done, and in their next call, while it
// still reads.
constexpr uint32_t kSlowPace = 4;

// Calls `use(offset, bytes)` for pieces of a region in order.
template <typename Use>
void in_pieces(uint64_t bytes, Use use) {
  for (uint64_t offset = 0; offset < bytes; offset += kPieceBytes) {
    use(offset, std::min(kPieceBytes, bytes - offset));
  }
}

Json to_json(const tasks::Mismatch& mismatch) {
  Json json;
  json["element"] = mismatch.element;
  json["expected"] = mismatch.expected;
  json["actual"] = mismatch.actual;
  json["note"] = mismatch.note;
  return json;
}

}  // namespace

Step::Step(sim::RankClient& client, const CasePool& pool, const tasks::Case& test_case,
           const tasks::StepKey& key, int rank, tasks::StepPlan plan)
    : client_(client),
      pool_(pool),
      case_(test_case),
      key_(key),
      rank_(rank),
      plan_(std::move(plan)) {}

uint64_t Step::poison_seed(uint32_t buffer) const {
  return tasks::poison_seed(key_, rank_, buffer);
}

std::vector<ByteRange> Step::regions_of(uint32_t buffer, bool inputs, bool outputs) const {
  std::vector<ByteRange> ranges;
  auto add = [&](const Region& region) {
    if (region.buffer == buffer) ranges.push_back({region.offset, region.bytes});
  };
  for (size_t i = 0; inputs && i < plan_.inputs.size(); ++i) add(plan_.inputs[i].region);
  for (size_t i = 0; outputs && i < plan_.outputs.size(); ++i) add(plan_.outputs[i]->region());
  return united(std::move(ranges));
}

void Step::prepare() {
  for (uint32_t buffer = 0; buffer < pool_.size(); ++buffer) {
    for (const ByteRange& range : poisoned(pool_.spec(buffer), regions_of(buffer, true, true))) {
      client_.fill(pool_.address({buffer, range.offset, range.bytes}), range.bytes,
                   poison_seed(buffer), range.offset);
    }
  }
  if (by_rank()) return;
  std::vector<std::byte> bytes;
  for (const tasks::Input& input : plan_.inputs) {
    in_pieces(input.region.bytes, [&](uint64_t offset, uint64_t size) {
      bytes.resize(size);
      input.content->produce(offset, bytes);
      client_.write(pool_.address(input.region) + offset, bytes);
    });
  }
}

sim::RankClient::PhasePlan Step::phase_plan(const tasks::Card& card) const {
  sim::RankClient::PhasePlan phase;
  phase.phase = static_cast<uint32_t>(sim::Phase::kRun);
  phase.virtual_limit_ps = uint64_t{card.virtual_limit_ms} * 1'000'000'000;
  if (tasks::delayed_rank(case_, key_) == rank_) {
    phase.skew_ps = uint64_t{case_.skew_us} * 1'000'000;
    phase.pace = kSlowPace;
  }
  if (!by_rank()) return phase;
  for (const tasks::Input& input : plan_.inputs) {
    in_pieces(input.region.bytes, [&](uint64_t offset, uint64_t size) {
      sim::RankClient::Publish& piece = phase.publish.emplace_back();
      piece.address = pool_.address(input.region) + offset;
      piece.bytes.resize(size);
      input.content->produce(offset, piece.bytes);
    });
  }
  for (uint32_t buffer = 0; buffer < pool_.size(); ++buffer) {
    uint64_t seed = poison_seed(buffer);
    std::vector<ByteRange> inputs = regions_of(buffer, true, false);
    for (const ByteRange& range : subtracted(regions_of(buffer, false, true), inputs)) {
      uint64_t address = pool_.address({buffer, range.offset, range.bytes});
      phase.publish_fills.push_back({{address, range.bytes}, seed, range.offset});
    }
    // A seed that no other buffer or step has: what a late reader gets is not what it saw before.
    uint64_t after = key_.seed(fmt::format("overwrite rank {} buffer {}", rank_, buffer));
    for (const ByteRange& range : inputs) {
      uint64_t address = pool_.address({buffer, range.offset, range.bytes});
      phase.overwrite.push_back({{address, range.bytes}, after, range.offset});
    }
  }
  for (const auto& output : plan_.outputs) {
    phase.snapshot.push_back({pool_.address(output->region()), output->region().bytes});
  }
  for (size_t i = 0; plan_.inputs_constant && i < plan_.inputs.size(); ++i) {
    const Region& region = plan_.inputs[i].region;
    phase.snapshot.push_back({pool_.address(region), region.bytes});
  }
  return phase;
}

void Step::read(size_t snapshot_index, const Region& region, uint64_t offset,
                std::vector<std::byte>& bytes) {
  if (by_rank()) {
    bytes = client_.snapshot(snapshot_index, offset, bytes.size());
  } else {
    client_.read(pool_.address(region) + offset, bytes);
  }
}

void Step::judge_output(size_t index, std::vector<Evidence>& found) {
  const tasks::OutputCheck& output = *plan_.outputs[index];
  tasks::Comparison all;
  std::vector<std::byte> bytes;
  in_pieces(output.region().bytes, [&](uint64_t offset, uint64_t size) {
    bytes.resize(size);
    read(index, output.region(), offset, bytes);
    all.merge(output.compare(offset, bytes));
  });
  if (all.wrong == 0) return;
  Evidence evidence;
  evidence.verdict = Verdict::kWrongResult;
  const tasks::Mismatch& first = all.first.front();
  evidence.finding.message =
      fmt::format("{}: {} of {} elements are wrong; element {} should be {} and is {}{}",
                  output.label(), all.wrong, all.elements, first.element, first.expected,
                  first.actual, first.note.empty() ? "" : fmt::format(" ({})", first.note));
  evidence.finding.details["output"] = output.label();
  evidence.finding.details["elements"] = all.elements;
  evidence.finding.details["wrong"] = all.wrong;
  for (const tasks::Mismatch& mismatch : all.first) {
    evidence.finding.details["first"].push_back(to_json(mismatch));
  }
  found.push_back(std::move(evidence));
}

void Step::judge_input(size_t index, std::vector<Evidence>& found) {
  const tasks::Input& input = plan_.inputs[index];
  std::vector<std::byte> bytes;
  std::vector<std::byte> expected;
  std::optional<uint64_t> changed;
  in_pieces(input.region.bytes, [&](uint64_t offset, uint64_t size) {
    if (changed) return;
    bytes.resize(size);
    expected.resize(size);
    read(plan_.outputs.size() + index, input.region, offset, bytes);
    input.content->produce(offset, expected);
    auto [wrong, ignored] = std::mismatch(bytes.begin(), bytes.end(), expected.begin());
    if (wrong != bytes.end()) changed = offset + static_cast<uint64_t>(wrong - bytes.begin());
  });
  if (!changed) return;
  Evidence evidence;
  evidence.verdict = Verdict::kWrongResult;
  evidence.reason = "input_changed";
  evidence.finding.message = fmt::format(
      "{} was changed during the step, first at byte {} of this step's {}",
      pool_.spec(input.region.buffer).label, *changed, format_bytes(input.region.bytes));
  evidence.finding.details["buffer"] = pool_.spec(input.region.buffer).label;
  evidence.finding.details["offset"] = input.region.offset + *changed;
  found.push_back(std::move(evidence));
}

void Step::judge_guard_zones(std::vector<Evidence>& found) {
  for (uint32_t buffer = 0; buffer < pool_.size(); ++buffer) {
    std::vector<ByteRange> regions = regions_of(buffer, true, true);
    for (const ByteRange& zone : guard_zones(pool_.spec(buffer), regions)) {
      std::optional<uint64_t> wrong =
          client_.check_fill(pool_.address({buffer, zone.offset, zone.bytes}), zone.bytes,
                             poison_seed(buffer), zone.offset);
      if (!wrong) continue;
      uint64_t offset = zone.offset + *wrong;
      std::string where = fmt::format("at offset {}, outside of everything this step uses", offset);
      for (const ByteRange& region : regions) {
        if (region.end() != zone.offset || *wrong >= tasks::kGuardBytes) continue;
        where = fmt::format("{} bytes behind the end of this step's data", *wrong);
      }
      Evidence evidence;
      evidence.verdict = Verdict::kMemoryError;
      evidence.reason = "out_of_bounds";
      evidence.finding.message = fmt::format("{} was written {}", pool_.spec(buffer).label, where);
      evidence.finding.details["buffer"] = pool_.spec(buffer).label;
      evidence.finding.details["offset"] = offset;
      found.push_back(std::move(evidence));
      break;
    }
  }
}

std::vector<Evidence> Step::judge(uint64_t time_ps) {
  std::vector<Evidence> found;
  judge_guard_zones(found);
  for (size_t i = 0; i < plan_.outputs.size(); ++i) judge_output(i, found);
  for (size_t i = 0; plan_.inputs_constant && i < plan_.inputs.size(); ++i) judge_input(i, found);
  for (Evidence& evidence : found) {
    evidence.finding.rank = rank_;
    evidence.finding.case_id = case_.id;
    evidence.finding.step = key_.step;
    evidence.finding.time_ps = time_ps;
  }
  return found;
}

}  // namespace cb::harness
