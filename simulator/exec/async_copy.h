#pragma once

// Copies that go on while the thread that started them runs ahead. A handler works out which bytes
// go where, with addresses that it has checked (async_address.h), and who is told; start_copy()
// charges the way and lets the bytes arrive. In timed execution the source is read and the
// destination written at virtual times of their own, so that a consumer that does not wait sees the
// old bytes; in functional execution everything happens at once.

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "simulator/exec/mbarrier.h"
#include "simulator/exec/micro_op.h"
#include "simulator/ptx/module.h"

namespace cb::sim {

struct Block;
struct Context;

/// Bytes of a copy: `rows` runs of `bytes`, a step apart on either side.
struct CopyPiece {
  uint64_t source = 0;  ///< generic; 0: nothing is read, the destination gets AsyncCopy::fill
  uint64_t destination = 0;
  uint32_t bytes = 0;
  uint32_t rows = 1;
  int64_t source_step = 0;
  int64_t destination_step = 0;

  uint64_t total() const { return uint64_t{bytes} * rows; }
};

/// Combines `bytes` at `from` into those at `to`, element by element; see find_reduction().
using ReduceFn = void (*)(uint64_t to, const std::byte* from, uint64_t bytes);

/// add, min, max, inc, dec, and, or, xor of elements of `type`, as cp.reduce.async.bulk has them;
/// nullptr for combinations that it does not have.
ReduceFn find_reduction(std::string_view operation, ptx::Type type);

/// Told when all bytes have arrived.
struct CopySignal {
  Block* block = nullptr;  ///< whose shared memory has it
  uint64_t address = 0;    ///< of an mbarrier, checked
  BarrierUpdate update;
};

/// The groups of a thread that copies may belong to: cp.async, and cp.async.bulk.
enum class CopyGroupKind : uint8_t { kAsync, kBulk };

struct AsyncCopy {
  /// Who carries it out.
  enum class Carrier : uint8_t {
    kLoadStore,  ///< the SM's load-store unit, as for a load: cp.async
    kBulk,       ///< the SM's copy engine (TMA)
    kStore,      ///< a store on its way within the cluster: st.async, remote arrivals
  };
  /// Which of the thread's groups it joins.
  enum class Group : uint8_t { kNone, kAsync, kBulk };

  Carrier carrier = Carrier::kBulk;
  Group group = Group::kNone;
  bool through_l1 = false;  ///< kLoadStore: cp.async.ca
  std::vector<CopyPiece> pieces;
  /// The source where it is not memory: the bytes of all pieces, in order.
  std::vector<std::byte> data;
  ReduceFn reduce = nullptr;  ///< nullptr: bytes are replaced
  /// Repeated in the destinations of pieces without a source.
  std::array<std::byte, 8> fill = {};
  std::vector<CopySignal> signals;
  /// Blocks whose shared memory it reads or writes; add each once.
  std::vector<Block*> blocks;
  Time not_before = 0;  ///< does not complete earlier

  uint64_t total_bytes() const;
  void add_block(Block* block);
};

/// Appends the bytes that the copy reads to copy.data.
void gather_source(AsyncCopy& copy);
/// Writes or combines all bytes: from copy.data where it is not empty, else from the sources.
void write_destination(const AsyncCopy& copy);

/// Starts a copy for `lanes`, whose groups it joins; `op` is the operation that they execute. False
/// after a fault.
bool start_copy(Context& c, const MicroOp* op, uint32_t lanes, AsyncCopy copy);

/// Closes the active lanes' current group.
void commit_copies(Context& c, CopyGroupKind kind);
/// Waits until all but the last `allowed` groups of the active lanes are complete; of the bulk kind
/// with `reads_only`, until their sources have been read. False: return nullptr, the operation
/// is executed again.
bool wait_for_copies(Context& c, const MicroOp* op, CopyGroupKind kind, uint32_t allowed,
                     bool reads_only);
/// When all of a lane's cp.async so far are complete.
Time async_copies_done(const Context& c, int lane);

/// An access to an mbarrier of the own block; `waits` for its result.
void charge_barrier(Context& c, bool waits);

}  // namespace cb::sim
