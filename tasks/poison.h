#pragma once

#include <cstdint>
#include <memory>

#include "tasks/family.h"

namespace cb::tasks {

/// Every region of a pool buffer lies at least this far from both ends of it. The bytes around are
/// guard zones. In a sparse buffer the guard zones that are filled and compared are the
/// kGuardBytes before and after each region of the step; in others, all bytes beside regions.
inline constexpr uint64_t kGuardBytes = 4096;

/// What the grader fills outputs and guard zones with before a step: random bytes, different for
/// every rank, buffer and step, addressed by their offset in the buffer.
std::shared_ptr<const Content> poison(const StepKey& key, int rank, uint32_t buffer);

/// The same bytes as a stream: the little-endian words CounterRandom(poison_seed(...)).value(i).
uint64_t poison_seed(const StepKey& key, int rank, uint32_t buffer);

}  // namespace cb::tasks
