#include "simulator/shims/client/copies.h"

#include <algorithm>
#include <cstring>

#include "simulator/shims/client/allocations.h"
#include "simulator/shims/client/call.h"
#include "simulator/shims/client/capture.h"
#include "simulator/shims/client/pointers.h"
#include "simulator/shims/client/process.h"
#include "simulator/shims/client/registrations.h"
#include "simulator/shims/client/report.h"
#include "simulator/shims/client/window.h"

namespace cb::sim::client {
namespace {

uint64_t address_of(const void* pointer) { return reinterpret_cast<uint64_t>(pointer); }

/// First byte to last byte of all rows; 0 when it does not fit in 64 bits.
uint64_t span_bytes(size_t width, size_t rows, size_t pitch) {
  uint64_t span;
  if (__builtin_mul_overflow(uint64_t{pitch}, uint64_t{rows - 1}, &span) ||
      __builtin_add_overflow(span, uint64_t{width}, &span)) {
    return 0;
  }
  return span;
}

/// Whether the work went into a graph, or may not go on: then `error` is what the call returns.
/// What needs a reply cannot be captured.
bool is_captured(const Stream& stream, bool one_way, const GraphNode& node, Bytes payload,
                 cudaError_t* error) {
  if (!one_way) {
    *error = refuse_in_capture(stream);
    return *error != cudaSuccess;
  }
  return capture_work(stream, node, payload, {}, error) != Captured::kNo;
}

/// A copy in the daemon's memory only.
cudaError_t copy_inside(uint64_t dst, uint64_t src, const CopyShape& shape, const CopyMode& mode,
                        uint16_t flags) {
  bool known = is_known_range(dst, span_bytes(shape.width_bytes, shape.rows, shape.dst_pitch)) &&
               is_known_range(src, span_bytes(shape.width_bytes, shape.rows, shape.src_pitch));
  // Without a reply a bad range could only become a broken context, where CUDA returns an error.
  bool one_way = known && (flags & kCopyAsync) != 0;
  if (one_way) flags |= kCopyOneWay;
  GraphNode node;
  node.flags = flags;
  cudaError_t error = cudaSuccess;
  if (shape.rows == 1) {
    node.kind = GraphNode::Kind::kCopy;
    node.args[0] = dst;
    node.args[1] = src;
    node.args[2] = shape.width_bytes;
    node.args[4] = static_cast<uint64_t>(mode.stream.device);
    if (is_captured(mode.stream, one_way, node, {}, &error)) return error;
    Call call(Op::kMemcpy, flags);
    call.args(dst, src, shape.width_bytes, mode.stream.id, mode.stream.device)
        .on(mode.stream.device);
    return one_way ? call.send() : call.wait();
  }
  Copy2D message;
  message.dst = dst;
  message.dst_pitch = shape.dst_pitch;
  message.src = src;
  message.src_pitch = shape.src_pitch;
  message.width_bytes = shape.width_bytes;
  message.height = shape.rows;
  message.stream = mode.stream.id;
  message.device = mode.stream.device;
  node.kind = GraphNode::Kind::kCopy2D;
  if (is_captured(mode.stream, one_way, node, {&message, sizeof message}, &error)) return error;
  Call call(Op::kMemcpy2D, flags);
  call.payload({&message, sizeof message}).on(mode.stream.device);
  return one_way ? call.send() : call.wait();
}

void copy_rows(uint8_t* dst, size_t dst_pitch, const uint8_t* src, size_t src_pitch, size_t width,
               size_t rows) {
  for (size_t row = 0; row < rows; ++row) {
    memcpy(dst + row * dst_pitch, src + row * src_pitch, width);
  }
}

/// Whether all of [address, address + bytes) is allocated. Asked before pageable memory is touched:
/// a wrong size is an error of the call, not a crash of the program that reads past its own memory.
cudaError_t check_allocated(uint64_t address, uint64_t bytes) {
  if (is_known_range(address, bytes)) return cudaSuccess;
  for (uint64_t done = 0; done < bytes;) {
    PointerInfo info;
    cudaError_t error = pointer_info(address + done, &info);
    if (error != cudaSuccess) return error;
    uint64_t end = info.base + info.bytes;
    if (info.kind == PointerKind::kUnknown || end <= address + done) return cudaErrorInvalidValue;
    done = end - address;
  }
  return cudaSuccess;
}

/// A copy with pageable memory on one side. A piece is a run of whole rows, or part of one row that
/// is longer than the staging memory.
class StagedCopy {
 public:
  StagedCopy(void* dst, const void* src, const CopyShape& shape, const CopyMode& mode,
             uint16_t flags)
      : dst_(static_cast<uint8_t*>(dst)),
        src_(static_cast<const uint8_t*>(src)),
        shape_(shape),
        mode_(mode),
        flags_(flags) {}

  cudaError_t run() {
    size_t width = std::min<size_t>(shape_.width_bytes, kStagingBytes);
    size_t rows = width == shape_.width_bytes ? kStagingBytes / width : 1;
    for (size_t row = 0; row < shape_.rows; row += rows) {
      for (size_t column = 0; column < shape_.width_bytes; column += width) {
        cudaError_t error = move(row, column, std::min(width, shape_.width_bytes - column),
                                 std::min(rows, shape_.rows - row));
        if (error != cudaSuccess) return error;
        flags_ |= kCopyContinues;
      }
    }
    return cudaSuccess;
  }

 private:
  cudaError_t move(size_t row, size_t column, size_t width, size_t rows) {
    uint8_t* dst = dst_ + row * shape_.dst_pitch + column;
    const uint8_t* src = src_ + row * shape_.src_pitch + column;
    uint8_t* staging = this_thread().staging;
    if (staging == nullptr) return link_error();
    if (flags_ & kCopySrcPageable) copy_rows(staging, width, src, shape_.src_pitch, width, rows);
    cudaError_t error = request(address_of(dst), address_of(src), width, rows);
    if (error == cudaSuccess && (flags_ & kCopyDstPageable)) {
      copy_rows(dst, shape_.dst_pitch, staging, width, width, rows);
    }
    return error;
  }

  cudaError_t request(uint64_t dst, uint64_t src, size_t width, size_t rows) {
    if (shape_.rows == 1) {
      return Call(Op::kMemcpy, flags_)
          .args(dst, src, width, mode_.stream.id, mode_.stream.device)
          .on(mode_.stream.device)
          .wait();
    }
    Copy2D message;
    message.dst = dst;
    message.dst_pitch = shape_.dst_pitch;
    message.src = src;
    message.src_pitch = shape_.src_pitch;
    message.width_bytes = width;
    message.height = rows;
    message.stream = mode_.stream.id;
    message.device = mode_.stream.device;
    return Call(Op::kMemcpy2D, flags_)
        .payload({&message, sizeof message})
        .on(mode_.stream.device)
        .wait();
  }

  uint8_t* dst_;
  const uint8_t* src_;
  CopyShape shape_;
  CopyMode mode_;
  uint16_t flags_;
};

/// Device memory, or pinned memory, which every device reaches.
bool device_reaches(const void* pointer) { return in_window(pointer); }
bool host_reaches(const void* pointer) {
  return !in_window(pointer) || is_pinned(address_of(pointer));
}

}  // namespace

cudaError_t check_direction(const void* dst, const void* src, cudaMemcpyKind kind) {
  switch (kind) {
    case cudaMemcpyHostToHost:
      return host_reaches(dst) && host_reaches(src) ? cudaSuccess : cudaErrorInvalidValue;
    case cudaMemcpyHostToDevice:
      return device_reaches(dst) && host_reaches(src) ? cudaSuccess : cudaErrorInvalidValue;
    case cudaMemcpyDeviceToHost:
      return host_reaches(dst) && device_reaches(src) ? cudaSuccess : cudaErrorInvalidValue;
    case cudaMemcpyDeviceToDevice:
      return device_reaches(dst) && device_reaches(src) ? cudaSuccess : cudaErrorInvalidValue;
    case cudaMemcpyDefault:
      return cudaSuccess;
  }
  return cudaErrorInvalidMemcpyDirection;
}

cudaError_t copy(void* wanted_dst, const void* wanted_src, const CopyShape& shape,
                 cudaMemcpyKind kind, const CopyMode& mode) {
  if (shape.width_bytes == 0 || shape.rows == 0) return cudaSuccess;
  if (wanted_dst == nullptr || wanted_src == nullptr) return cudaErrorInvalidValue;
  void* dst =
      known_to_devices(wanted_dst, span_bytes(shape.width_bytes, shape.rows, shape.dst_pitch));
  const void* src =
      known_to_devices(wanted_src, span_bytes(shape.width_bytes, shape.rows, shape.src_pitch));
  cudaError_t error = check_direction(dst, src, kind);
  if (error != cudaSuccess) return error;
  if (span_bytes(shape.width_bytes, shape.rows, shape.dst_pitch) == 0 ||
      span_bytes(shape.width_bytes, shape.rows, shape.src_pitch) == 0) {
    return cudaErrorInvalidValue;
  }

  bool dst_inside = in_window(dst), src_inside = in_window(src);
  if (!dst_inside && !src_inside) {
    // Ordered after the stream's work, then done by the host itself, as CUDA documents it.
    error = Call(Op::kStreamSync)
                .args(mode.stream.id, mode.stream.device)
                .on(mode.stream.device)
                .wait();
    if (error != cudaSuccess) return error;
    copy_rows(static_cast<uint8_t*>(dst), shape.dst_pitch, static_cast<const uint8_t*>(src),
              shape.src_pitch, shape.width_bytes, shape.rows);
    return cudaSuccess;
  }

  uint16_t flags = mode.peer ? kCopyPeer : 0;
  if (mode.continues) flags |= kCopyContinues;
  // CUDA Runtime API, "API synchronization behavior": copies inside device memory do not wait for
  // the copy in either form.
  bool inside_devices = dst_inside && src_inside && !is_pinned(address_of(dst)) &&
                        !is_pinned(address_of(src)) && !has_sync_memops(address_of(dst)) &&
                        !has_sync_memops(address_of(src));
  if (mode.async || inside_devices) flags |= kCopyAsync;
  if (dst_inside && src_inside) {
    return copy_inside(address_of(dst), address_of(src), shape, mode, flags);
  }
  error = refuse_in_capture(mode.stream);
  if (error != cudaSuccess) {
    if (mode.async) report("copies of pageable memory cannot be captured");
    return error;
  }
  flags |= dst_inside ? kCopySrcPageable : kCopyDstPageable;
  size_t pitch = dst_inside ? shape.dst_pitch : shape.src_pitch;
  error = check_allocated(address_of(dst_inside ? dst : src),
                          span_bytes(shape.width_bytes, shape.rows, pitch));
  if (error != cudaSuccess) return error;
  return StagedCopy(dst, src, shape, mode, flags).run();
}

cudaError_t fill(const Fill& fill, const CopyMode& mode) {
  uint64_t width;
  if (__builtin_mul_overflow(uint64_t{fill.elements}, uint64_t{fill.element_bytes}, &width)) {
    return cudaErrorInvalidValue;
  }
  if (width == 0 || fill.rows == 0) return cudaSuccess;
  if (fill.rows > 1 && fill.pitch_bytes < width) return cudaErrorInvalidValue;
  uint64_t span = span_bytes(width, fill.rows, fill.pitch_bytes);
  const void* dst = known_to_devices(fill.dst, span);
  uint64_t address = address_of(dst);
  if (!in_window(dst) || span == 0) return cudaErrorInvalidValue;
  if (address % fill.element_bytes != 0) return cudaErrorInvalidValue;
  bool pinned = is_pinned(address) || has_sync_memops(address);
  uint16_t flags = mode.async || !pinned ? kCopyAsync : 0;
  bool one_way = flags != 0 && is_known_range(address, span);
  if (one_way) flags |= kCopyOneWay;
  GraphNode node;
  node.kind = GraphNode::Kind::kFill;
  node.flags = flags;
  const uint64_t args[] = {address,       fill.value, fill.element_bytes,
                           fill.elements, fill.rows,  fill.pitch_bytes};
  memcpy(node.args, args, sizeof args);
  node.args[7] = static_cast<uint64_t>(mode.stream.device);
  cudaError_t error = cudaSuccess;
  if (is_captured(mode.stream, one_way, node, {}, &error)) return error;
  Call call(Op::kMemset, flags);
  call.args(address, fill.value, fill.element_bytes, fill.elements, fill.rows, fill.pitch_bytes,
            mode.stream.id, mode.stream.device)
      .on(mode.stream.device);
  return one_way ? call.send() : call.wait();
}

}  // namespace cb::sim::client
