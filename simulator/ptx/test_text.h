#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "base/file.h"
#include "simulator/ptx/module.h"

namespace cb::ptx {

inline constexpr std::string_view kHeader = ".version 9.0\n.target sm_90a\n.address_size 64\n";

/// Parses `text` after a header of three lines.
inline Result<Module> parse_text(const std::string& text, const ParseLimits& limits = {}) {
  return parse(std::string(kHeader) + text, limits);
}

/// Parses a kernel with these statements and some registers: %p<9>, %r<99> (b32), %rd<99> (b64).
inline Result<Module> parse_body(const std::string& statements, const ParseLimits& limits = {}) {
  return parse_text(
      ".entry kernel(.param .u64 pointer, .param .align 8 .b8 record[24]) {\n"
      ".reg .pred %p<9>; .reg .b32 %r<99>; .reg .b64 %rd<99>;\n" +
          statements + "}\n",
      limits);
}

/// The only function of a module that must parse.
inline Function kernel_of(const std::string& statements) {
  Result<Module> module = parse_body(statements);
  if (!module) {
    ADD_FAILURE() << module.error().message() << "\nin: " << statements;
    return {};
  }
  return module->functions.back();
}

/// The message of a parse that must fail.
inline std::string error_of(const Result<Module>& module) {
  return module ? "parsed without an error" : module.error().message();
}

inline std::string test_data(const std::string& name) {
  return value_or_throw(read_file(COMMBENCH_SOURCE_DIR "/simulator/ptx/testdata/" + name));
}

}  // namespace cb::ptx
