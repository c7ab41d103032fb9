// cuLink*: modules that need each other, weak functions, hidden names, and what cannot be linked.

#include <cuda.h>

#include <cstring>
#include <string>

#include "check.h"

#define EXPECT_CU(call) EXPECT_EQUAL(call, CUDA_SUCCESS)

static const char kHead[] = ".version 8.0\n.target sm_80\n.address_size 64\n";

// A kernel that needs a function and a variable of others, and has a variable of its own.
static const std::string kKernel = std::string(kHead) + R"(
.extern .func (.param .b32 result) transform(.param .b32 value);
.extern .global .align 4 .u32 total;
.global .align 4 .u32 hidden = 1;
.visible .entry run(.param .u64 place)
{
  .reg .b32 %r<6>;
  .reg .b64 %rd<2>;
  ld.param.u64 %rd1, [place];
  ld.global.u32 %r1, [%rd1];
  { .param .b32 argument; .param .b32 answer;
    st.param.b32 [argument], %r1;
    call (answer), transform, (argument);
    ld.param.b32 %r2, [answer]; }
  ld.global.u32 %r3, [hidden];
  add.s32 %r4, %r2, %r3;
  st.global.u32 [%rd1], %r4;
  st.global.u32 [total], %r4;
  ret;
}
)";

static std::string function(const char* linkage, const char* instruction) {
  return std::string(kHead) + ".global .align 4 .u32 hidden = 10;\n" + linkage +
         " .func (.param .b32 result) transform(.param .b32 value)\n{\n .reg .b32 %r<4>;\n"
         " ld.param.b32 %r1, [value];\n ld.global.u32 %r2, [hidden];\n " +
         instruction + " %r3, %r1, %r2;\n st.param.b32 [result], %r3;\n ret;\n}\n";
}
static const std::string kTotal = std::string(kHead) + ".visible .global .align 4 .u32 total;\n";

struct Link {
  char log[2048] = "";
  CUlinkState state = nullptr;
  // These are written to until the end of the link.
  CUjit_option options[2] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
  void* values[2] = {log, reinterpret_cast<void*>(sizeof log)};
  Link() { EXPECT_CU(cuLinkCreate(2, options, values, &state)); }
  ~Link() { EXPECT_CU(cuLinkDestroy(state)); }
  CUresult add(const std::string& ptx) {
    return cuLinkAddData(state, CU_JIT_INPUT_PTX, const_cast<char*>(ptx.c_str()), ptx.size() + 1,
                         "input", 0, nullptr, nullptr);
  }
};

/// The result of the kernel for 5, after linking it with `more`.
static int run(const std::string& more, const std::string& even_more) {
  Link link;
  EXPECT_CU(link.add(kKernel));
  EXPECT_CU(link.add(more));
  EXPECT_CU(link.add(kTotal));
  if (!even_more.empty()) EXPECT_CU(link.add(even_more));
  void* image = nullptr;
  size_t bytes = 0;
  if (!EXPECT_CU(cuLinkComplete(link.state, &image, &bytes))) {
    fprintf(stderr, "%s\n", link.log);
    return -1;
  }
  EXPECT(bytes > 0);
  CUmodule module = nullptr;
  CUfunction kernel = nullptr;
  if (!EXPECT_CU(cuModuleLoadData(&module, image))) return -1;
  EXPECT_CU(cuModuleGetFunction(&kernel, module, "run"));
  int* place = nullptr;
  REQUIRE_OK(cudaMallocHost(&place, sizeof *place));
  *place = 5;
  void* args[] = {&place};
  EXPECT_CU(cuLaunchKernel(kernel, 1, 1, 1, 1, 1, 1, 0, nullptr, args, nullptr));
  EXPECT_CU(cuCtxSynchronize());
  CUdeviceptr total = 0;
  int value = 0;
  EXPECT_CU(cuModuleGetGlobal(&total, &bytes, module, "total"));
  EXPECT_CU(cuMemcpyDtoH(&value, total, sizeof value));
  EXPECT_EQUAL(value, *place);
  EXPECT_CU(cuModuleUnload(module));
  return value;
}

int main() {
  REQUIRE_OK(cudaFree(nullptr));
  EXPECT_EQUAL(run(function(".visible", "add.s32"), ""), 16);
  EXPECT_EQUAL(run(function(".visible", "mul.lo.s32"), ""), 51);
  EXPECT_EQUAL(run(function(".weak", "add.s32"), function(".visible", "mul.lo.s32")), 51);

  void* image = nullptr;
  size_t bytes = 0;
  {
    Link link;  // nobody defines `transform`
    EXPECT_CU(link.add(kKernel));
    EXPECT_CU(link.add(kTotal));
    EXPECT(cuLinkComplete(link.state, &image, &bytes) != CUDA_SUCCESS);
    EXPECT(strstr(link.log, "transform") != nullptr);
  }
  {
    Link link;  // two define it
    EXPECT_CU(link.add(kKernel));
    EXPECT_CU(link.add(function(".visible", "add.s32")));
    CUresult second = link.add(function(".visible", "sub.s32"));
    EXPECT(second != CUDA_SUCCESS || cuLinkComplete(link.state, &image, &bytes) != CUDA_SUCCESS);
    EXPECT(strstr(link.log, "transform") != nullptr);
  }
  {
    Link link;
    EXPECT_EQUAL(link.add(std::string(kHead) + ".visible .entry broken() { bra nowhere; }\n"),
                 CUDA_ERROR_INVALID_PTX);
    EXPECT(link.log[0] != '\0');
    EXPECT_EQUAL(
        cuLinkAddFile(link.state, CU_JIT_INPUT_PTX, "/nonexistent.ptx", 0, nullptr, nullptr),
        CUDA_ERROR_FILE_NOT_FOUND);
  }
  return failures();
}
