#pragma once

// Requests of virtual memory management and multicast objects.

namespace cb::sim {

class Call;

void mem_create(Call& call);
void mem_release(Call& call);
void mem_reserve(Call& call);
void mem_unreserve(Call& call);
void mem_map(Call& call);
void mem_unmap(Call& call);
void mem_set_access(Call& call);
void mem_get_access(Call& call);
void mem_retain(Call& call);
void mem_properties(Call& call);
void mem_export(Call& call);
void mem_import(Call& call);
void multicast_create(Call& call);
void multicast_add(Call& call);
void multicast_bind(Call& call);
void multicast_bind_address(Call& call);
void multicast_unbind(Call& call);

}  // namespace cb::sim
