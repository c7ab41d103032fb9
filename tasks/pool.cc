#include "tasks/pool.h"

#include <commbench/task.h>
#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "base/random.h"

namespace cb::tasks {
namespace {

constexpr uint64_t kBufferAlignment = 512;
constexpr uint64_t kMaxWrongModeBytes = 256 << 10;

}  // namespace

std::vector<uint32_t> shuffled_buffers(const StepKey& key, std::string_view purpose, uint32_t first,
                                       uint32_t count) {
  std::vector<uint32_t> order(count);
  std::iota(order.begin(), order.end(), first);
  CounterRandom random(key.seed(purpose));
  for (uint32_t left = count; left > 1; --left) {
    std::swap(order[left - 1], order[random.below(left, left)]);
  }
  return order;
}

uint64_t draw_index(const Case& test_case, const StepKey& key, int call) {
  return static_cast<uint64_t>(key.step) * static_cast<uint64_t>(test_case.calls) +
         static_cast<uint64_t>(call);
}

StepKey previous(StepKey key) {
  --key.step;
  return key;
}

void add_buffers(const Case& test_case, const std::string& role, uint64_t bytes,
                 std::vector<BufferSpec>& specs) {
  uint64_t total = kGuardBytes + bytes + kGuardBytes;
  total = (total + kBufferAlignment - 1) / kBufferAlignment * kBufferAlignment;
  for (int i = 0; i < test_case.pool; ++i) {
    BufferSpec spec;
    spec.label = fmt::format("{} {}", role, i);
    spec.bytes = total;
    spec.peer_access = test_case.buffers != BufferKind::kLocal;
    spec.multicast = test_case.buffers == BufferKind::kMulticast;
    specs.push_back(std::move(spec));
  }
}

void put_buffers(const Case& test_case, const std::vector<BufferSpec>& specs, size_t at,
                 BlobBuilder& builder) {
  size_t spans = builder.reserve(specs.size() * sizeof(cb_span));
  builder.put_pointer(at, spans);
  std::vector<uint64_t> start(static_cast<size_t>(test_case.world_size), 0);
  for (size_t i = 0; i < specs.size(); ++i) {
    builder.put_span(spans + i * sizeof(cb_span),
                     {&specs[i], static_cast<uint32_t>(i), start, specs[i].bytes});
  }
}

void require_aligned(const Case& test_case, std::initializer_list<std::string_view> names,
                     uint64_t alignment) {
  for (std::string_view name : names) {
    const Choice& choice = test_case.number(name);
    std::vector<uint64_t> values = choice.values();
    if (values.empty() && alignment > 1) {
      throw Error(ErrorCode::kConfig,
                  fmt::format("{}: give a list: a range has values between elements", name));
    }
    for (uint64_t value : values) {
      if (value % alignment != 0) {
        throw Error(ErrorCode::kConfig, fmt::format("{}: {} is not a multiple of the element's {} "
                                                    "bytes",
                                                    name, value, alignment));
      }
    }
  }
}

std::string call_label(const std::string& role, const Case& test_case, int call) {
  return test_case.calls == 1 ? role : fmt::format("{} of call {}", role, call + 1);
}

WorkSteps work_steps(const Case& test_case, std::string_view amount, uint64_t bytes) {
  if (bytes > kMaxWrongModeBytes) return {};
  const Choice& choice = test_case.number(amount);
  if (choice.min() > 0) return {true, test_case.min_steps > 1};
  const std::vector<uint64_t>& values = choice.values();
  auto busy = std::count_if(values.begin(), values.end(), [](uint64_t v) { return v > 0; });
  // The loader asks for enough steps to deal every value of a list at least once.
  return {busy > 0, busy > test_case.calls};
}

}  // namespace cb::tasks
