#include "simulator/shims/client/call.h"

#include <cstdio>

#include "simulator/shims/client/process.h"
#include "simulator/shims/client/report.h"

namespace cb::sim::client {

Call::Call(Thread& thread, Op op, uint16_t flags) : thread_(thread), device_(thread.device()) {
  request_.op = op;
  request_.flags = flags;
}

bool Call::post() {
  request_.payload_bytes = static_cast<uint32_t>(first_.size + second_.size);
  request_.sequence = ++thread_.sequence;
  if (send_request(thread_.fd, request_, first_, second_, passed_fd_)) return true;
  lose_link("a request could not be sent");
  return false;
}

cudaError_t Call::send() {
  cudaError_t error = link_error();
  if (error != cudaSuccess) return error;
  thread_.busy = true;
  bool sent = post();
  thread_.busy = false;
  return sent ? cudaSuccess : cudaErrorSystemNotReady;
}

bool Call::wait_raw() {
  for (int at = 0; at < max_fds_; ++at) fds_[at] = -1;
  if (!thread_.connected()) return false;
  thread_.busy = true;
  bool alive = post();
  if (alive) {
    const char* fault =
        receive_reply(thread_.fd, &reply_, reply_payload_, reply_capacity_, fds_, max_fds_);
    if (fault == nullptr && reply_.sequence != request_.sequence) {
      fault = "a reply answers another request";
    }
    if (fault != nullptr) {
      lose_link(fault);
      alive = false;
    }
  }
  thread_.busy = false;
  return alive;
}

cudaError_t Call::wait() {
  cudaError_t error = link_error();
  if (error != cudaSuccess) return error;
  if (!wait_raw()) return cudaErrorSystemNotReady;
  error = static_cast<cudaError_t>(reply_.status);
  if (breaks_context(error)) {
    int expected = 0;
    process.sticky[device_].compare_exchange_strong(expected, error);
  }
  if (reply_.results[5] != 0 && request_.op != Op::kKernelOutput) print_kernel_output();
  return error;
}

LockAcrossCalls::LockAcrossCalls(Mutex& mutex) : mutex_(mutex) {
  while (!mutex_.try_lock()) {
    if (!Call(Op::kRelax).wait_raw()) {
      mutex_.lock();
      return;
    }
  }
}

bool breaks_context(cudaError_t error) {
  switch (error) {
    case cudaErrorECCUncorrectable:
    case cudaErrorNvlinkUncorrectable:
    case cudaErrorContained:
    case cudaErrorIllegalAddress:
    case cudaErrorLaunchTimeout:
    case cudaErrorAssert:
    case cudaErrorHardwareStackError:
    case cudaErrorIllegalInstruction:
    case cudaErrorMisalignedAddress:
    case cudaErrorInvalidAddressSpace:
    case cudaErrorInvalidPc:
    case cudaErrorLaunchFailure:
    case cudaErrorTensorMemoryLeak:
    case cudaErrorExternalDevice:
      return true;
    default:
      return false;
  }
}

void print_kernel_output() {
  char text[4096];
  for (;;) {
    Call call(Op::kKernelOutput);
    call.receive(text, sizeof text);
    if (call.wait() != cudaSuccess) return;
    fwrite(text, 1, call.received_bytes(), stdout);
    if (call.result(0) == 0 || call.received_bytes() == 0) return;
  }
}

}  // namespace cb::sim::client
