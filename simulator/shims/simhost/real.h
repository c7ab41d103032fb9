#pragma once

#include <dlfcn.h>

namespace cb::sim::simhost {

/// The C library's own function behind one that this folder interposes. Looked up at first use,
/// because interposed functions run before any constructor of ours.
template <class Function>
class Real {
 public:
  constexpr explicit Real(const char* name) : name_(name) {}

  template <class... Args>
  auto operator()(Args... args) {
    return get()(args...);
  }
  Function* get() {
    Function* function = __atomic_load_n(&function_, __ATOMIC_ACQUIRE);
    if (function == nullptr) {
      function = reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name_));
      __atomic_store_n(&function_, function, __ATOMIC_RELEASE);
    }
    return function;
  }

 private:
  const char* name_;
  Function* function_ = nullptr;
};

}  // namespace cb::sim::simhost

/// Marks a function that takes the place of the C library's in the whole process.
#define CB_INTERPOSED extern "C" __attribute__((visibility("default")))
