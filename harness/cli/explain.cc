#include "harness/cli/explain.h"

#include <algorithm>
#include <iterator>

namespace cb::cli {

namespace {

constexpr Explanation kExplanations[] = {
    {"pass", "", "Every case gave the right answer, within its limits and rules.",
     "Look at the speed-up: it compares with the expert reference on the same platform."},
    {"wrong_result", "",
     "An output did not hold what it must, in the very step that was timed. The finding names "
     "case, step, rank and the first wrong elements; the note says what the wrong value looks "
     "like, such as poison (never written), the own input, or another rank's data.",
     "Wrong tails point at counts that no vector width divides; values of an earlier or later "
     "call point at a missing barrier; poison points at elements that nobody writes."},
    {"compile_error", "", "nvcc did not accept the sources, or the three entry points are missing.",
     "The finding has the first error; the whole log is attempts/<task>/<n>/build.log."},
    {"runtime_error", "",
     "The process of a rank did not get through: a callback returned an error or threw, the "
     "process ended, or it reached a limit. The reason says which.",
     "See the reason; what the process printed is in attempts/<task>/<n>/run.log."},
    {"memory_error", "",
     "A kernel or copy touched memory that it must not touch. On hardware this may go unnoticed; "
     "here every access is checked.",
     "The finding names kernel, source line, rank, block, thread, and buffer and offset."},
    {"race", "",
     "Two accesses conflict and nothing orders them, or there is a legal order of events that "
     "gives a wrong answer.",
     "Publish with a release at system scope after the data, and acquire before reading it; the "
     "whole block has to have written before one thread signals."},
    {"deadlock", "",
     "Nothing can go on any more: every thread waits for something that nobody can do. The "
     "finding "
     "names who waits, where, for which value, and what is there instead.",
     "Look for ranks that disagree on counts or on the number of blocks, flags that are reused "
     "or "
     "never reset, and grids that are larger than what fits on the device at once."},
    {"timeout", "",
     "The task's limit of simulated or real time was reached without a deadlock, as by an "
     "endless "
     "loop.",
     "Host loops that poll memory must call cb_relax(); device loops must be able to end."},
    {"forbidden", "", "The candidate uses what its task or the sandbox forbids.",
     "The finding names it. The task's statement lists what is allowed."},
    {"cheating", "",
     "Trusted processes saw the answer come about in a way that the task rules out.",
     "Move the data as the statement asks."},
    {"no_answer", "", "There was no code to evaluate.", "Submit a .cu file for the task."},
    {"infra_error", "",
     "One of CommBench's own parts failed. It says nothing about the candidate and counts for no "
     "score.",
     "Run it again; `commbench doctor` checks this machine. Report it if it stays."},
    {"skipped", "",
     "It was not run: the platform has too few devices, or an earlier case ended the job.",
     "Nothing is wrong with what was skipped."},

    {"exception", "runtime_error", "An exception left cb_setup, cb_run or cb_teardown.",
     "Catch it and return a cb_status."},
    {"returned_error", "runtime_error", "A callback returned something else than CB_OK.",
     "Check what it returns on odd counts, and whether a call of its own failed."},
    {"cuda_error", "runtime_error",
     "The stream or device was in an error state after a callback that returned CB_OK.",
     "Check the results of CUDA calls and launches in the candidate."},
    {"load_failed", "runtime_error",
     "The library could not be loaded: usually a function that nobody defines.",
     "The finding names the symbol."},
    {"exited_early", "runtime_error",
     "The process ended before the grader was done with it. What it printed or returned is not "
     "looked at.",
     "Do not call exit, _exit or abort."},
    {"crashed", "runtime_error", "The process was killed by a signal, mostly SIGSEGV.",
     "Device pointers cannot be dereferenced on the host."},
    {"disconnected", "runtime_error", "The process closed its connection to the device.",
     "Leave descriptors alone that you did not open."},
    {"late_work", "runtime_error",
     "Work of the rank was still running after cb_run had returned and the given stream was "
     "done.",
     "Join other streams: record an event in them and let the given stream wait for it."},
    {"limit_memory", "runtime_error", "The process used more host memory than it may.",
     "Allocate in proportion to the task."},
    {"limit_processes", "runtime_error", "It started more processes or threads than it may.",
     "One host thread is enough for most tasks."},
    {"limit_output", "runtime_error", "It printed more than it may.", "Print less."},
    {"limit_file", "runtime_error", "It wrote a larger file than it may.", "Do not write files."},
    {"simulator_ended", "runtime_error",
     "The simulator ended twice with this candidate, and did not with the reference.",
     "This should not be possible; please report the candidate."},
    {"trap", "runtime_error", "A kernel executed a trap instruction.", "See the source line."},
    {"assert", "runtime_error", "An assert() in a kernel failed.", "See the source line."},
    {"illegal_instruction", "runtime_error", "An instruction was used as PTX does not allow.",
     "The finding says what was wrong with it."},
    {"barrier_divergence", "runtime_error",
     "Threads of a block wait at a barrier that others of the block can never reach.",
     "Every thread of the block must reach the same __syncthreads()."},
    {"limit", "runtime_error", "A quota of the simulator was reached.", "The finding names it."},
    {"unsupported", "infra_error",
     "The candidate uses something that the simulator does not have. It is refused by name "
     "instead "
     "of being ignored.",
     "Use another way, or report what is missing."},

    {"out_of_bounds", "memory_error", "An access outside of a buffer.",
     "Compare the index with the count of this call, not with the maximum."},
    {"use_after_free", "memory_error", "Memory was used after it had been freed.",
     "Free in cb_teardown, after the work that uses it."},
    {"not_permitted", "memory_error", "A rank touched memory that it has no access to.",
     "Enable peer access or open the handle first; local buffers are for their own rank only."},
    {"read_only", "memory_error", "A store to memory that is read-only.",
     "Inputs must stay as they are."},
    {"early_access", "memory_error", "The grader's buffers were touched while no step ran.",
     "Work on buffers in cb_run only."},
    {"misaligned", "memory_error", "An address is no multiple of the size of the access.",
     "Offsets are aligned to the element only; choose the vector width at run time."},
    {"illegal_address", "memory_error", "An address that belongs to no memory.",
     "Often a null or host pointer, or an address that was cut to 32 bits."},
    {"stack_overflow", "memory_error", "A kernel's stack was too small.", "Avoid deep recursion."},

    {"input_changed", "wrong_result", "An input was changed, although inputs are read-only here.",
     "Write to the output or to scratch memory of your own."},
    {"virtual_time", "timeout", "A step took longer than the task's limit of simulated time.",
     "Look for loops and sleeps that do not end."},
    {"wall", "timeout", "The evaluation took longer than the task's limit of real time.",
     "A host loop without calls stands still in simulated time; call cb_relax() in it."},
    {"cpu", "timeout", "The process used up its processor time.",
     "Look for host loops that do not end."},
    {"include", "forbidden", "A header that the task forbids was included.",
     "See the task's statement."},
    {"symbol", "forbidden", "A function that the task forbids is used.",
     "See the task's statement."},
    {"syscall", "forbidden", "A system call was made that candidates have no use for.",
     "The finding names it."},
    {"source", "forbidden", "The sources hold a directive that is not allowed.",
     "The finding names it."},
    {"device_code", "forbidden",
     "The library holds device code that was not compiled here, or kernels that allocate or "
     "launch.",
     "Submit source, and allocate on the host."},
    {"host_staging", "cheating",
     "More bytes went between host and device in a step than the task allows: payload must "
     "travel "
     "between GPUs.",
     "Copy from device to device, or let kernels do it."},
    {"too_few_devices", "skipped", "The platform has fewer devices than every case needs.",
     "Choose another profile."},
};

}  // namespace

std::span<const Explanation> explanations() { return kExplanations; }

const Explanation* find_explanation(std::string_view word) {
  auto found = std::find_if(std::begin(kExplanations), std::end(kExplanations),
                            [&](const Explanation& one) { return one.word == word; });
  return found == std::end(kExplanations) ? nullptr : found;
}

}  // namespace cb::cli
