#pragma once

#include <cstdlib>
#include <cstring>
#include <type_traits>

namespace cb::sim::client {

/// A growing array of plain values. It stands in for std::vector because the shims do not link
/// libstdc++. Constant-initialised; never freed when it is a global, because threads may outlive
/// the library's destructors.
template <class T>
class List {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  /// False when memory is out.
  bool insert(size_t at, const T& value) {
    if (size_ == capacity_) {
      size_t capacity = capacity_ == 0 ? 16 : 2 * capacity_;
      auto* grown = static_cast<T*>(realloc(items_, capacity * kItemBytes));
      if (grown == nullptr) return false;
      items_ = grown;
      capacity_ = capacity;
    }
    memmove(items_ + at + 1, items_ + at, (size_ - at) * kItemBytes);
    items_[at] = value;
    ++size_;
    return true;
  }
  bool push(const T& value) { return insert(size_, value); }
  void erase(size_t at) {
    memmove(items_ + at, items_ + at + 1, (size_ - at - 1) * kItemBytes);
    --size_;
  }
  void clear() { size_ = 0; }
  /// Frees the memory.
  void release() {
    free(items_);
    items_ = nullptr;
    size_ = capacity_ = 0;
  }

  size_t size() const { return size_; }
  T& operator[](size_t at) { return items_[at]; }
  const T& operator[](size_t at) const { return items_[at]; }

  /// Index of the first item whose key is not below `key`, in a list sorted by `key_of`.
  template <class Key, class KeyOf>
  size_t lower_bound(const Key& key, KeyOf key_of) const {
    size_t low = 0, high = size_;
    while (low < high) {
      size_t middle = low + (high - low) / 2;
      if (key_of(items_[middle]) < key) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    return low;
  }

 private:
  // NOLINTNEXTLINE(bugprone-sizeof-expression): items may be pointers
  static constexpr size_t kItemBytes = sizeof(T);

  T* items_ = nullptr;
  size_t size_ = 0;
  size_t capacity_ = 0;
};

/// Values by address: which kernel a host stub stands for, which variable a host shadow is.
template <class T>
class AddressMap {
 public:
  bool set(const void* key, T value) {
    size_t at = find_slot(key);
    if (at < entries_.size() && entries_[at].key == key) {
      entries_[at].value = value;
      return true;
    }
    return entries_.insert(at, Entry{key, value});
  }
  /// T() when there is none.
  T get(const void* key) const {
    size_t at = find_slot(key);
    return at < entries_.size() && entries_[at].key == key ? entries_[at].value : T();
  }
  template <class Matches>
  void erase_if(Matches matches) {
    for (size_t at = entries_.size(); at-- > 0;) {
      if (matches(entries_[at].value)) entries_.erase(at);
    }
  }

 private:
  struct Entry {
    const void* key;
    T value;
  };
  size_t find_slot(const void* key) const {
    return entries_.lower_bound(key, [](const Entry& entry) { return entry.key; });
  }
  List<Entry> entries_;
};

}  // namespace cb::sim::client
