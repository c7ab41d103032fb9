#include <fmt/format.h>

#include <filesystem>

#include "base/error.h"
#include "base/file.h"
#include "base/hash.h"
#include "harness/platform.h"
#include "harness/rank_pool.h"
#include "simulator/timing/profile.h"

namespace cb::harness {
namespace {

class SimPlatform final : public Platform {
 public:
  SimPlatform(const std::string& profile_name, const Layout& layout)
      : name_("sim:" + profile_name), layout_(layout) {
    Result<sim::Profile> profile = sim::load_profile(profile_name);
    if (!profile) throw Error(ErrorCode::kUsage, profile.error().message());
    profile_ = std::move(*profile);
    profile_name_ = profile_name;
    Result<std::string> program = read_file(layout.simulator_program, size_t{1} << 30);
    if (!program) {
      throw Error(ErrorCode::kSystem, "the simulator is not built: " + program.error().message());
    }
    simulator_hash_ = sha256_hex(*program);
  }

  const std::string& name() const override { return name_; }
  const std::string& target() const override { return profile_.target; }
  int num_devices() const override { return profile_.num_devices(); }
  const std::string& profile_hash() const override { return profile_.hash; }
  const std::string& simulator_hash() const override { return simulator_hash_; }

  std::unique_ptr<Lane> open_lane() override {
    return std::make_unique<RankPool>(layout_, profile_name_, num_devices());
  }

 private:
  std::string name_;
  std::string profile_name_;
  Layout layout_;
  sim::Profile profile_;
  std::string simulator_hash_;
};

}  // namespace

std::unique_ptr<Platform> make_platform(const std::string& name, const Layout& layout) {
  if (name.starts_with("sim:")) return std::make_unique<SimPlatform>(name.substr(4), layout);
  if (name == "cuda") {
    throw Error(ErrorCode::kRefused,
                "platform cuda: this version does not run candidates on real GPUs yet; "
                "use --platform sim:h100x8");
  }
  throw Error(ErrorCode::kUsage,
              fmt::format("unknown platform \"{}\" (known: sim:<profile>, cuda; profiles: {})",
                          name, fmt::join(sim::profile_names(), ", ")));
}

}  // namespace cb::harness
