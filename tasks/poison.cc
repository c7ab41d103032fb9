#include "tasks/poison.h"

#include <fmt/format.h>

#include "tasks/content.h"

namespace cb::tasks {

std::shared_ptr<const Content> poison(const StepKey& key, int rank, uint32_t buffer) {
  return std::make_shared<RandomContent>(poison_seed(key, rank, buffer));
}

uint64_t poison_seed(const StepKey& key, int rank, uint32_t buffer) {
  return key.seed(fmt::format("poison rank {} buffer {}", rank, buffer));
}

}  // namespace cb::tasks
