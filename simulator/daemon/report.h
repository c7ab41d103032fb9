#pragma once

// What the daemon knows about a job, as JSON:
//   {"time_ps": n, "profile": s, "timed": b,
//    "end": null | {"kind": s, "rank": n, "time_ps": n},
//    "findings": [{"kind", "time_ps", "rank", "device", "kernel", "file", "line", "instruction",
//                  "ptx_line", "block", "thread", "detail", "address", "bytes", "write"}],
//    "profile_lines": as LineLedger::to_json() has it, "timeline": as Timeline::to_json(), each
//    only where DaemonOptions asks for it, "num_waiters": n, "waiters": [{"rank", ...,
//    "num_threads", "waits_for", "address", "value"}], "streams": [{"rank", "device", "stream",
//    "what"}], "hosts": [{"rank", "thread", "state", "what", "time_ps"}], "ranks": [{"rank",
//    "warp_instructions", "lane_instructions", "kernels", "blocks",
//               "host_bytes", "link_bytes": [{"to", "bytes"}], "api_calls": {name: n},
//               "protocol_fault": s}]}

#include "base/json.h"
#include "simulator/daemon/cluster.h"

namespace cb::sim {

Json make_report(const Cluster& cluster, Time time);

/// "kernel reduce, file.cu:12, block (0,0,0), thread (3,0,0) of rank 1".
std::string describe(const CodePlace& place);
/// The report's findings, waiters and blocked hosts as lines for people.
std::string describe_report(const Cluster& cluster);

const char* to_string(Op op);
const char* to_string(HostEvent::Kind kind);

}  // namespace cb::sim
