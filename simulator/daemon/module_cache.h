#pragma once

// Modules as all ranks share them: parsed once, their kernels decoded when first launched.

#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "simulator/decode/decode.h"
#include "simulator/protocol/protocol.h"
#include "simulator/ptx/cubin.h"
#include "simulator/ptx/module.h"
#include "simulator/timing/profile.h"

namespace cb::sim {

struct SharedModule {
  std::shared_ptr<const ptx::Module> module;
  std::vector<std::byte> table;  ///< as kModuleLoad delivers it
  std::vector<KernelInfo> kernels;
  std::vector<std::string> kernel_names;  ///< mangled
  std::vector<uint32_t> variables;        ///< by index in the table: index in Module::variables

  /// The kernel decoded, or why it cannot be; the same answer every time.
  Result<std::shared_ptr<const Program>> program(uint32_t kernel, const StallModel& stalls);

 private:
  std::map<uint32_t, Result<std::shared_ptr<const Program>>> programs_;
};

/// Why an image is refused.
struct ImageFault {
  int error = 0;  ///< cudaError_t
  std::string message;
};

class ModuleCache {
 public:
  /// `allowed`: SHA-256 of the fatbins that may be loaded; nothing: any.
  ModuleCache(const Profile& profile, std::optional<std::vector<std::string>> allowed);

  /// The module that a device of the profile would run of this image, a fatbin or a LinkedImage.
  /// Its kernels use at most `max_registers` per thread, if that is not 0.
  std::shared_ptr<SharedModule> load(std::span<const std::byte> image, uint32_t max_registers,
                                     ImageFault& fault);
  const StallModel& stalls() const { return stalls_; }

 private:
  struct Entry {
    std::shared_ptr<SharedModule> module;
    ImageFault fault;
  };
  /// What of a fatbin such a device runs.
  struct Source {
    ptx::Module module;
    unsigned ptx_arch = 0;
    std::vector<ptx::KernelResources> resources;
  };
  bool is_allowed(const std::string& hash) const;
  bool all_allowed(std::span<const std::byte> image) const;
  std::optional<Source> read_source(std::span<const std::byte> fatbin, ImageFault& fault) const;
  std::optional<Source> read_linked(std::span<const std::byte> image, ImageFault& fault) const;
  Entry read(std::span<const std::byte> image, uint32_t max_registers) const;

  unsigned arch_ = 0;
  StallModel stalls_;
  std::optional<std::vector<std::string>> allowed_;
  std::map<std::string, Entry> entries_;  ///< by hash and options
};

/// "reduce<float>(float*)" of a mangled name; the name itself when it is not one.
std::string demangle(const std::string& name);

}  // namespace cb::sim
