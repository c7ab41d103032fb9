#pragma once

// What happened when, for people who look at one case: spans of virtual time in rows, one process
// for each rank, in the Trace Event Format that Perfetto and chrome://tracing open.

#include <array>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/json.h"
#include "simulator/exec/engine.h"

namespace cb::sim {

class Timeline : public EngineObserver {
 public:
  /// Rows of one kind lie below each other. Where spans of one key overlap they get several rows.
  enum class Kind : uint8_t { kPhase, kCall, kStream, kBlock, kWait };
  static constexpr size_t kNumKinds = 5;
  /// At most that many spans of a kind are kept, the first; and counter values of all links.
  static constexpr size_t kMaxSpans = 6000;
  static constexpr size_t kMaxSamples = 6000;
  /// Overlapping spans of one key get at most that many rows; others are left out.
  static constexpr size_t kMaxRows = 16;

  explicit Timeline(const Profile& profile) : profile_(profile) {}
  /// Whose bytes the links' counters show.
  void watch(const Resources& resources) { resources_ = &resources; }

  /// `key` is the host thread or stream; `arguments` the text of a JSON object, or nothing.
  void add(Kind kind, int rank, uint64_t key, const std::string& name, Time start, Time end,
           std::string arguments = {});
  void phase_started(int rank, const std::string& name, Time time);
  void phase_ended(int rank, Time time);
  /// Counters of the links of a device, at most one value in a microsecond.
  void sample_links(int device, Time time);

  void block_started(const KernelLaunch& launch, uint64_t run, uint64_t block, uint32_t sm,
                     Time time) override;
  void block_ended(uint64_t run, uint64_t block, Time time) override;
  void wait_started(uint64_t number, const Waiter& waiter, Time time) override;
  void wait_ended(uint64_t number, Time time) override;

  /// The trace as of `time`: what has not ended is drawn up to there and marked "unfinished".
  /// "otherData" says how many spans and values were left out, by kind; all times are microseconds.
  Json to_json(Time time) const;

 private:
  struct Span {
    Kind kind = Kind::kPhase;
    int rank = 0;
    uint64_t key = 0;
    std::string name;
    Time start = 0;
    Time end = 0;
    std::string arguments;
    bool is_open = false;
  };
  struct Sample {
    int from = 0;
    int to = 0;
    Time time = 0;
    uint64_t bytes = 0;
  };
  bool has_room(Kind kind);
  void write(std::vector<Span> spans, Json& trace) const;

  const Profile& profile_;
  const Resources* resources_ = nullptr;
  std::vector<Span> spans_;
  std::vector<Sample> samples_;
  std::array<size_t, kNumKinds> kept_ = {};
  std::array<size_t, kNumKinds> dropped_ = {};
  size_t dropped_samples_ = 0;
  std::map<int, Span> phases_;                            ///< open ones, by rank
  std::map<std::pair<uint64_t, uint64_t>, Span> blocks_;  ///< resident, by run and block
  std::map<uint64_t, Span> waits_;                        ///< open ones, by number
  std::map<int, Time> sampled_;                           ///< last time, by device
  std::map<std::pair<int, int>, uint64_t> last_bytes_;
};

}  // namespace cb::sim
