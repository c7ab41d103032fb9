#pragma once

#include <span>

#include "metrics/metrics.h"
#include "results/record.h"

namespace cb::results {

/// Scores over records. Those with infra_error or skipped say nothing about the candidate and are
/// left out.
metrics::Scores summarize(std::span<const Record> records);

Json to_json(const metrics::Scores& scores);

}  // namespace cb::results
