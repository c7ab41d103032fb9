#pragma once

// Requests about threads and time.

namespace cb::sim {

class Call;

void hello(Call& call);
void bye(Call& call);
void thread_new(Call& call);
void thread_join(Call& call);
void thread_wake(Call& call);
void time_now(Call& call);
void sleep_request(Call& call);
void relax(Call& call);
void kernel_output(Call& call);

}  // namespace cb::sim
