// Every handler that find_alu gives a form of the coverage table must have been compared with a
// model by a test of this program.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/file.h"
#include "simulator/decode/coverage/forms.h"
#include "simulator/exec/alu_check.h"

namespace cb::sim {
namespace {

/// The handlers of a form's instructions that are arithmetic.
std::vector<CheckedHandler> handlers_of(const PtxForm& form) {
  auto module = ptx::parse(module_head("sm_90a") + kernel_with(form, 0));
  if (!module) return {};
  std::vector<CheckedHandler> found;
  const ptx::Function* kernel = module->find_function("k0");
  for (const ptx::Instruction& instruction : kernel->body) {
    auto spec = find_alu(instruction, *kernel);
    if (spec && *spec) found.push_back(checked_handler(**spec));
  }
  return found;
}

/// Runs after all tests.
class Coverage : public ::testing::Environment {
 public:
  void TearDown() override {
    if (::testing::GTEST_FLAG(filter) != "*") return;
    auto instructions = value_or_throw(parse_forms(
        value_or_throw(read_file(COMMBENCH_SOURCE_DIR "/simulator/decode/coverage/forms.txt"))));
    size_t handlers = 0;
    for (const PtxInstruction& instruction : instructions) {
      for (const PtxForm& form : instruction.forms) {
        for (const CheckedHandler& handler : handlers_of(form)) {
          ++handlers;
          if (!checked_handlers().contains(handler)) {
            ADD_FAILURE() << "no test compares this form's handler with a model: " << form.text;
          }
        }
      }
    }
    EXPECT_GT(handlers, 0u);
  }
};

const ::testing::Environment* const kCoverage = ::testing::AddGlobalTestEnvironment(new Coverage);

}  // namespace
}  // namespace cb::sim
