#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "tasks/blob_builder.h"
#include "tasks/card.h"
#include "tasks/poison.h"

/// What the families share about the buffers of a case and the draws of its steps.
namespace cb::tasks {

/// `first .. first + count - 1` in secret order.
std::vector<uint32_t> shuffled_buffers(const StepKey& key, std::string_view purpose, uint32_t first,
                                       uint32_t count);

/// The running number of a call within its case: the index of its draws.
uint64_t draw_index(const Case& test_case, const StepKey& key, int call);

/// The key of the step before; `key.step` is at least 1.
StepKey previous(StepKey key);

/// Appends the case's pool of buffers for one role, with room for `bytes` between guard zones.
void add_buffers(const Case& test_case, const std::string& role, uint64_t bytes,
                 std::vector<BufferSpec>& specs);

/// Appends the array of all buffers' spans to a cb_args whose `buffers` field lies at `at`.
void put_buffers(const Case& test_case, const std::vector<BufferSpec>& specs, size_t at,
                 BlobBuilder& builder);

/// Throws Error(kConfig) unless every value of the named numbers is a multiple of `alignment`; a
/// range is refused where that is not 1.
void require_aligned(const Case& test_case, std::initializer_list<std::string_view> names,
                     uint64_t alignment);

/// "output", or "output of call 2" where a step has several.
std::string call_label(const std::string& role, const Case& test_case, int call);

/// Whether a wrong candidate is certain to meet steps with something to do, whatever the run key.
struct WorkSteps {
  bool some = false;
  bool after_first_step = false;
};
/// `amount` names the number that is 0 where there is nothing to do; `bytes` is the largest region
/// of a rank. False for large cases: the wrong candidates are slow, and the oracle is the same.
WorkSteps work_steps(const Case& test_case, std::string_view amount, uint64_t bytes);

}  // namespace cb::tasks
