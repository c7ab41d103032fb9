#pragma once

// Requests for memory: allocation, permissions and what a pointer is.

namespace cb::sim {

class Call;

void malloc_request(Call& call);
void free_request(Call& call);
void host_alloc(Call& call);
void host_free(Call& call);
void pointer_info(Call& call);
void memory_info(Call& call);
void peer_access(Call& call);
void device_reset(Call& call);

}  // namespace cb::sim
