// Grid-wide synchronisation, scoped atomics and warp collectives.
#include <cooperative_groups.h>
#include <cuda/atomic>

namespace cg = cooperative_groups;

__global__ void barrier(int* data, int* flag) {
  auto grid = cg::this_grid();
  auto warp = cg::tiled_partition<32>(cg::this_thread_block());
  cuda::atomic_ref<int, cuda::thread_scope_system> ref(*flag);
  ref.fetch_add(1, cuda::memory_order_release);
  grid.sync();
  while (ref.load(cuda::memory_order_acquire) < static_cast<int>(gridDim.x)) {
  }
  int sum = data[grid.thread_rank()];
  for (int step = 16; step > 0; step /= 2) sum += warp.shfl_down(sum, step);
  int same = __match_any_sync(0xffffffffu, sum) + __reduce_add_sync(0xffffffffu, sum);
  if (warp.thread_rank() == 0) atomicAdd(data, sum + same);
  int expected = 0;
  ref.compare_exchange_strong(expected, 5, cuda::memory_order_acq_rel);
  data[1] = expected + __any_sync(0xffffffffu, sum > 3);
}
