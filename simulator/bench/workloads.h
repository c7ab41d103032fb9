#pragma once

// The four kernels that `commbench sim bench` measures, each with its data, and the same work as a
// plain C++ loop.

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "simulator/exec/engine.h"

namespace cb::sim {

/// A cluster with one workload's buffers in it.
class Workbench {
 public:
  Workbench(const Profile& profile, bool timed);

  AddressSpace& memory() { return *memory_; }
  Engine& engine() { return *engine_; }
  const Profile& profile() const { return profile_; }

  float* floats(int device, uint64_t count);
  uint32_t* words(int device, uint64_t count);
  void launch(const std::string& kernel, int device, const uint32_t (&grid)[3],
              const uint32_t (&block)[3], std::vector<std::byte> parameters);
  /// Runs to the end; throws Error when a kernel fails or hangs. Returns the virtual time.
  Time finish();
  uint64_t warp_instructions() const;

 private:
  const Profile& profile_;
  std::unique_ptr<AddressSpace> memory_;
  std::unique_ptr<Engine> engine_;
  int running_ = 0;
  bool failed_ = false;
};

struct Workload {
  std::string name;
  /// Sets up buffers and starts the kernels; the result checks the output.
  std::function<std::function<bool()>(Workbench&)> start;
  /// Prepares the same work as a C++ loop on one core.
  std::function<std::function<void()>()> plain;
};

std::vector<Workload> workloads();

}  // namespace cb::sim
