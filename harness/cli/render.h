#pragma once

#include <string>
#include <vector>

#include "metrics/metrics.h"
#include "results/record.h"

namespace cb::cli {

/// One row per candidate: the case with the most bytes stands for it in nccl-tests' columns.
std::string score_table(const std::vector<results::Record>& records, bool color);
/// One row per case of a record.
std::string case_table(const results::Record& record, bool color);
/// Pass rate, PASS+Good, GM-speedup and Pass×GM.
std::string score_lines(const metrics::Scores& scores);
/// Which page of `commbench explain` helps; empty for a pass.
std::string advice_text(const results::Record& record);
/// "pass" or "memory_error: out_of_bounds", in its colour.
std::string verdict_text(const results::Record& record, bool color);
/// Build, launch, simulate and grade.
std::string wall_text(const results::Record& record);

}  // namespace cb::cli
