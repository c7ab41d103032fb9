#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/fd.h"
#include "harness/evidence.h"
#include "harness/host/host_protocol.h"
#include "harness/job.h"
#include "sandbox/jail.h"
#include "simulator/client/rank_client.h"

namespace cb::harness {

/// A rank's jailed host process with the candidate in it.
class HostProcess {
 public:
  /// `library` is the candidate's. Throws Error(kRefused, kSystem).
  HostProcess(const Job& job, int rank, const std::string& library,
              const sim::HostConnection& connection);

  /// Queues a struct for the phase that is started next. Throws Error(kSystem).
  void send(const host::Message& message, const std::vector<host::Relocation>& relocations,
            const std::vector<std::byte>& blob);

  /// Readable in poll() once the process has ended.
  int pidfd() const { return jail_.pidfd(); }
  /// How it ended, waiting at most `timeout_ms`. Nothing: it runs.
  const std::optional<JailOutcome>& ended(int timeout_ms);
  /// Ends the candidate's main process alone and waits at most `timeout_ms`, so that the jail can
  /// still say which limits it had run into.
  const std::optional<JailOutcome>& stop(int timeout_ms);
  void kill() { jail_.kill(); }

  /// stdout and stderr so far, shortened.
  std::string output() const;

 private:
  UniqueFd control_;
  JailedProcess jail_;
  std::optional<JailOutcome> outcome_;
};

/// What the end of a host speaks for, if it did not end on our behalf.
Evidence evidence_of_end(const JailOutcome& outcome);

}  // namespace cb::harness
