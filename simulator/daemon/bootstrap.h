#pragma once

// The bootstrap of cb_context: all-gather, barrier, symmetric memory and descriptors. A collective
// ends for all ranks at one virtual time, after the last one has come.

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "simulator/daemon/host_process.h"

namespace cb::sim {

class Call;
struct Cluster;

class Bootstrap {
 public:
  explicit Bootstrap(int world_size) : entries_(static_cast<size_t>(world_size)) {}

  void allgather(Call& call);
  void barrier(Call& call);
  void sym_alloc(Call& call);
  /// Of each rank's descriptor that CUDA exported, the ranks of its node get one.
  void exchange_fds(Call& call);

  /// A rank ended: whoever waits for it, or will, gets CB_PEER_FAILED.
  void rank_ended(Cluster& cluster);
  /// Frees the symmetric memory of a rank.
  void release(Cluster& cluster, int rank);
  void reset();

 private:
  struct Entry {
    HostThread* thread = nullptr;
    Op op = Op::kInvalid;
    uint64_t bytes = 0;
    std::vector<std::byte> payload;
    std::shared_ptr<UniqueFd> fd;  ///< that it gives to the others
    bool is_invalid = false;       ///< it gives what cannot be passed on
  };
  /// `fill`: puts more into the entry, if the call may join.
  void join(Call& call, uint64_t bytes, const char* what,
            const std::function<void()>& fill = nullptr);
  void complete(Cluster& cluster);
  void release_all(Cluster& cluster, int status, const std::vector<Answer>& answers);
  int gather(std::vector<Answer>& answers) const;
  int pass_on(const Cluster& cluster, std::vector<Answer>& answers) const;
  int allocate(Cluster& cluster, std::vector<Answer>& answers);

  std::vector<Entry> entries_;  ///< by rank
  size_t num_waiting_ = 0;
  bool broken_ = false;
  uint64_t symmetric_bytes_ = 0;
  std::vector<std::vector<uint64_t>> symmetric_;  ///< bases, per allocation by rank
  std::vector<uint64_t> multicast_;
};

}  // namespace cb::sim
