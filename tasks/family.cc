#include "tasks/family.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/check.h"
#include "tasks/families.h"

namespace cb::tasks {
namespace {

constexpr size_t kMaxMismatches = 8;

}  // namespace

uint64_t StepKey::seed(std::string_view purpose) const {
  CB_CHECK(key != nullptr, "StepKey without a run key");
  return key->seed(fmt::format("{}\n{}\n{}\n{}", task_hash, case_id, step, purpose));
}

void Comparison::merge(const Comparison& other) {
  elements += other.elements;
  wrong += other.wrong;
  first.insert(first.end(), other.first.begin(), other.first.end());
  std::stable_sort(first.begin(), first.end(),
                   [](const Mismatch& a, const Mismatch& b) { return a.element < b.element; });
  if (first.size() > kMaxMismatches) first.resize(kMaxMismatches);
}

const Family* find_family(std::string_view name) {
  for (const Family* family : {collective_family(), p2p_family(), utility_family()}) {
    if (family->name() == name) return family;
  }
  return nullptr;
}

}  // namespace cb::tasks
