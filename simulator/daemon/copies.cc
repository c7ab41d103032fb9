#include "simulator/daemon/copies.h"

#include <fmt/format.h>

#include <bit>
#include <cstring>
#include <nlohmann/json.hpp>

#include "base/json.h"
#include "base/text.h"
#include "simulator/daemon/call.h"
#include "simulator/daemon/streams.h"

namespace cb::sim {
namespace {

/// Host time of copying a byte of pageable memory to where the copy engine reads it.
constexpr Time kStagingPsPerByte = 100;
/// Without timing a copy still takes time, so that order is the same.
constexpr Time kUntimedCopyPs = 1000;
constexpr uint64_t kBytesPerLook = uint64_t{64} << 20;

/// Rows of bytes on each side; the pitch of a single row does not matter.
struct Rows {
  uint64_t address = 0;
  uint64_t pitch = 0;
  bool pageable = false;  ///< packed, in staging
};
struct Transfer {
  Rows dst, src;
  uint64_t width = 0;
  uint64_t height = 0;
  uint64_t bytes = 0;
};

std::byte* pointer(uint64_t address) { return reinterpret_cast<std::byte*>(address); }

/// From the first byte to the last; nothing if that is no range.
std::optional<uint64_t> span_of(uint64_t width, uint64_t height, uint64_t pitch) {
  uint64_t span;
  if (height > 1 && pitch < width) return std::nullopt;
  if (__builtin_mul_overflow(pitch, height - 1, &span) ||
      __builtin_add_overflow(span, width, &span)) {
    return std::nullopt;
  }
  return span;
}

/// Whether the process may copy from or to the range. The device does not matter: copies between
/// devices need no peer access.
AccessFault check_range(Cluster& cluster, const HostProcess& process, uint64_t address,
                        uint64_t bytes, bool write) {
  const Allocation* found = cluster.memory.find(address);
  int device = found == nullptr ? cluster.device_of_rank(process.rank) : found->device;
  if (found != nullptr && found->kind != Allocation::Kind::kStreamOrdered && found->by_access) {
    uint64_t allowed = write ? found->writers : found->readers;
    if (allowed != 0) device = std::countr_zero(allowed);
  }
  Access access = cluster.memory.check(address, bytes, {process.rank, device}, write);
  // The host writes __constant__ variables this way.
  if (access.fault == AccessFault::kReadOnly) return AccessFault::kNone;
  return access.fault;
}

Finding::Kind finding_kind(AccessFault fault) {
  switch (fault) {
    case AccessFault::kClosed:
      return Finding::Kind::kEarlyAccess;
    case AccessFault::kUseAfterFree:
      return Finding::Kind::kUseAfterFree;
    case AccessFault::kOutOfBounds:
      return Finding::Kind::kOutOfBounds;
    case AccessFault::kNotPermitted:
    case AccessFault::kMulticast:
      return Finding::Kind::kNotPermitted;
    default:
      return Finding::Kind::kIllegalAddress;
  }
}

void report_fault(Cluster& cluster, const HostProcess& process, Time time, AccessFault fault,
                  uint64_t address, uint64_t bytes, bool write) {
  cluster.report({.kind = finding_kind(fault),
                  .time_ps = time,
                  .place = {.kernel = "a copy or fill by the host", .rank = process.rank},
                  .detail = fmt::format("a {} of {} bytes at {}: {}", write ? "write" : "read",
                                        bytes, cluster.memory.describe(address), to_string(fault)),
                  .address = address,
                  .bytes = static_cast<uint32_t>(std::min<uint64_t>(bytes, UINT32_MAX)),
                  .write = write});
}

}  // namespace

bool accept_range(Call& call, uint64_t address, uint64_t span, bool write) {
  AccessFault fault = check_range(call.cluster, call.process, address, span, write);
  // Whether an allocation comes first is known when the bytes move.
  if (fault == AccessFault::kNone || fault == AccessFault::kUnordered) return true;
  if (fault == AccessFault::kClosed || call.is_one_way()) {
    report_fault(call.cluster, call.process, call.thread.clock, fault, address, span, write);
    call.fail(cuda_error_of(finding_kind(fault)));
  } else {
    call.fail(kCudaInvalidValue);
  }
  return false;
}

bool still_allowed(Cluster& cluster, HostProcess& process, int device, uint64_t address,
                   uint64_t span, bool write) {
  AccessFault fault = check_range(cluster, process, address, span, write);
  if (fault == AccessFault::kNone) return true;
  report_fault(cluster, process, cluster.engine.now(), fault, address, span, write);
  cluster.break_context(process, device, cuda_error_of(finding_kind(fault)));
  return false;
}

namespace {

/// Visits rows in pieces: visit(row, column, bytes). False when the memory quota is exceeded on the
/// way, of which huge copies must not make too much.
template <class Visit>
bool in_pieces(const AddressSpace& memory, uint64_t width, uint64_t height, Visit visit) {
  uint64_t since_look = 0;
  for (uint64_t row = 0; row < height; ++row) {
    for (uint64_t column = 0; column < width;) {
      uint64_t bytes = std::min(width - column, kBytesPerLook);
      visit(row, column, bytes);
      column += bytes;
      since_look += bytes;
      if (since_look < kBytesPerLook) continue;
      since_look = 0;
      if (memory.over_quota()) return false;
    }
  }
  return true;
}

/// Moves the bytes of a transfer at the engine's present time. False: the context is broken.
bool move(Cluster& cluster, HostProcess& process, int device, const Transfer& transfer,
          std::byte* packed) {
  std::byte* dst = packed;
  const std::byte* src = packed;
  uint64_t dst_pitch = transfer.width, src_pitch = transfer.width;
  if (!transfer.src.pageable) {
    uint64_t span = *span_of(transfer.width, transfer.height, transfer.src.pitch);
    if (!still_allowed(cluster, process, device, transfer.src.address, span, false)) return false;
    src = pointer(transfer.src.address);
    src_pitch = transfer.src.pitch;
  }
  uint64_t dst_span = 0;
  if (!transfer.dst.pageable) {
    dst_span = *span_of(transfer.width, transfer.height, transfer.dst.pitch);
    if (!still_allowed(cluster, process, device, transfer.dst.address, dst_span, true)) {
      return false;
    }
    dst = pointer(transfer.dst.address);
    dst_pitch = transfer.dst.pitch;
  }
  bool fits = in_pieces(cluster.memory, transfer.width, transfer.height,
                        [&](uint64_t row, uint64_t column, uint64_t bytes) {
                          std::memmove(dst + row * dst_pitch + column,
                                       src + row * src_pitch + column, bytes);
                        });
  if (!fits) {
    cluster.out_of_memory(process.rank);
    return false;
  }
  if (dst_span > 0) cluster.engine.written(transfer.dst.address, dst_span);
  return true;
}

struct Route {
  CopyKind kind = CopyKind::kHostToHost;
  int source = -1, target = -1;
};

Route route_of(const Cluster& cluster, const Transfer& transfer) {
  Route route;
  route.source = transfer.src.pageable ? -1 : cluster.memory.device_of(transfer.src.address);
  route.target = transfer.dst.pageable ? -1 : cluster.memory.device_of(transfer.dst.address);
  if (route.source >= 0 && route.target >= 0) {
    route.kind = route.source == route.target ? CopyKind::kWithinDevice : CopyKind::kPeer;
  } else if (route.source >= 0) {
    route.kind = CopyKind::kDeviceToHost;
  } else if (route.target >= 0) {
    route.kind = CopyKind::kHostToDevice;
  }
  return route;
}

/// Bytes on their way, and whose staging they come from or go to.
struct Payload {
  std::vector<std::byte> packed;
  HostThread* deliver_to = nullptr;
};

std::shared_ptr<Work> make_copy(Call& call, const std::shared_ptr<Stream>& stream,
                                const Transfer& transfer, Payload payload) {
  Cluster& cluster = call.cluster;
  const Costs& costs = cluster.costs;
  bool continues = call.has_flag(kCopyContinues);
  auto work = std::make_shared<Work>();
  work->kind = Work::Kind::kCopy;
  work->device = stream->device;
  work->stream = stream;
  work->what = "a copy of " + format_bytes(transfer.bytes);
  work->ready = call.thread.clock + (continues ? 0 : costs.copy_start);
  work->gap = continues ? 0 : costs.launch_gap;
  work->staged_bytes = payload.packed.size();
  Route route = route_of(cluster, transfer);
  if (cluster.timeline != nullptr) {
    auto side = [](int device) {
      return device < 0 ? std::string("host") : fmt::format("device {}", device);
    };
    work->details = dump_json(
        {{"bytes", transfer.bytes}, {"from", side(route.source)}, {"to", side(route.target)}});
  }
  if ((route.source >= 0) != (route.target >= 0)) call.process.host_bytes += transfer.bytes;
  auto bytes = std::make_shared<Payload>(std::move(payload));
  auto end = [&cluster, transfer, bytes](const std::shared_ptr<Work>& self) {
    if (self->done) return;
    std::byte* packed = bytes->deliver_to != nullptr ? bytes->deliver_to->connection.staging()
                                                     : bytes->packed.data();
    if (move(cluster, *self->owner, self->device, transfer, packed)) finish(cluster, self);
  };
  work->begin = [&cluster, route, total = transfer.bytes, end](const std::shared_ptr<Work>& self,
                                                               Time start) {
    cluster.engine.at(start, [&cluster, route, total, end, self, start] {
      if (self->done) return;
      Time over = start + kUntimedCopyPs;
      if (cluster.options.timed) {
        over =
            cluster.engine.resources().copy(route.kind, route.source, route.target, start, total);
      }
      cluster.engine.at(over, [end, self] { end(self); });
    });
  };
  return work;
}

/// Flags that contradict each other come from no shim of ours.
const char* fault_of(const Call& call, const Transfer& transfer) {
  bool src_pageable = call.has_flag(kCopySrcPageable),
       dst_pageable = call.has_flag(kCopyDstPageable);
  if (src_pageable && dst_pageable) return "a copy between two pageable sides";
  if ((src_pageable || dst_pageable) && transfer.bytes > kStagingBytes) {
    return "more pageable bytes than staging memory holds";
  }
  if (call.is_one_way() && (src_pageable || dst_pageable || !call.has_flag(kCopyAsync))) {
    return "a one-way copy that needs an answer";
  }
  return nullptr;
}

void copy(Call& call, Transfer transfer, uint64_t stream_id, uint64_t device_number) {
  if (__builtin_mul_overflow(transfer.width, transfer.height, &transfer.bytes)) {
    return call.malformed("a copy of more bytes than there are");
  }
  transfer.src.pageable = call.has_flag(kCopySrcPageable);
  transfer.dst.pageable = call.has_flag(kCopyDstPageable);
  if (const char* fault = fault_of(call, transfer)) return call.malformed(fault);
  std::optional<int> device = call.device(device_number);
  if (!device) return;
  std::shared_ptr<Stream> stream = call.stream(stream_id, *device);
  if (stream == nullptr) return;
  const Costs& costs = call.cluster.costs;
  if (transfer.bytes == 0) return call.done(costs.call);
  for (const Rows* side : {&transfer.src, &transfer.dst}) {
    if (side->pageable) continue;
    auto span = span_of(transfer.width, transfer.height, side->pitch);
    if (!span) return call.fail(kCudaInvalidValue);
    if (!accept_range(call, side->address, *span, side == &transfer.dst)) return;
  }
  if (!has_room(call, transfer.src.pageable ? transfer.bytes : 0)) return;

  Payload payload;
  const std::byte* staging = call.thread.connection.staging();
  if (transfer.src.pageable) payload.packed.assign(staging, staging + transfer.bytes);
  if (transfer.dst.pageable) payload.deliver_to = &call.thread;
  auto work = make_copy(call, stream, transfer, std::move(payload));
  enqueue(call.cluster, call.process, work);
  Time cost = call.has_flag(kCopyContinues) ? costs.clock_read : call.host_cost(costs.copy_enqueue);
  if (call.has_flag(kCopyAsync) && !transfer.dst.pageable) {
    if (transfer.src.pageable) cost += transfer.bytes * kStagingPsPerByte;
    return call.done(cost);
  }
  call.thread.clock += cost;
  std::string what = "waits for " + work->what;
  wait_for(call, {work}, *device, costs.call, what);
}

struct Filling {
  uint64_t address = 0, pitch = 0, width = 0, height = 0;
  uint32_t value = 0;
  uint64_t element_bytes = 1;
};

bool fill_rows(const AddressSpace& memory, const Filling& filling) {
  return in_pieces(memory, filling.width, filling.height,
                   [&filling](uint64_t row, uint64_t column, uint64_t bytes) {
                     std::byte* at = pointer(filling.address + row * filling.pitch + column);
                     if (filling.element_bytes == 1) {
                       std::memset(at, static_cast<int>(filling.value & 0xff), bytes);
                       return;
                     }
                     for (uint64_t done = 0; done < bytes; done += filling.element_bytes) {
                       std::memcpy(at + done, &filling.value, filling.element_bytes);
                     }
                   });
}

std::shared_ptr<Work> make_fill(Call& call, const std::shared_ptr<Stream>& stream,
                                const Filling& filling, uint64_t span) {
  Cluster& cluster = call.cluster;
  auto work = std::make_shared<Work>();
  work->kind = Work::Kind::kFill;
  work->device = stream->device;
  work->stream = stream;
  work->what = "a fill of " + format_bytes(filling.width * filling.height);
  work->ready = call.thread.clock + cluster.costs.launch;
  work->gap = cluster.costs.launch_gap;
  auto end = [&cluster, filling, span](const std::shared_ptr<Work>& self) {
    if (self->done) return;
    if (!still_allowed(cluster, *self->owner, self->device, filling.address, span, true)) return;
    if (!fill_rows(cluster.memory, filling)) return cluster.out_of_memory(self->owner->rank);
    cluster.engine.written(filling.address, span);
    finish(cluster, self);
  };
  work->begin = [&cluster, filling, end](const std::shared_ptr<Work>& self, Time start) {
    cluster.engine.at(start, [&cluster, filling, end, self, start] {
      if (self->done) return;
      Time over = start + kUntimedCopyPs;
      uint64_t bytes = filling.width * filling.height;
      int device = cluster.memory.device_of(filling.address);
      if (cluster.options.timed) {
        Resources& resources = cluster.engine.resources();
        over = device >= 0 ? resources.fill(device, start, bytes)
                           : resources.copy(CopyKind::kHostToHost, -1, -1, start, bytes);
      }
      cluster.engine.at(over, [end, self] { end(self); });
    });
  };
  return work;
}

}  // namespace

void memcpy_request(Call& call) {
  Transfer transfer;
  transfer.dst.address = call.arg(0);
  transfer.src.address = call.arg(1);
  transfer.width = call.arg(2);
  transfer.height = 1;
  copy(call, transfer, call.arg(3), call.arg(4));
}

void memcpy_2d(Call& call) {
  std::optional<Copy2D> message = call.read_payload<Copy2D>();
  if (!message || call.payload.size() != sizeof(Copy2D)) {
    return call.malformed("a two-dimensional copy of another size");
  }
  Transfer transfer;
  transfer.dst = {.address = message->dst, .pitch = message->dst_pitch};
  transfer.src = {.address = message->src, .pitch = message->src_pitch};
  transfer.width = message->width_bytes;
  transfer.height = message->height;
  copy(call, transfer, message->stream, message->device);
}

void memset_request(Call& call) {
  Filling filling;
  filling.address = call.arg(0);
  filling.value = static_cast<uint32_t>(call.arg(1));
  filling.element_bytes = call.arg(2);
  filling.height = call.arg(4);
  filling.pitch = call.arg(5);
  bool is_element =
      filling.element_bytes == 1 || filling.element_bytes == 2 || filling.element_bytes == 4;
  if (!is_element || __builtin_mul_overflow(call.arg(3), filling.element_bytes, &filling.width)) {
    return call.malformed("a fill with impossible elements");
  }
  if (call.is_one_way() && !call.has_flag(kCopyAsync)) {
    return call.malformed("a one-way fill that needs an answer");
  }
  std::optional<int> device = call.device(call.arg(7));
  if (!device) return;
  std::shared_ptr<Stream> stream = call.stream(call.arg(6), *device);
  if (stream == nullptr) return;
  const Costs& costs = call.cluster.costs;
  if (filling.width == 0 || filling.height == 0) return call.done(costs.call);
  auto span = span_of(filling.width, filling.height, filling.pitch);
  if (!span || filling.address % filling.element_bytes != 0) return call.fail(kCudaInvalidValue);
  if (!accept_range(call, filling.address, *span, true) || !has_room(call, 0)) return;
  auto work = make_fill(call, stream, filling, *span);
  enqueue(call.cluster, call.process, work);
  if (call.has_flag(kCopyAsync)) return call.done(call.host_cost(costs.launch_enqueue));
  call.thread.clock += costs.launch_enqueue;
  std::string what = "waits for " + work->what;
  wait_for(call, {work}, *device, costs.call, what);
}

}  // namespace cb::sim
