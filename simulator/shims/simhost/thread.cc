// Host threads. Each gets its connection before it runs, from the thread that creates it, so that
// the simulator knows it and its clock from the start; its end is announced when it really ends,
// after every destructor; joining it is a call, because the joining thread must not hold up virtual
// time.

#include <pthread.h>
#include <cerrno>
#include <climits>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <ctime>

#include "simulator/shims/client/call.h"
#include "simulator/shims/client/list.h"
#include "simulator/shims/client/mutex.h"
#include "simulator/shims/client/process.h"
#include "simulator/shims/client/thread.h"
#include "simulator/shims/simhost/real.h"
#include "simulator/shims/simhost/virtual_time.h"

using namespace cb::sim::simhost;
namespace client = cb::sim::client;

namespace {

using StartRoutine = void*(void*);

Real<int(pthread_t*, const pthread_attr_t*, StartRoutine*, void*)> real_create("pthread_create");
Real<int(pthread_t, void**)> real_join("pthread_join");
Real<int(pthread_t, void**)> real_tryjoin("pthread_tryjoin_np");
Real<int(pthread_t, void**, const timespec*)> real_timedjoin("pthread_timedjoin_np");
Real<int(pthread_t, void**, clockid_t, const timespec*)> real_clockjoin("pthread_clockjoin_np");

struct Start {
  StartRoutine* routine;
  void* argument;
  client::NewConnection connection;
};

/// Which thread of the simulator a pthread_t is. A pthread_t that comes round again replaces its
/// predecessor, which was detached.
struct KnownThread {
  pthread_t handle;
  uint32_t id;
};

client::Mutex mutex;
client::List<KnownThread> known_threads;

void remember(pthread_t handle, uint32_t id) {
  client::Lock lock(mutex);
  for (size_t at = 0; at < known_threads.size(); ++at) {
    if (known_threads[at].handle != handle) continue;
    // Both the creator and the thread itself note it; ids grow, so that the later thread wins.
    if (known_threads[at].id < id) known_threads[at].id = id;
    return;
  }
  known_threads.push({handle, id});
}

bool find(pthread_t handle, uint32_t* id) {
  client::Lock lock(mutex);
  for (size_t at = 0; at < known_threads.size(); ++at) {
    if (known_threads[at].handle != handle) continue;
    *id = known_threads[at].id;
    return true;
  }
  return false;
}

void forget(pthread_t handle) {
  client::Lock lock(mutex);
  for (size_t at = 0; at < known_threads.size(); ++at) {
    if (known_threads[at].handle == handle) {
      known_threads.erase(at);
      return;
    }
  }
}

pthread_key_t end_key;
pthread_once_t end_key_once = PTHREAD_ONCE_INIT;

/// Runs in every round of a thread's key destructors and says goodbye in the last, so that other
/// destructors may still use CUDA.
void on_thread_end(void* value) {
  auto round = reinterpret_cast<uintptr_t>(value);
  if (round < PTHREAD_DESTRUCTOR_ITERATIONS) {
    pthread_setspecific(end_key, reinterpret_cast<void*>(round + 1));
    return;
  }
  client::end_connection(false);
}

void make_end_key() { pthread_key_create(&end_key, on_thread_end); }

/// From here on the calling thread announces its end.
void announce_end() {
  pthread_once(&end_key_once, make_end_key);
  pthread_setspecific(end_key, reinterpret_cast<void*>(uintptr_t{1}));
}

/// For a main thread that ends by pthread_exit while others go on.
__attribute__((constructor)) void announce_main_threads_end() { announce_end(); }

void* run_thread(void* argument) {
  Start start = *static_cast<Start*>(argument);
  free(argument);
  cb::sim::HelloReply hello;
  if (client::adopt_connection(start.connection, &hello, nullptr)) {
    announce_end();
    remember(pthread_self(), start.connection.thread_id);
  }
  return start.routine(start.argument);
}

/// Returns when the thread has ended in virtual time, which its real end follows at once.
void join_in_virtual_time(pthread_t thread) {
  uint32_t id;
  if (!in_virtual_time() || pthread_equal(thread, pthread_self()) || !find(thread, &id)) return;
  client::Call(cb::sim::Op::kThreadJoin).args(id).wait_raw();
}

int join_until(pthread_t thread, void** result, clockid_t clock, const timespec* time) {
  int error = EBUSY;
  poll_until(ns_of(clock, *time), [&] {
    error = real_tryjoin(thread, result);
    return error != EBUSY;
  });
  if (error == 0) forget(thread);
  return error == EBUSY ? ETIMEDOUT : error;
}

}  // namespace

CB_INTERPOSED int pthread_create(pthread_t* thread, const pthread_attr_t* attributes,
                                 StartRoutine* routine, void* argument) noexcept {
  if (!in_virtual_time()) return real_create(thread, attributes, routine, argument);
  auto* start = static_cast<Start*>(malloc(sizeof(Start)));
  if (start == nullptr) return EAGAIN;
  *start = Start{routine, argument, {}};
  if (client::request_connection(&start->connection) != cudaSuccess) {
    free(start);
    // Without the simulator the thread is an ordinary one; a refusal is an exhausted quota.
    return in_virtual_time() ? EAGAIN : real_create(thread, attributes, routine, argument);
  }
  client::NewConnection connection = start->connection;
  int error = real_create(thread, attributes, run_thread, start);
  if (error != 0) {
    client::abandon_connection(connection);
    free(start);
    return error;
  }
  remember(*thread, connection.thread_id);
  return 0;
}

CB_INTERPOSED int pthread_join(pthread_t thread, void** result) {
  join_in_virtual_time(thread);
  int error = real_join(thread, result);
  if (error == 0) forget(thread);
  return error;
}

CB_INTERPOSED int pthread_tryjoin_np(pthread_t thread, void** result) noexcept {
  int error = real_tryjoin(thread, result);
  if (error == 0) forget(thread);
  if (error == EBUSY) relax();
  return error;
}

CB_INTERPOSED int pthread_timedjoin_np(pthread_t thread, void** result, const timespec* time) {
  if (!in_virtual_time() || time == nullptr) return real_timedjoin(thread, result, time);
  return join_until(thread, result, CLOCK_REALTIME, time);
}

CB_INTERPOSED int pthread_clockjoin_np(pthread_t thread, void** result, clockid_t clock,
                                       const timespec* time) {
  if (!in_virtual_time() || time == nullptr) return real_clockjoin(thread, result, clock, time);
  return join_until(thread, result, clock, time);
}
