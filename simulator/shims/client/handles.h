#pragma once

// Handles that CUDA programs hold (streams, events, kernels, modules). CUDA promises an error code,
// not a crash, for many wrong handles, so a handle is never dereferenced before it is found: it is
// the address of a slot in a reserved table, plus the slot's generation in the low bits, which the
// slot's alignment leaves free. A stale handle differs from the live one of the same slot.

#include <sys/mman.h>

#include <atomic>
#include <cstdint>
#include <new>
#include <type_traits>

#include "simulator/shims/client/mutex.h"

namespace cb::sim::client {

template <class T, uint32_t kCapacity>
class HandleTable {
  static_assert(std::is_trivially_destructible_v<T>);

 public:
  /// A new T() and its handle; nullptr when the table is full.
  T* create(void** handle) {
    Lock lock(mutex_);
    if (!reserve()) return nullptr;
    uint32_t index;
    if (fresh_ < kCapacity && free_count_ < kMinFree) {
      index = fresh_++;
    } else if (free_count_ > 0) {
      index = first_free_;
      first_free_ = slots_[index].next_free;
      --free_count_;
    } else {
      return nullptr;
    }
    Slot& slot = slots_[index];
    T* value = new (&slot.value) T();
    slot.live.store(true, std::memory_order_release);
    *handle = handle_of(slot);
    return value;
  }

  /// The object behind a handle, or nullptr for anything else.
  T* find(const void* handle) {
    Slot* slot = slot_of(handle);
    return slot == nullptr ? nullptr : &slot->value;
  }

  /// False when the handle is not live.
  bool destroy(const void* handle) {
    Lock lock(mutex_);
    Slot* slot = slot_of(handle);
    if (slot == nullptr) return false;
    slot->live.store(false, std::memory_order_release);
    ++slot->generation;
    auto index = static_cast<uint32_t>(slot - slots_);
    slot->next_free = index;
    if (free_count_ == 0) {
      first_free_ = index;
    } else {
      slots_[last_free_].next_free = index;
    }
    last_free_ = index;
    ++free_count_;
    return true;
  }

  /// Calls `visit(handle, object)` for every live object. Not while others create or destroy.
  template <class Visit>
  void for_each(Visit visit) {
    for (uint32_t index = 0; index < fresh_; ++index) {
      Slot& slot = slots_[index];
      if (slot.live.load(std::memory_order_acquire)) visit(handle_of(slot), slot.value);
    }
  }

 private:
  static constexpr uintptr_t kAlignment = 64;
  /// Slots that rest before one is used again, so that generations do not come round soon.
  static constexpr uint32_t kMinFree = 256;

  struct alignas(kAlignment) Slot {
    std::atomic<bool> live;
    uint32_t generation;
    uint32_t next_free;
    T value;
  };

  bool reserve() {
    if (slots_ != nullptr) return true;
    void* memory = mmap(nullptr, sizeof(Slot) * kCapacity, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) return false;
    slots_ = static_cast<Slot*>(memory);
    return true;
  }
  static void* handle_of(Slot& slot) {
    return reinterpret_cast<char*>(&slot) + slot.generation % kAlignment;
  }
  Slot* slot_of(const void* handle) {
    auto address = reinterpret_cast<uintptr_t>(handle);
    auto base = reinterpret_cast<uintptr_t>(slots_);
    if (slots_ == nullptr || address < base || address >= base + sizeof(Slot) * kCapacity) {
      return nullptr;
    }
    uintptr_t offset = (address - base) % sizeof(Slot);
    Slot& slot = slots_[(address - base) / sizeof(Slot)];
    if (!slot.live.load(std::memory_order_acquire)) return nullptr;
    return offset == slot.generation % kAlignment ? &slot : nullptr;
  }

  Mutex mutex_;
  Slot* slots_ = nullptr;
  uint32_t fresh_ = 0;
  uint32_t free_count_ = 0;
  uint32_t first_free_ = 0;
  uint32_t last_free_ = 0;
};

}  // namespace cb::sim::client
