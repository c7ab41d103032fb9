#include <chrono>
#include <mutex>
#include <random>
#include <thread>

#include "search/llm/client.h"

namespace cb::llm {
namespace {

class SystemClock : public Clock {
 public:
  double now() override {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch())
        .count();
  }
  void sleep(double seconds) override {
    std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
  }
  double random() override {
    std::lock_guard lock(mutex_);
    return std::uniform_real_distribution<double>(0, 1)(generator_);
  }

 private:
  std::mutex mutex_;
  std::mt19937_64 generator_{std::random_device{}()};
};

}  // namespace

std::shared_ptr<Clock> Clock::system() { return std::make_shared<SystemClock>(); }

}  // namespace cb::llm
