#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tasks/family.h"
#include "tasks/numbers.h"

namespace cb::tasks {

/// Something that a wrong output often holds instead, so that a finding can name it.
struct Suspect {
  std::string note;                        ///< "own input", "rank 2's data"
  std::shared_ptr<const Content> content;  ///< aligned with the output region
  uint64_t bytes = 0;                      ///< how much of the region it covers
};

/// Compares a region, bit by bit, with a content that can be produced piece by piece.
class ContentCheck final : public OutputCheck {
 public:
  ContentCheck(std::string label, Region region, Dtype dtype,
               std::shared_ptr<const Content> expected, std::vector<Suspect> suspects)
      : OutputCheck(std::move(label), region),
        dtype_(dtype),
        expected_(std::move(expected)),
        suspects_(std::move(suspects)) {}

  Comparison compare(uint64_t offset, std::span<const std::byte> actual) const override;

 private:
  /// The note of the first suspect that explains the element at `at` of `actual`, or "".
  std::string explain(uint64_t offset, std::span<const std::byte> actual, size_t at) const;

  Dtype dtype_;
  std::shared_ptr<const Content> expected_;
  std::vector<Suspect> suspects_;
};

/// The suspects of every output: zeros and the poison that was there before.
std::vector<Suspect> common_suspects(const StepKey& key, int rank, const Region& region);

}  // namespace cb::tasks
