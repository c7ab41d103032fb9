#pragma once

#include <sys/types.h>

#include <optional>
#include <string>

#include "base/fd.h"
#include "sandbox/jail.h"

namespace cb {

/// What the jails of one job share on one machine: network (loopback only), IPC and /dev/shm, so
/// that libraries such as NCCL find their peers. They also share one box user: in job scope the
/// ranks of a job are one trust domain. Everything else each jail has for itself.
class JobNamespaces {
 public:
  /// Makes them and holds them with a jail that only waits. Throws as JailedProcess::spawn.
  static JobNamespaces create(unsigned box_slot);
  /// Those that another process of ours has made and still holds, from its `token`. Throws
  /// Error(kSystem) when they are gone, Error(kUsage) for what is not a token.
  static JobNamespaces open(const std::string& token);

  JobNamespaces(JobNamespaces&&) noexcept = default;
  JobNamespaces& operator=(JobNamespaces&&) = delete;
  ~JobNamespaces();

  /// Names them to another process of ours on this machine.
  std::string token() const;

  unsigned box_slot() const { return box_slot_; }
  int user_namespace() const { return user_.get(); }
  int net_namespace() const { return net_.get(); }
  int ipc_namespace() const { return ipc_.get(); }
  /// On the host; a file system in memory where there is one. Jails may put anything there, so
  /// nothing in it is to be opened by name.
  const std::string& shared_folder() const { return shared_folder_; }

 private:
  JobNamespaces() = default;
  void open_namespaces();

  std::optional<JailedProcess> holder_;  ///< only in the process that made them
  pid_t holder_pid_ = -1;
  unsigned box_slot_ = 0;
  UniqueFd user_;
  UniqueFd net_;
  UniqueFd ipc_;
  std::string shared_folder_;
};

}  // namespace cb
