#pragma once

// Managed memory (cudaMallocManaged): pages that the host and all devices of the process see, as
// those of pinned memory. An allocation is in host memory until it is prefetched to a device, and
// again when it is prefetched back; where it is decides what accesses of kernels cost. Hardware
// moves single pages, and moves them when they are touched; here a prefetch of at least half of an
// allocation moves all of it, and a touch moves nothing, but goes over PCIe.

namespace cb::sim {

class Call;

void managed_prefetch(Call& call);

}  // namespace cb::sim
