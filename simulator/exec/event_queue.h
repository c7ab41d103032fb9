#pragma once

// Things to do, in order of virtual time and, at the same time, of scheduling.

#include <cstdint>
#include <vector>

#include "simulator/exec/micro_op.h"

namespace cb::sim {

struct Warp;

struct Event {
  enum class Kind : uint8_t { kWarp, kCallback, kStore, kCopyRead, kCopyDone };
  Time time = 0;
  uint64_t sequence = 0;
  Warp* warp = nullptr;  ///< kWarp
  uint64_t ticket = 0;   ///< kWarp: valid if it is still the warp's; others: index
  Kind kind = Kind::kWarp;

  bool before(const Event& other) const {
    return time != other.time ? time < other.time : sequence < other.sequence;
  }
};

/// A heap with four children a node: the entries are small and the levels few.
class EventQueue {
 public:
  bool empty() const { return heap_.empty(); }
  Time next_time() const { return heap_.empty() ? kNever : heap_.front().time; }
  const Event& top() const { return heap_.front(); }

  void push(Event event) {
    event.sequence = next_sequence_++;
    size_t hole = heap_.size();
    heap_.push_back(event);
    while (hole > 0) {
      size_t parent = (hole - 1) / 4;
      if (!event.before(heap_[parent])) break;
      heap_[hole] = heap_[parent];
      hole = parent;
    }
    heap_[hole] = event;
  }

  void pop() {
    Event last = heap_.back();
    heap_.pop_back();
    if (heap_.empty()) return;
    size_t hole = 0;
    for (;;) {
      size_t first = 4 * hole + 1;
      if (first >= heap_.size()) break;
      size_t end = first + 4 < heap_.size() ? first + 4 : heap_.size();
      size_t least = first;
      for (size_t child = first + 1; child < end; ++child) {
        if (heap_[child].before(heap_[least])) least = child;
      }
      if (!heap_[least].before(last)) break;
      heap_[hole] = heap_[least];
      hole = least;
    }
    heap_[hole] = last;
  }

 private:
  std::vector<Event> heap_;
  uint64_t next_sequence_ = 0;
};

}  // namespace cb::sim
