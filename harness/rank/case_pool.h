#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "harness/evidence.h"
#include "harness/host/host_protocol.h"
#include "harness/rank/regions.h"
#include "simulator/client/rank_client.h"
#include "tasks/card.h"

namespace cb::harness {

/// A C struct with every address in it but those of the struct itself.
struct ResolvedBlob {
  std::vector<std::byte> bytes;
  std::vector<host::Relocation> relocations;
};

/// The grader's buffers of one case on one rank.
class CasePool {
 public:
  /// Collective: allocates and shares, where the job has no other buffers. Throws Error(kRemote).
  CasePool(sim::RankClient& client, const tasks::Card& card, const tasks::Case& test_case,
           int rank);

  ResolvedBlob resolve(const tasks::Blob& blob) const;
  uint64_t address(const tasks::Region& region) const;
  const tasks::BufferSpec& spec(uint32_t buffer) const { return specs_[buffer]; }
  size_t size() const { return specs_.size(); }

 private:
  std::vector<tasks::BufferSpec> specs_;
  std::vector<sim::RankClient::SharedBuffer> shared_;
  size_t rank_;
};

/// One step of a case on one rank: what is written before it, what takes effect with it, and what
/// must have come of it.
class Step {
 public:
  Step(sim::RankClient& client, const CasePool& pool, const tasks::Case& test_case,
       const tasks::StepKey& key, int rank, tasks::StepPlan plan);

  const std::vector<tasks::Blob>& calls() const { return plan_.calls; }
  /// Poisons the pool and, for inputs that live through the step, writes them.
  void prepare();
  /// What the simulator is to do when this rank starts and is done.
  sim::RankClient::PhasePlan phase_plan(const tasks::Card& card) const;
  /// Everything that is wrong after the step; `time_ps` is when it came out.
  std::vector<Evidence> judge(uint64_t time_ps);

 private:
  std::vector<ByteRange> regions_of(uint32_t buffer, bool inputs, bool outputs) const;
  void read(size_t snapshot_index, const tasks::Region& region, uint64_t offset,
            std::vector<std::byte>& bytes);
  void judge_output(size_t index, std::vector<Evidence>& found);
  void judge_input(size_t index, std::vector<Evidence>& found);
  void judge_guard_zones(std::vector<Evidence>& found);
  uint64_t poison_seed(uint32_t buffer) const;
  bool by_rank() const { return plan_.lifetime == tasks::Lifetime::kRank; }

  sim::RankClient& client_;
  const CasePool& pool_;
  const tasks::Case& case_;
  const tasks::StepKey& key_;
  int rank_;
  tasks::StepPlan plan_;
};

}  // namespace cb::harness
