// commbench-host: the process in which a candidate runs, one per rank, in a jail. It waits for the
// trusted rank to start a phase, calls the candidate, and says how that ended. The candidate can do
// to this process whatever it likes; nothing that it says is evidence, except to the candidate's
// own disadvantage.
#include <cuda_runtime.h>
#include <dlfcn.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <memory>
#include <string>

#include "harness/host/context.h"
#include "simulator/protocol/protocol.h"

namespace cb::host {
namespace {

/// How a phase ended.
struct Outcome {
  int32_t status = kOk;
  std::string text;
};

/// A C struct for the candidate, with its addresses in place.
struct Blob {
  Message message;
  std::unique_ptr<std::max_align_t[]> bytes;

  const void* data() const { return bytes.get(); }
};

struct Candidate {
  cb_status (*setup)(cb_context*, const cb_args*, void**) = nullptr;
  cb_status (*run)(void*, const cb_step*, cudaStream_t) = nullptr;
  void (*teardown)(void*) = nullptr;
};

class Host {
 public:
  explicit Host(int control_fd) : control_fd_(control_fd) {}

  Outcome setup();
  Outcome run();
  Outcome teardown();

 private:
  Outcome load();
  bool receive(Blob& blob);
  template <typename Callback>
  Outcome guarded(const char* name, Callback callback);

  int control_fd_;
  Candidate candidate_;
  cudaStream_t stream_ = nullptr;
  std::unique_ptr<cb_context> context_;
  Blob args_;
  void* state_ = nullptr;
};

Outcome failed(int32_t status, std::string text) { return {status, std::move(text)}; }

Outcome cuda_failed(const char* after, cudaError_t error) {
  return failed(kDeviceFailed, std::string(after) + ": " + cudaGetErrorName(error) + ": " +
                                   cudaGetErrorString(error));
}

template <typename Function>
bool find(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(::dlsym(library, name));
  return function != nullptr;
}

Outcome Host::load() {
  void* library = ::dlopen(kCandidatePath, RTLD_NOW);
  if (library == nullptr) return failed(kLoadFailed, ::dlerror());
  if (!find(library, "cb_setup", candidate_.setup) || !find(library, "cb_run", candidate_.run) ||
      !find(library, "cb_teardown", candidate_.teardown)) {
    return failed(kNoEntryPoint, "cb_setup, cb_run or cb_teardown is missing");
  }
  return {};
}

bool Host::receive(Blob& blob) {
  std::string buffer(kMaxMessageBytes, '\0');
  ssize_t got = 0;
  do {
    got = ::read(control_fd_, buffer.data(), buffer.size());
  } while (got < 0 && errno == EINTR);
  Message& message = blob.message;
  if (got < static_cast<ssize_t>(sizeof message)) return false;
  std::memcpy(&message, buffer.data(), sizeof message);
  size_t relocation_bytes = sizeof(Relocation) * message.num_relocations;
  const char* at = buffer.data() + sizeof message;
  if (static_cast<size_t>(got) != sizeof message + relocation_bytes + message.blob_bytes) {
    return false;
  }
  size_t units = message.blob_bytes / sizeof(std::max_align_t) + 1;
  blob.bytes = std::make_unique<std::max_align_t[]>(units);
  char* base = reinterpret_cast<char*>(blob.bytes.get());
  std::memcpy(base, at + relocation_bytes, message.blob_bytes);
  for (uint32_t i = 0; i < message.num_relocations; ++i) {
    Relocation relocation;
    std::memcpy(&relocation, at + sizeof relocation * i, sizeof relocation);
    char* address = base + relocation.offset;
    std::memcpy(base + relocation.at, &address, sizeof address);
  }
  return true;
}

// The one place where a candidate's exceptions end.
template <typename Callback>
Outcome Host::guarded(const char* name, Callback callback) {
  try {
    int32_t status = callback();
    if (status == kOk) return {};
    return failed(status, std::string(name) + " returned " + std::to_string(status));
  } catch (const std::exception& error) {
    return failed(kException, std::string(name) + " threw: " + error.what());
  } catch (...) {
    return failed(kException, std::string(name) + " threw something that is no std::exception");
  }
}

Outcome Host::setup() {
  if (!receive(args_)) return failed(kHostConfused, "no arguments for cb_setup");
  context_ = std::make_unique<cb_context>();
  context_->job = args_.message;
  if (stream_ == nullptr) {
    cudaError_t error = cudaSetDevice(context_->job.device);
    if (error == cudaSuccess) error = cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking);
    if (error != cudaSuccess) return cuda_failed("before cb_setup", error);
    Outcome outcome = load();
    if (outcome.status != kOk) return outcome;
  }
  state_ = nullptr;
  Outcome outcome = guarded("cb_setup", [&] {
    return candidate_.setup(context_.get(), static_cast<const cb_args*>(args_.data()), &state_);
  });
  if (outcome.status != kOk) return outcome;
  // A step must not wait for what setup left running, nor use a device that setup selected.
  cudaError_t error = cudaSetDevice(context_->job.device);
  if (error == cudaSuccess) error = cudaDeviceSynchronize();
  return error == cudaSuccess ? Outcome{} : cuda_failed("after cb_setup", error);
}

Outcome Host::run() {
  std::vector<Blob> calls;
  do {
    if (!receive(calls.emplace_back())) return failed(kHostConfused, "no arguments for cb_run");
  } while (calls.back().message.calls_left > 0);
  context_->in_step = true;
  Outcome outcome;
  for (const Blob& call : calls) {
    outcome = guarded("cb_run", [&] {
      return candidate_.run(state_, static_cast<const cb_step*>(call.data()), stream_);
    });
    if (outcome.status != kOk) break;
  }
  context_->in_step = false;
  cudaError_t error = cudaStreamSynchronize(stream_);
  if (outcome.status == kOk && error != cudaSuccess) outcome = cuda_failed("after cb_run", error);
  return outcome;
}

Outcome Host::teardown() {
  Outcome outcome = guarded("cb_teardown", [&] {
    candidate_.teardown(state_);
    return 0;
  });
  cudaSetDevice(context_->job.device);
  context_.reset();
  return outcome;
}

int serve(int control_fd) {
  using sim::Phase;
  if (!load_simulator_api()) {
    std::fprintf(stderr, "commbench-host: the CUDA runtime here is not the simulator's\n");
    return kExitNoSimulator;
  }
  Host host(control_fd);
  Phase finished = Phase::kNone;
  Outcome outcome;
  for (;;) {
    auto phase = static_cast<Phase>(simulator_api().control_wait(
        static_cast<uint32_t>(finished), outcome.status, outcome.text.c_str()));
    if (phase == Phase::kSetup) {
      outcome = host.setup();
    } else if (phase == Phase::kRun) {
      outcome = host.run();
    } else if (phase == Phase::kTeardown) {
      outcome = host.teardown();
    } else {
      return kExitOk;
    }
    finished = phase;
  }
}

}  // namespace
}  // namespace cb::host

int main() {
  const char* fd = std::getenv(cb::host::kControlFdVariable);
  if (fd == nullptr) {
    std::fprintf(stderr, "commbench-host is started by commbench-rank\n");
    return 2;
  }
  int code = cb::host::serve(std::atoi(fd));
  std::fflush(nullptr);
  // A candidate's destructors have nothing to say any more.
  ::_exit(code);
}
