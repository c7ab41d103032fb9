#pragma once

#include <cstdint>

namespace cb::sim {

class Call;

void pool_create(Call& call);
void pool_default(Call& call);
void pool_destroy(Call& call);
void pool_trim(Call& call);
void pool_get(Call& call);
void pool_set(Call& call);
void pool_get_access(Call& call);
void pool_set_access(Call& call);
void pool_export(Call& call);
void pool_import(Call& call);
void pool_export_pointer(Call& call);
void pool_import_pointer(Call& call);
void malloc_async(Call& call);
void free_async(Call& call);

/// cudaFree of memory from a pool.
void free_pooled_when_idle(Call& call, uint64_t base);

}  // namespace cb::sim
