#pragma once

// For tests of the engine: PTX text, buffers, launches, and the modes in which results must agree.

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "simulator/decode/decode.h"
#include "simulator/exec/engine.h"

namespace cb::sim {

/// A cluster of 4 small devices, one rank each.
class EngineRig {
 public:
  struct Mode {
    bool timed = true;
    DecodeOptions decode;
    LineLedger* ledger = nullptr;
  };
  /// Timed and functional, with and without each pass of the decoder.
  static std::vector<Mode> all_modes();

  EngineRig(const std::string& ptx, const Mode& mode);

  /// A zeroed buffer of a rank that all ranks may touch.
  template <typename T>
  T* buffer(int rank, uint64_t count) {
    return reinterpret_cast<T*>(allocate(rank, count * sizeof(T)));
  }
  uint64_t allocate(int rank, uint64_t bytes);

  struct Shape {
    uint32_t blocks = 1;
    uint32_t threads = 32;
    uint32_t dynamic_shared_bytes = 0;
    bool cooperative = false;
    uint32_t registers = 32;
    uint32_t cluster = 1;
    bool has_dependencies = false;
    std::function<void(Time)> on_launch_dependents = {};
  };
  /// Parameters are 8 bytes each (.u64).
  uint64_t launch(const std::string& kernel, int rank, const Shape& shape,
                  const std::vector<uint64_t>& parameters);
  /// Runs until nothing is left to do, or until `limit`.
  void run(Time limit = kNever - 1);

  Engine& engine() { return *engine_; }
  AddressSpace& memory() { return *memory_; }
  int running() const { return running_; }
  Time last_end() const { return last_end_; }

 private:
  Mode mode_;
  Profile profile_;
  std::shared_ptr<const ptx::Module> module_;
  std::unique_ptr<AddressSpace> memory_;
  std::unique_ptr<Engine> engine_;
  std::vector<std::shared_ptr<const std::vector<uint64_t>>> variables_;
  int running_ = 0;
  Time last_end_ = 0;
};

template <typename T>
uint64_t address_of(T* pointer) {
  return reinterpret_cast<uint64_t>(pointer);
}

}  // namespace cb::sim
