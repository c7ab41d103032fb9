// Writes or checks the table of PTX instructions, and checks its forms against the real assembler.

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <map>

#include "base/file.h"
#include "base/process.h"
#include "simulator/decode/coverage/table.h"

namespace cb::sim {
namespace {

constexpr const char* kUsage =
    "usage: commbench-ptx-coverage FOLDER --write FILE    write the table\n"
    "       commbench-ptx-coverage FOLDER --check FILE    fail when FILE is not the table\n"
    "       commbench-ptx-coverage FOLDER --ptxas PTXAS   fail when PTXAS disagrees with the "
    "forms\n"
    "FOLDER holds forms.txt and handlers.txt.\n";
constexpr int kSkipped = 77;

struct Lists {
  std::vector<PtxInstruction> instructions;
  std::vector<NamedForm> handlers;
};

Lists read_lists(const std::string& folder) {
  return {value_or_throw(parse_forms(value_or_throw(read_file(folder + "/forms.txt")))),
          value_or_throw(parse_named_forms(value_or_throw(read_file(folder + "/handlers.txt"))))};
}

int write_or_check(const Lists& lists, const std::string& path, bool write) {
  CoverageTable table = coverage_table(lists.instructions, lists.handlers);
  for (const std::string& form : table.wrong) {
    fmt::print(stderr, "the decoder takes what sm_90a does not have: {}\n", form);
  }
  if (write) {
    write_file(path, table.document);
  } else if (read_file(path).value_or("") != table.document) {
    fmt::print(stderr, "{} is not what the decoder says: run commbench-ptx-coverage --write\n",
               path);
    return 1;
  }
  return table.wrong.empty() ? 0 : 1;
}

/// What ptxas prints about a module for `target`; empty when it takes it.
std::string assemble(const std::string& ptxas, const TempDir& folder, const std::string& target,
                     const std::string& module) {
  std::string path = folder.path() + "/module.ptx";
  write_file(path, module);
  ProcessOptions options;
  options.argv = {ptxas, "-arch", target, path, "-o", folder.path() + "/module.cubin"};
  CompletedProcess process = run_process(options, 300'000);
  if (process.status.success()) return "";
  return process.standard_output + process.standard_error + process.status.describe();
}

/// Forms that are legal for `target`, in one module. Returns the number of complaints.
int check_legal(const std::string& ptxas, const TempDir& folder, const std::string& target,
                const std::vector<PtxForm>& forms) {
  std::string module = module_head(target);
  size_t head = static_cast<size_t>(std::count(module.begin(), module.end(), '\n'));
  for (size_t i = 0; i < forms.size(); ++i) module += kernel_with(forms[i], i);
  std::string answer = assemble(ptxas, folder, target, module);
  int complaints = 0;
  size_t position = 0;
  while ((position = answer.find(", line ", position)) != std::string::npos) {
    size_t line = std::strtoul(answer.c_str() + position + 7, nullptr, 10);
    std::string text = answer.substr(position, answer.find('\n', position) - position);
    position += 7;
    if (line <= head || text.find("error") == std::string::npos) continue;
    size_t index = (line - head - 1) / kKernelLines;
    if (index >= forms.size()) continue;
    fmt::print(stderr, "{}: {}\n    {}\n", target, forms[index].text, text);
    ++complaints;
  }
  if (complaints == 0 && !answer.empty()) {
    fmt::print(stderr, "{}: {}\n", target, answer);
    ++complaints;
  }
  return complaints;
}

int check_with_ptxas(const Lists& lists, const std::string& ptxas) {
  if (access(ptxas.c_str(), X_OK) != 0) {
    fmt::print(stderr, "{} is not there\n", ptxas);
    return kSkipped;
  }
  std::map<std::string, std::vector<PtxForm>> by_target;
  for (const PtxInstruction& instruction : lists.instructions) {
    for (const PtxForm& form : instruction.forms) by_target[form.target].push_back(form);
  }
  for (const NamedForm& handler : lists.handlers) by_target["sm_90a"].push_back(handler.form);
  TempDir folder("ptx-coverage");
  int complaints = 0;
  for (const auto& [target, forms] : by_target) {
    if (target != "removed") complaints += check_legal(ptxas, folder, target, forms);
    if (target == "sm_90a") continue;
    for (const PtxForm& form : forms) {
      std::string module = module_head("sm_90a") + kernel_with(form, 0);
      if (!assemble(ptxas, folder, "sm_90a", module).empty()) continue;
      fmt::print(stderr, "sm_90a: legal, though listed for {}: {}\n", target, form.text);
      ++complaints;
    }
  }
  return complaints == 0 ? 0 : 1;
}

int run(const std::vector<std::string>& arguments) {
  if (arguments.size() != 3) {
    fmt::print(stderr, "{}", kUsage);
    return 2;
  }
  const std::string& action = arguments[1];
  Lists lists = read_lists(arguments[0]);
  if (action == "--write" || action == "--check") {
    return write_or_check(lists, arguments[2], action == "--write");
  }
  if (action == "--ptxas") return check_with_ptxas(lists, arguments[2]);
  fmt::print(stderr, "{}", kUsage);
  return 2;
}

}  // namespace
}  // namespace cb::sim

int main(int argc, char** argv) {
  try {
    return cb::sim::run({argv + 1, argv + argc});
  } catch (const cb::Error& error) {
    fmt::print(stderr, "commbench-ptx-coverage: {}\n", error.message());
    return 1;
  }
}
