#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/random.h"
#include "harness/job.h"
#include "results/record.h"
#include "tasks/card.h"

namespace cb::harness {

/// Reports of all ranks, per world size; from trusted processes.
using Reports = std::vector<RankReport>;

/// The card's cases as results, in the card's order: verdicts and times where reports have them,
/// skipped elsewhere. Times are medians over the steps of the maximum over the ranks.
std::vector<results::CaseResult> grade_cases(const tasks::Card& card, const RunKey& key,
                                             const Reports& reports);

/// What all evidence comes to: what outranks the clock wherever it was found, else the first case
/// that failed. nullptr: nothing speaks against the candidate.
const Evidence* verdict_of(const tasks::Card& card, const Reports& reports);

/// Why our own parts failed; empty if they did not, or if there is evidence all the same.
std::string infra_failure(const tasks::Card& card, const Reports& reports);

}  // namespace cb::harness
