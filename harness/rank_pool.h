#pragma once

#include <memory>
#include <optional>
#include <string>

#include "base/fd.h"
#include "base/file.h"
#include "base/process.h"
#include "harness/platform.h"

namespace cb::harness {

/// A private folder that no killed process leaves behind for good: the next one of this user
/// removes those whose owner is gone.
class PrivateFolder {
 public:
  PrivateFolder();
  const std::string& path() const { return folder_.path(); }

 private:
  TempDir folder_;
  UniqueFd lock_;
};

/// A range of box users that no other process of this machine uses at the same time.
class BoxSlots {
 public:
  static constexpr unsigned kSlotsPerLane = 10;

  /// Waits up to a minute for a free range. Throws Error(kSystem) then.
  BoxSlots();
  unsigned first() const { return first_; }

 private:
  UniqueFd lock_;
  unsigned first_ = 0;
};

/// `mpirun` with a pool of commbench-rank, started at once and again after it failed.
class RankPool final : public Lane {
 public:
  RankPool(const Layout& layout, std::string profile, int num_ranks);
  ~RankPool() override;

  unsigned build_slot() const override { return slots_.first() + BoxSlots::kSlotsPerLane - 1; }
  std::vector<RankReport> run(Job job, const std::string& library,
                              const std::function<void(const std::string&)>& progress) override;

 private:
  void start();
  void connect();
  std::vector<RankReport> converse(const Job& job, const std::string& library,
                                   const std::function<void(const std::string&)>& progress);
  std::string last_words();

  Layout layout_;
  std::string profile_;
  int num_ranks_;
  BoxSlots slots_;
  std::optional<PrivateFolder> folder_;
  UniqueFd listener_;
  UniqueFd connection_;
  std::optional<Process> mpirun_;
};

}  // namespace cb::harness
