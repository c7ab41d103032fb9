#include "simulator/shims/cudart/error_table.h"

#include <dlfcn.h>
#include <gtest/gtest.h>

namespace cb::sim::client {
namespace {

TEST(ErrorTable, SaysWhatTheToolkitsLibrarySays) {
  void* library = dlopen(COMMBENCH_TOOLKIT_CUDART, RTLD_NOW | RTLD_LOCAL);
  ASSERT_NE(library, nullptr) << dlerror();
  using Text = const char*(int);
  auto* name = reinterpret_cast<Text*>(dlsym(library, "cudaGetErrorName"));
  auto* text = reinterpret_cast<Text*>(dlsym(library, "cudaGetErrorString"));
  ASSERT_NE(name, nullptr);
  ASSERT_NE(text, nullptr);
  for (int code = -1; code <= 11'000; ++code) {
    EXPECT_STREQ(error_name(static_cast<cudaError_t>(code)), name(code)) << code;
    EXPECT_STREQ(error_text(static_cast<cudaError_t>(code)), text(code)) << code;
  }
  dlclose(library);
}

}  // namespace
}  // namespace cb::sim::client
