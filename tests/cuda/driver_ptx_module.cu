// PTX text at run time: what the compiler's options and logs say, and how each kind of bad image
// fails.

#include <cuda.h>

#include <cstring>
#include <string>

#include "check.h"

#define EXPECT_CU(call) EXPECT_EQUAL(call, CUDA_SUCCESS)

static const char kAdd[] = R"(
.version 8.0
.target sm_80
.address_size 64
.visible .entry add_one(.param .u64 place)
{
  .reg .b32 %r<3>;
  .reg .b64 %rd<3>;
  ld.param.u64 %rd1, [place];
  ld.global.u32 %r1, [%rd1];
  add.s32 %r2, %r1, 1;
  st.global.u32 [%rd1], %r2;
  ret;
}
)";

/// Loads with an error log; what it says is left in `log`.
static CUresult load(const std::string& ptx, std::string* log) {
  char text[2048] = "not touched";
  CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES, CU_JIT_ERROR_LOG_BUFFER};
  void* values[] = {reinterpret_cast<void*>(sizeof text), text};
  CUmodule module = nullptr;
  CUresult result = cuModuleLoadDataEx(&module, ptx.c_str(), 2, options, values);
  *log = text;
  EXPECT(log->size() < sizeof text);
  if (result == CUDA_SUCCESS) EXPECT_CU(cuModuleUnload(module));
  return result;
}

static std::string replaced(std::string text, const char* from, const char* to) {
  return text.replace(text.find(from), strlen(from), to);
}

static void good_module() {
  char info[4096] = "", errors[64] = "";
  CUjit_option options[] = {CU_JIT_INFO_LOG_BUFFER,    CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES,
                            CU_JIT_ERROR_LOG_BUFFER,   CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES,
                            CU_JIT_LOG_VERBOSE,        CU_JIT_MAX_REGISTERS,
                            CU_JIT_OPTIMIZATION_LEVEL, CU_JIT_WALL_TIME,
                            CU_JIT_GENERATE_LINE_INFO};
  void* values[] = {info,
                    reinterpret_cast<void*>(sizeof info),
                    errors,
                    reinterpret_cast<void*>(sizeof errors),
                    reinterpret_cast<void*>(1),
                    reinterpret_cast<void*>(24),
                    reinterpret_cast<void*>(3),
                    nullptr,
                    reinterpret_cast<void*>(1)};
  CUmodule module = nullptr;
  if (!EXPECT_CU(cuModuleLoadDataEx(&module, kAdd, 9, options, values))) return;
  EXPECT(strstr(info, "add_one") != nullptr);
  EXPECT_EQUAL(errors[0], 0);
  EXPECT(reinterpret_cast<size_t>(values[1]) > 0);
  EXPECT(reinterpret_cast<size_t>(values[1]) < sizeof info);
  float wall_ms = -1;
  memcpy(&wall_ms, &values[7], sizeof wall_ms);
  EXPECT(wall_ms >= 0);

  CUfunction function = nullptr;
  EXPECT_CU(cuModuleGetFunction(&function, module, "add_one"));
  int registers = 0;
  EXPECT_CU(cuFuncGetAttribute(&registers, CU_FUNC_ATTRIBUTE_NUM_REGS, function));
  EXPECT(registers > 0 && registers <= 24);
  CUmodule owner = nullptr;
  EXPECT_CU(cuFuncGetModule(&owner, function));
  EXPECT(owner == module);
  unsigned count = 0;
  EXPECT_CU(cuModuleGetFunctionCount(&count, module));
  EXPECT_EQUAL(count, 1);
  CUfunction listed = nullptr;
  EXPECT_CU(cuModuleEnumerateFunctions(&listed, 1, module));
  const char* name = nullptr;
  EXPECT_CU(cuFuncGetName(&name, listed));
  EXPECT(name != nullptr && strcmp(name, "add_one") == 0);

  int* place = nullptr;
  REQUIRE_OK(cudaMallocHost(&place, sizeof *place));
  *place = 41;
  void* args[] = {&place};
  EXPECT_CU(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, nullptr, args, nullptr));
  EXPECT_CU(cuCtxSynchronize());
  EXPECT_EQUAL(*place, 42);
  EXPECT_CU(cuModuleUnload(module));
}

int main() {
  REQUIRE_OK(cudaFree(nullptr));  // the primary context
  good_module();

  std::string log;
  EXPECT_CU(load(kAdd, &log));
  EXPECT(log.empty());
  // The line of the text is named: add.s32 is on line 11.
  EXPECT_EQUAL(load(replaced(kAdd, "%r2, %r1, 1", "%r2, %nothing, 1"), &log),
               CUDA_ERROR_INVALID_PTX);
  EXPECT(log.find("11") != std::string::npos);
  EXPECT_EQUAL(load(replaced(kAdd, "ret;", "call missing; ret;"), &log), CUDA_ERROR_INVALID_PTX);
  EXPECT(!log.empty());
  EXPECT_EQUAL(load(replaced(kAdd, ".visible", ".extern .func missing();\n.visible")
                        .replace(0, 0, "// a comment first\n"),
                    &log),
               CUDA_SUCCESS);
  std::string undefined = replaced(kAdd, ".visible", ".extern .func missing();\n.visible");
  EXPECT_EQUAL(load(replaced(undefined, "ret;", "call missing; ret;"), &log),
               CUDA_ERROR_INVALID_PTX);
  EXPECT(log.find("missing") != std::string::npos);
  EXPECT_EQUAL(load(replaced(kAdd, "8.0", "99.9"), &log), CUDA_ERROR_UNSUPPORTED_PTX_VERSION);
  EXPECT(log.find("99.9") != std::string::npos);

  CUmodule module = nullptr;
  EXPECT(cuModuleLoadData(&module, "no image at all") != CUDA_SUCCESS);
  EXPECT_EQUAL(cuModuleLoadData(&module, nullptr), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQUAL(cuModuleLoad(&module, "/nonexistent.ptx"), CUDA_ERROR_FILE_NOT_FOUND);
  CUjit_option unknown = static_cast<CUjit_option>(999);
  void* value = nullptr;
  EXPECT_EQUAL(cuModuleLoadDataEx(&module, kAdd, 1, &unknown, &value), CUDA_ERROR_INVALID_VALUE);
  // A log buffer that is too small is filled, and ended.
  char small[8] = "0123456";
  CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
  void* values[] = {small, reinterpret_cast<void*>(4)};
  EXPECT_EQUAL(
      cuModuleLoadDataEx(&module, undefined.insert(undefined.find("ret;"), "bra nowhere; ").c_str(),
                         2, options, values),
      CUDA_ERROR_INVALID_PTX);
  EXPECT(strlen(small) < 4);
  EXPECT_EQUAL(small[4], '4');
  return failures();
}
