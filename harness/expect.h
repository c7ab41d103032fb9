#pragma once

#include <string>
#include <vector>

#include "base/error.h"
#include "results/record.h"

/// Files that say what each candidate of a folder must be found to be
/// (examples/candidates/expected.yaml describes the format).
namespace cb::harness {

struct Expectation {
  std::string file;
  std::string about;
  std::vector<results::Verdict> verdicts;  ///< any of these is right
  std::string reason;                      ///< of the first; empty: any
  int rank = -1;                           ///< -1: any
  std::vector<int> lines;                  ///< empty: any
};

/// Error(kConfig) with file and line for anything that is not understood.
Result<std::vector<Expectation>> load_expectations(const std::string& path);

/// Why the record is not what was expected, in one line; empty if it is.
std::string mismatch(const Expectation& expected, const results::Record& record);

/// One line for each candidate that is not as expected, is expected and was not scored, or was
/// scored and is not expected. Names are relative to the scored folder.
std::vector<std::string> mismatches(const std::vector<Expectation>& expected,
                                    const std::vector<results::Record>& records);

}  // namespace cb::harness
