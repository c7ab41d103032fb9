// pthread_barrier_t: the C library's is not looked into, so barriers are counted here.

#include <pthread.h>
#include <cerrno>

#include "simulator/shims/client/list.h"
#include "simulator/shims/client/mutex.h"
#include "simulator/shims/simhost/parking.h"
#include "simulator/shims/simhost/real.h"
#include "simulator/shims/simhost/virtual_time.h"

using namespace cb::sim::simhost;
namespace client = cb::sim::client;

namespace {

Real<int(pthread_barrier_t*, const pthread_barrierattr_t*, unsigned)> real_init(
    "pthread_barrier_init");
Real<int(pthread_barrier_t*)> real_destroy("pthread_barrier_destroy");
Real<int(pthread_barrier_t*)> real_wait("pthread_barrier_wait");

struct KnownBarrier {
  pthread_barrier_t* barrier;
  unsigned count;
  unsigned arrived;
};

client::Mutex mutex;
client::List<KnownBarrier> barriers;

/// The caller holds the lock.
KnownBarrier* find(pthread_barrier_t* barrier) {
  for (size_t at = 0; at < barriers.size(); ++at) {
    if (barriers[at].barrier == barrier) return &barriers[at];
  }
  return nullptr;
}

}  // namespace

CB_INTERPOSED int pthread_barrier_init(pthread_barrier_t* barrier,
                                       const pthread_barrierattr_t* attributes,
                                       unsigned count) noexcept {
  int error = real_init(barrier, attributes, count);
  if (error != 0) return error;
  client::Lock lock(mutex);
  if (KnownBarrier* known = find(barrier)) {
    *known = {barrier, count, 0};
  } else {
    barriers.push({barrier, count, 0});
  }
  return 0;
}

CB_INTERPOSED int pthread_barrier_destroy(pthread_barrier_t* barrier) noexcept {
  {
    client::Lock lock(mutex);
    for (size_t at = 0; at < barriers.size(); ++at) {
      if (barriers[at].barrier != barrier) continue;
      barriers.erase(at);
      break;
    }
  }
  return real_destroy(barrier);
}

CB_INTERPOSED int pthread_barrier_wait(pthread_barrier_t* barrier) noexcept {
  if (!in_virtual_time()) return real_wait(barrier);
  Waiter waiter;
  {
    client::Lock lock(mutex);
    KnownBarrier* known = find(barrier);
    if (known == nullptr) return EINVAL;
    if (++known->arrived < known->count) {
      enqueue(waiter, barrier);
    } else {
      known->arrived = 0;
      wake(barrier, kAllWaiters);
      return PTHREAD_BARRIER_SERIAL_THREAD;
    }
  }
  sleep_parked(waiter, kNoDeadline);
  dequeue(waiter);
  return 0;
}
