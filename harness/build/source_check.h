#pragma once

#include <string>
#include <string_view>
#include <vector>

/// What can be said about a candidate's sources before and after preprocessing, as text.
namespace cb::build {

/// A preprocessor directive as spelled.
struct Directive {
  std::string name;  ///< "include"; "line" also for line markers and what may hide one
  std::string rest;  ///< the text after the name, comments removed
  unsigned line = 0;
};

/// Every directive of a source file, in inactive regions too: comments, strings, raw strings,
/// spliced lines and digraphs are understood, macros are not expanded.
std::vector<Directive> scan_directives(std::string_view source);

/// One #include as the preprocessor carried it out.
struct Inclusion {
  std::string includer;
  unsigned line = 0;
  std::string header;  ///< the path that was opened
};

/// The inclusions that files below `folder` made, from the line markers of preprocessed text.
std::vector<Inclusion> inclusions_from(std::string_view preprocessed, std::string_view folder);

/// Which headers candidates may include.
struct IncludePolicy {
  std::vector<std::string> links;
  std::vector<std::string> forbidden;
};

/// The name under which a candidate includes the header at this path of the build jail:
/// "sys/mman.h", "vector", "nccl.h".
std::string header_name(const std::string& path);

/// Why a candidate may not include the header at this path of the build jail, or nothing if it may.
std::string why_forbidden(const std::string& header, const IncludePolicy& policy);

/// Whether a name matches one of the patterns (* ? []).
bool matches_any(const std::string& name, const std::vector<std::string>& patterns);

/// Device code that calls what no kernel here may: "device-side malloc", "dynamic parallelism".
/// Empty when there is none.
std::string forbidden_device_call(std::string_view ptx);

}  // namespace cb::build
