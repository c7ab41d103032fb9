#include "simulator/shims/simhost/parking.h"

#include <atomic>

#include "simulator/shims/client/mutex.h"
#include "simulator/shims/client/thread.h"
#include "simulator/shims/simhost/virtual_time.h"

namespace cb::sim::simhost {
namespace {

client::Mutex mutex;
Waiter* first = nullptr;
/// Lets a wake-up with nobody waiting cost one load.
std::atomic<int> num_waiting{0};

}  // namespace

void enqueue(Waiter& waiter, const void* object) {
  waiter.object = object;
  waiter.thread_id = client::this_thread().id;
  client::Lock lock(mutex);
  Waiter** end = &first;
  while (*end != nullptr) end = &(*end)->next;
  *end = &waiter;
  num_waiting.fetch_add(1);
}

void sleep_parked(Waiter& waiter, uint64_t deadline_ns) {
  for (;;) {
    {
      client::Lock lock(mutex);
      if (waiter.woken) return;
    }
    uint64_t now = now_ns();
    if (now >= deadline_ns) return;
    // A wake that was meant for an earlier wait may end this sleep too early: hence the loop.
    if (!sleep_until_woken_ns(deadline_ns - now)) return;
  }
}

bool dequeue(Waiter& waiter) {
  client::Lock lock(mutex);
  if (waiter.woken) return true;
  for (Waiter** at = &first; *at != nullptr; at = &(*at)->next) {
    if (*at != &waiter) continue;
    *at = waiter.next;
    num_waiting.fetch_sub(1);
    break;
  }
  return false;
}

int wake(const void* object, int count) {
  if (num_waiting.load() == 0 || !in_virtual_time()) return 0;
  client::Lock lock(mutex);
  int num_woken = 0;
  for (Waiter** at = &first; *at != nullptr && num_woken < count;) {
    Waiter* waiter = *at;
    if (waiter->object != object) {
      at = &waiter->next;
      continue;
    }
    *at = waiter->next;
    num_waiting.fetch_sub(1);
    waiter->woken = true;
    wake_thread(waiter->thread_id);
    ++num_woken;
  }
  return num_woken;
}

}  // namespace cb::sim::simhost
