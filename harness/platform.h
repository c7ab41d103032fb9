#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "harness/job.h"
#include "harness/layout.h"

namespace cb::harness {

/// A place for one job at a time: a pool of ranks. For one thread.
class Lane {
 public:
  virtual ~Lane() = default;
  /// The box slot for builds of this lane's thread.
  virtual unsigned build_slot() const = 0;
  /// Runs a job to its end: one report for each rank, in rank order. The platform completes what
  /// the job says about itself (programs, profile, slots). `progress` gets the ids of cases as they
  /// start. Throws Error when our own processes failed; the next call starts new ones.
  virtual std::vector<RankReport> run(Job job, const std::string& library,
                                      const std::function<void(const std::string&)>& progress) = 0;
};

/// Where ranks execute. The only interface through which the harness may ask.
class Platform {
 public:
  virtual ~Platform() = default;
  /// As users and records name it: "sim:h100x8".
  virtual const std::string& name() const = 0;
  /// nvcc's virtual architecture.
  virtual const std::string& target() const = 0;
  virtual int num_devices() const = 0;
  virtual const std::string& profile_hash() const = 0;
  /// Of the program that executes kernels.
  virtual const std::string& simulator_hash() const = 0;
  virtual std::unique_ptr<Lane> open_lane() = 0;
};

/// "sim:<profile>". Throws Error(kUsage) for an unknown name and Error(kRefused) for `cuda`.
std::unique_ptr<Platform> make_platform(const std::string& name, const Layout& layout);

}  // namespace cb::harness
