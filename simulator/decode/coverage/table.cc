// An instruction's row says how many of its forms the decoder takes. Forms that it refuses are
// listed by the pattern that they come from: whole patterns where all alternatives are refused for
// the same reason, else the forms.

#include "simulator/decode/coverage/table.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "simulator/decode/decode.h"
#include "simulator/decode/refusals.h"

namespace cb::sim {
namespace {

struct Counts {
  size_t done = 0, refused = 0, not_yet = 0;

  void add(FormState state) {
    if (state == FormState::kDone) ++done;
    if (state == FormState::kRefused) ++refused;
    if (state == FormState::kNotYet) ++not_yet;
  }
  size_t all() const { return done + refused + not_yet; }
  /// One word for the row.
  std::string status() const {
    if (not_yet > 0) return done == 0 ? "**not yet**" : "**in part**";
    return done > 0 ? "done" : "refused";
  }
};

/// "ptx:12: add.f32x2: why" without the place and the instruction.
std::string reason_of(const std::string& message) {
  size_t place = message.find(": ");
  size_t name = place == std::string::npos ? place : message.find(": ", place + 2);
  return name == std::string::npos ? message : message.substr(name + 2);
}

std::string last_statement(const std::string& text) {
  size_t end = text.find_last_of(';');
  size_t before = end == std::string::npos || end == 0 ? end : text.find_last_of(';', end - 1);
  if (before == std::string::npos || text.find('}') != std::string::npos) return text;
  return text.substr(before + 2);
}

/// The opcode with its modifiers, alternatives in braces, fit for a Markdown cell.
std::string opcode_of(const std::string& text) {
  std::string name = last_statement(text);
  if (name[0] != '{') name = name.substr(0, name.find_first_of(" ;"));
  std::string shown;
  for (char c : name) {
    if (c == '<') c = '{';
    if (c == '>') c = '}';
    if (c == '|') c = ',';
    shown += c;
  }
  return "`" + shown + "`";
}

/// Why an instruction of the kernel is out of scope; empty when none is.
std::string scope_of(const ptx::Module& module) {
  for (const ptx::Function& function : module.functions) {
    if (!function.is_entry) continue;
    for (const ptx::Instruction& instruction : function.body) {
      if (auto reason = out_of_scope(instruction)) return *reason;
    }
  }
  return "";
}

class Row {
 public:
  explicit Row(const PtxInstruction& instruction) : instruction_(instruction) {}

  void add(const PtxForm& form, const FormAnswer& answer) {
    counts_.add(answer.state);
    ++alternatives_[form.pattern];
    if (answer.state == FormState::kDone) return;
    auto& group = groups_[{answer.state, answer.why}];
    if (group.empty() || group.back().first != form.pattern) group.push_back({form.pattern, {}});
    group.back().second.push_back(form.text);
  }

  const Counts& counts() const { return counts_; }

  std::string text() const {
    std::string notes;
    for (const auto& [key, patterns] : groups_) {
      std::string names;
      std::string last;
      for (const auto& [pattern, texts] : patterns) {
        bool whole = texts.size() == alternatives_.at(pattern);
        for (const std::string& text : whole ? std::vector{pattern} : texts) {
          std::string name = opcode_of(text);
          if (name == last) continue;
          names += (names.empty() ? "" : ", ") + name;
          last = name;
        }
      }
      notes += fmt::format("{}{}: {}", notes.empty() ? "" : "; ", names, key.second);
    }
    return fmt::format("| `{}` | {} | {}/{} | {} |\n", instruction_.name, counts_.status(),
                       counts_.done, counts_.all(), notes);
  }

 private:
  const PtxInstruction& instruction_;
  Counts counts_;
  std::map<std::string, size_t> alternatives_;
  std::map<std::pair<FormState, std::string>,
           std::vector<std::pair<std::string, std::vector<std::string>>>>
      groups_;
};

constexpr const char* kHead =
    "# The PTX of the simulator\n\n"
    "Written by `commbench-ptx-coverage`, which asks the decoder about every form; do not edit.\n\n"
    "The instructions of PTX ISA 9.0, with representative forms of each "
    "(`simulator/decode/coverage/forms.txt`).\n"
    "A form is *done* when the decoder takes it, *refused* when sm_90a does not have it or it is "
    "out of scope, and\n*not yet* when hardware of sm_90a has it and the simulator does not. A "
    "refusal names the instruction and its line.\n\n";

std::string word_for(FormState state) {
  switch (state) {
    case FormState::kDone:
      return "done";
    case FormState::kRefused:
      return "refused";
    case FormState::kNotYet:
      return "**not yet**";
    case FormState::kWrong:
      break;
  }
  return "**wrong**";
}

std::string handler_table(const std::vector<NamedForm>& handlers) {
  Counts counts;
  std::string rows;
  for (const NamedForm& handler : handlers) {
    FormAnswer answer = ask_decoder(handler.form);
    counts.add(answer.state);
    rows += fmt::format("| {} | `{}` | {} |\n", handler.name, handler.form.text,
                        word_for(answer.state));
  }
  return fmt::format(
      "\n## What communication kernels use\n\nThe operations that the kernels of NCCL, NVSHMEM, "
      "DeepEP, MSCCL++, FlashInfer, ThunderKittens, Flux and UCCL\nconsist of, with a "
      "representative of each: {} of {} are done.\n\n| operation | for example | |\n| --- | --- | "
      "--- |\n{}",
      counts.done, counts.all(), rows);
}

}  // namespace

FormAnswer ask_decoder(const PtxForm& form) {
  FormAnswer answer;
  std::string message, scope;
  auto module = ptx::parse(module_head("sm_90a") + kernel_with(form, 0));
  if (module) {
    auto shared = std::make_shared<const ptx::Module>(std::move(*module));
    auto program = decode(shared, "k0", StallModel{});
    if (program) {
      answer.state = form.is_legal() ? FormState::kDone : FormState::kWrong;
      return answer;
    }
    message = program.error().message();
    scope = scope_of(*shared);
  } else {
    message = module.error().message();
  }
  bool refused = !form.is_legal() || !scope.empty();
  answer.state = refused ? FormState::kRefused : FormState::kNotYet;
  bool newer = !form.is_legal() && form.target != "removed";
  answer.why = !scope.empty() ? scope : newer ? "needs " + form.target : reason_of(message);
  return answer;
}

Result<std::vector<NamedForm>> parse_named_forms(std::string_view text) {
  std::vector<NamedForm> forms;
  size_t number = 0;
  while (!text.empty()) {
    size_t end = std::min(text.find('\n'), text.size());
    std::string line(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    ++number;
    if (line.empty() || line[0] == '#') continue;
    size_t tab = line.find('\t');
    if (tab == std::string::npos) {
      return failure(ErrorCode::kConfig, fmt::format("line {}: no tab", number));
    }
    NamedForm named;
    named.name = line.substr(0, tab);
    named.form.text = named.form.pattern = line.substr(tab + 1);
    forms.push_back(std::move(named));
  }
  return forms;
}

CoverageTable coverage_table(const std::vector<PtxInstruction>& instructions,
                             const std::vector<NamedForm>& handlers) {
  CoverageTable table;
  std::string rows, family;
  Counts forms;
  size_t whole = 0, out = 0, partly = 0, missing = 0;
  for (const PtxInstruction& instruction : instructions) {
    if (instruction.family != family) {
      family = instruction.family;
      rows += fmt::format(
          "\n## {}\n\n| instruction | | forms | what is missing |\n| --- | --- | --- | --- |\n",
          family);
    }
    Row row(instruction);
    for (const PtxForm& form : instruction.forms) {
      FormAnswer answer = ask_decoder(form);
      if (answer.state == FormState::kWrong) table.wrong.push_back(form.text);
      row.add(form, answer);
      forms.add(answer.state);
    }
    const Counts& counts = row.counts();
    if (counts.not_yet > 0) {
      ++(counts.done > 0 ? partly : missing);
    } else {
      ++(counts.done > 0 ? whole : out);
    }
    rows += row.text();
  }
  table.document = kHead;
  table.document += fmt::format(
      "| | done | in part | not yet | refused |\n| --- | --- | --- | --- | --- |\n"
      "| instructions | {} | {} | {} | {} |\n| forms | {} | | {} | {} |\n",
      whole, partly, missing, out, forms.done, forms.not_yet, forms.refused);
  table.document += rows + handler_table(handlers);
  return table;
}

}  // namespace cb::sim
