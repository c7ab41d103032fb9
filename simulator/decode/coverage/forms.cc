#include "simulator/decode/coverage/forms.h"

#include <fmt/format.h>

#include <algorithm>

namespace cb::sim {

std::vector<std::string> expand_alternatives(const std::string& pattern) {
  size_t open = pattern.find('<');
  size_t close = pattern.find('>', open == std::string::npos ? 0 : open);
  if (open == std::string::npos || close == std::string::npos) return {pattern};
  std::string before = pattern.substr(0, open), after = pattern.substr(close + 1);
  std::vector<std::string> forms;
  for (size_t begin = open + 1; begin <= close;) {
    size_t end = std::min(pattern.find('|', begin), close);
    for (std::string& form :
         expand_alternatives(before + pattern.substr(begin, end - begin) + after)) {
      forms.push_back(std::move(form));
    }
    begin = end + 1;
  }
  return forms;
}

Result<std::vector<PtxInstruction>> parse_forms(std::string_view text) {
  std::vector<PtxInstruction> instructions;
  std::string family;
  size_t number = 0;
  while (!text.empty()) {
    size_t end = std::min(text.find('\n'), text.size());
    std::string line(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    ++number;
    if (line.starts_with("## ")) {
      family = line.substr(3);
    } else if (line.starts_with("= ")) {
      instructions.push_back({.family = family, .name = line.substr(2), .forms = {}});
    } else if (!line.empty() && line[0] != '#') {
      PtxForm form;
      if (line[0] == '[') {
        size_t close = line.find("] ");
        if (close == std::string::npos) {
          return failure(ErrorCode::kConfig, fmt::format("line {}: a target without ]", number));
        }
        form.target = line.substr(1, close - 1);
        line = line.substr(close + 2);
      }
      if (instructions.empty()) {
        return failure(ErrorCode::kConfig, fmt::format("line {}: no instruction yet", number));
      }
      form.pattern = line;
      for (std::string& one : expand_alternatives(line)) {
        form.text = std::move(one);
        instructions.back().forms.push_back(form);
      }
    }
  }
  return instructions;
}

std::string module_head(const std::string& target) {
  return fmt::format(
      ".version 9.0\n.target {}\n.address_size 64\n"
      ".global .align 128 .b8 g[4096];\n.const .align 16 .b8 c[256];\n"
      ".shared .align 128 .b8 s[4096];\n"
      ".func (.param .b32 result) f(.param .b32 argument)\n"
      "{{ .reg .b32 %x; ld.param.b32 %x, [argument]; st.param.b32 [result], %x; ret; }}\n"
      ".func nothing() {{ ret; }}\n"
      ".extern .func (.param .b32 o) vprintf(.param .b64 a, .param .b64 b);\n"
      ".extern .func __assertfail(.param .b64 a, .param .b64 b, .param .b32 d, .param .b64 e,"
      " .param .b64 n);\n",
      target);
}

std::string kernel_with(const PtxForm& form, size_t index) {
  return fmt::format(
      ".visible .entry k{}(.param .b64 p, .param .align 128 .b8 m[128])\n{{\n"
      ".local .align 16 .b8 l[256];\n"
      ".reg .pred %p<64>; .reg .b8 %b<64>; .reg .b16 %h<64>; .reg .b32 %r<64>;\n"
      ".reg .f32 %f<64>; .reg .b64 %rd<64>; .reg .f64 %fd<64>; .reg .b128 %q<64>;\n"
      "{}\nL: ret;\n}}\n",
      index, form.text);
}

}  // namespace cb::sim
