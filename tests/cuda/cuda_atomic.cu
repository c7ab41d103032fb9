// cuda::atomic and cuda::atomic_ref of libcu++: each operation, order and scope, and hand-overs
// between threads, blocks, and the host.

#include <cuda/atomic>

#include "array.h"

template <typename T, cuda::thread_scope scope>
__device__ void operate(cuda::atomic<T, scope>* a) {
  a->fetch_add(3, cuda::memory_order_relaxed);
  a->fetch_sub(1, cuda::memory_order_acquire);
  a->fetch_max(T{7}, cuda::memory_order_release);
  ++*a;
  (*a)--;
  *a += 2;
}

template <typename T, cuda::thread_scope scope>
__device__ bool compare_and_exchange(cuda::atomic<T, scope>* a, T from, T to) {
  T expected = from;
  bool swapped = a->compare_exchange_strong(expected, to, cuda::memory_order_acq_rel,
                                            cuda::memory_order_relaxed);
  T other = from;
  bool again = a->compare_exchange_strong(other, to, cuda::memory_order_seq_cst);
  return swapped && !again && other == to && a->exchange(from) == to && a->load() == from;
}

struct Atomics {
  cuda::atomic<int, cuda::thread_scope_system> system;
  cuda::atomic<unsigned long long, cuda::thread_scope_device> device;
  cuda::atomic<int, cuda::thread_scope_block> block;
  cuda::atomic<unsigned, cuda::thread_scope_device> bits;
  cuda::atomic<float, cuda::thread_scope_device> single;
};

__global__ void count(Atomics* a, int* plain, short* narrow) {
  operate(&a->system);
  operate(&a->device);
  operate(&a->block);
  a->bits.fetch_or(1u << threadIdx.x % 32, cuda::memory_order_relaxed);
  a->single.fetch_add(0.5f);
  cuda::atomic_ref<int, cuda::thread_scope_device> ref(*plain);
  ref.fetch_add(2, cuda::memory_order_seq_cst);
  cuda::atomic_ref<short, cuda::thread_scope_device> small(*narrow);
  small.fetch_add(1, cuda::memory_order_relaxed);
}

__global__ void swap(Atomics* a, int* ok) {
  *ok = compare_and_exchange(&a->system, 5, 6) &&
        compare_and_exchange(&a->device, 8ull, 1ull << 40) &&
        compare_and_exchange(&a->block, -1, 1);
}

/// Block 0 produces, block 1 consumes: values are ordered by the flag alone.
__global__ void hand_over(cuda::atomic<int, cuda::thread_scope_device>* turn, int* data, int* sum) {
  for (int i = 1; i <= 20; ++i) {
    if (blockIdx.x == 0) {
      while (turn->load(cuda::memory_order_acquire) != 2 * i - 2) {
      }
      *data = i * i;
      turn->store(2 * i - 1, cuda::memory_order_release);
    } else {
      while (turn->load(cuda::memory_order_acquire) != 2 * i - 1) {
      }
      *sum += *data;
      turn->store(2 * i, cuda::memory_order_release);
    }
  }
}

/// Doubles what the host puts into the mailbox.
__global__ void answer(cuda::atomic<int, cuda::thread_scope_system>* mailbox) {
  for (int i = 0; i < 5; ++i) {
    int question;
    while ((question = mailbox->load(cuda::memory_order_acquire)) <= 0) {
    }
    mailbox->store(-2 * question, cuda::memory_order_release);
  }
}

int main() {
  Array<Atomics> a(1);
  Array<int> plain(4);
  Array<short> narrow(2);
  count<<<2, 32>>>(a.device, plain.device, narrow.device);
  a.to_host();
  plain.to_host();
  narrow.to_host();
  // Each of 64 threads adds 4, once from 7 on at the latest.
  const Atomics& result = a.host[0];
  EXPECT(result.system.load() >= 64 * 4 && result.system.load() <= 64 * 4 + 7);
  EXPECT(result.device.load() >= 64 * 4 && result.device.load() <= 64 * 4 + 7);
  EXPECT_EQUAL(result.bits.load(), 0xffffffff);
  EXPECT_EQUAL(result.single.load(), 32);
  EXPECT_EQUAL(plain.host[0], 128);
  EXPECT_EQUAL(narrow.host[0], 64);

  new (&a.host[0].system) cuda::atomic<int, cuda::thread_scope_system>(5);
  a.host[0].device.store(8);
  a.host[0].block.store(-1);
  a.to_device();
  swap<<<1, 1>>>(a.device, plain.device);
  plain.to_host();
  EXPECT_EQUAL(plain.host[0], 1);

  Array<cuda::atomic<int, cuda::thread_scope_device>> turn(1);
  Array<int> data(2);
  hand_over<<<2, 1>>>(turn.device, data.device, data.device + 1);
  data.to_host();
  EXPECT_EQUAL(data.host[1], 2870);

  cuda::atomic<int, cuda::thread_scope_system>* mailbox;
  REQUIRE_OK(cudaHostAlloc(&mailbox, sizeof *mailbox, cudaHostAllocMapped));
  new (mailbox) cuda::atomic<int, cuda::thread_scope_system>(0);
  answer<<<1, 1>>>(mailbox);
  for (int question = 1; question <= 5; ++question) {
    mailbox->store(question, cuda::memory_order_release);
    while (mailbox->load(cuda::memory_order_acquire) > 0) {
      cudaStreamQuery(nullptr);
    }
    EXPECT_EQUAL(mailbox->exchange(0), -2 * question);
  }
  EXPECT_OK(cudaDeviceSynchronize());
  cudaFreeHost(mailbox);
  return failures();
}
