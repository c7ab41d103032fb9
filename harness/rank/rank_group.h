#pragma once

#include <mpi.h>

#include <map>
#include <string>
#include <vector>

namespace cb::harness {

/// The ranks of one pool. Waiting ranks sleep between looks, because Open MPI's blocking calls spin
/// and the cores belong to the simulator.
class RankGroup {
 public:
  explicit RankGroup(MPI_Comm communicator);

  int rank() const { return rank_; }
  int size() const { return size_; }

  /// `text` of rank 0, on every rank.
  std::string broadcast(std::string text) const;
  /// Every rank's text on rank 0, in rank order; elsewhere nothing.
  std::vector<std::string> gather(const std::string& text) const;
  /// The bitwise or of what every rank gives.
  unsigned any(unsigned bits) const;

  /// The group of the first `count` ranks; to be asked for by all ranks. Call nothing on it
  /// elsewhere.
  const RankGroup& first(int count);

 private:
  void wait(MPI_Request& request) const;

  MPI_Comm communicator_;
  int rank_ = -1;
  int size_ = 0;
  std::map<int, RankGroup> parts_;
};

}  // namespace cb::harness
