#include "harness/rank/sim_daemon.h"

#include <fmt/format.h>
#include <unistd.h>

#include "base/socket.h"
#include "base/text.h"
#include "simulator/client/daemon_options.h"
#include "simulator/client/rank_client.h"

namespace cb::harness {
namespace {

constexpr int kListenFd = 3;
// Device memory is touched sparsely; this bounds what all ranks together may fill.
constexpr uint64_t kMemoryBytes = uint64_t{16} << 30;

sim::DaemonOptions daemon_options(const Job& job, uint64_t memory_seed,
                                  uint64_t symmetric_bytes_max) {
  sim::DaemonOptions options;
  options.profile = job.profile;
  options.world_size = job.world_size;
  options.timed = job.timed;
  options.fatbin_sha256 = job.fatbin_sha256;
  options.any_code = job.runtime_code;
  options.symmetric_bytes_max = symmetric_bytes_max;
  options.seed = memory_seed;
  options.wall_limit_ms = job.wall_limit_ms;
  options.count_lines = job.count_lines;
  options.record_timeline = job.record_timeline;
  return options;
}

JailSpec daemon_spec(const Job& job, int listener, const sim::DaemonOptions& options) {
  JailSpec spec;
  spec.profile = JailProfile::kDaemon;
  spec.argv = {"/box/commbench-simd", "--listen-fd", std::to_string(kListenFd), "--options",
               sim::to_text(options)};
  spec.env = {"PATH=/usr/bin:/bin"};
  spec.read_only = {{job.simulator_program, "/box/commbench-simd"}};
  spec.fds = {{listener, kListenFd}};
  spec.limits.memory_bytes = kMemoryBytes;
  spec.limits.open_files = 4096;
  spec.limits.file_bytes = 0;
  spec.box_slot = job.first_box_slot + static_cast<unsigned>(job.world_size);
  return spec;
}

}  // namespace

SimDaemon::SimDaemon(const Job& job, const std::string& socket_path, uint64_t memory_seed,
                     uint64_t symmetric_bytes_max)
    : socket_path_(socket_path),
      listener_(seqpacket_listen(socket_path)),
      jail_(JailedProcess::spawn(daemon_spec(
          job, listener_.get(), daemon_options(job, memory_seed, symmetric_bytes_max)))) {
  // Only the daemon may keep it: connecting to a daemon that is gone must fail.
  listener_.reset();
}

SimDaemon::~SimDaemon() { ::unlink(socket_path_.c_str()); }

std::string SimDaemon::obituary() {
  // It ends a moment after the connection that told us.
  constexpr int kGraceMs = 200;
  std::optional<JailOutcome> outcome = jail_.wait(kGraceMs);
  if (!outcome) return "";
  return fmt::format("the simulator ended ({}{}): {}", outcome->status.describe(),
                     outcome->limit == LimitHit::kNone
                         ? ""
                         : fmt::format(", limit: {}", to_string(outcome->limit)),
                     printable(jail_.standard_error(), 2000));
}

}  // namespace cb::harness
