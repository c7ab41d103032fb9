#pragma once

// Copies and fills: what may be touched, how long it takes, and the bytes themselves, which move
// when the copy ends.

namespace cb::sim {

class Call;

void memcpy_request(Call& call);
void memcpy_2d(Call& call);
void memset_request(Call& call);

}  // namespace cb::sim
