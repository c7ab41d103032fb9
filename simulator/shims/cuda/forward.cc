// libcuda.so.1: every function jumps to its implementation in libcudart.so.13, through the table
// that that library hands out. Arguments stay where the caller put them, so that one jump serves
// every signature; %r11 belongs to nobody at a call.

extern "C" const void* commbench_sim_driver_entries();

extern "C" {
__attribute__((visibility("hidden"))) const void* commbench_driver_table = nullptr;
}

namespace {

__attribute__((constructor)) void take_table() {
  commbench_driver_table = commbench_sim_driver_entries();
}

}  // namespace

#define CB_ENTRY(symbol, number)                    \
  __asm__(                                          \
      ".pushsection .text\n"                        \
      ".globl " #symbol                             \
      "\n"                                          \
      ".type " #symbol ", @function\n" #symbol      \
      ":\n"                                         \
      "  movq commbench_driver_table(%rip), %r11\n" \
      "  jmp *8*" #number                           \
      "(%r11)\n"                                    \
      ".size " #symbol ", .-" #symbol               \
      "\n"                                          \
      ".popsection\n");
#include "simulator/shims/cuda/entries.inc"
#undef CB_ENTRY
