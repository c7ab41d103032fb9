#include "simulator/daemon/host_process.h"

#include <algorithm>

namespace cb::sim {

HostThread& HostProcess::new_thread(Time clock) {
  auto made = std::make_unique<HostThread>();
  made->process = this;
  made->id = static_cast<uint32_t>(threads.size() + 1);
  made->clock = clock;
  threads.push_back(std::move(made));
  return *threads.back();
}

HostThread* HostProcess::thread(uint64_t id) {
  return id >= 1 && id <= threads.size() ? threads[id - 1].get() : nullptr;
}

Time HostProcess::clock() const {
  Time latest = 0;
  for (const auto& thread : threads) latest = std::max(latest, thread->clock);
  return latest;
}

}  // namespace cb::sim
