#include "harness/cli/sim_trace.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/file.h"
#include "base/text.h"
#include "base/tty.h"
#include "harness/cli/render.h"
#include "harness/cli/timeline_svg.h"
#include "harness/observe.h"
#include "results/finding_text.h"

namespace cb::cli {
namespace {

struct TraceOptions {
  std::string task;
  std::string candidate;
  std::string platform = "sim:h100x8";
  std::string run_key;
  std::string case_id;
  std::string out = "trace.json";
  std::string svg;
};

std::string default_case(const tasks::Card& card, int num_devices) {
  const tasks::Case* first = nullptr;
  for (const tasks::Case& one : card.cases) {
    if (one.world_size > num_devices) continue;
    if (one.measured) return one.id;
    if (first == nullptr) first = &one;
  }
  if (first != nullptr) return first->id;
  throw Error(ErrorCode::kUsage,
              fmt::format("no case of {} fits on {} devices", card.id, num_devices));
}

int trace(const Common& common, const TraceOptions& options) {
  tasks::Card card = find_task(common, options.task);
  harness::Candidate candidate = harness::Candidate::load(options.candidate);
  RunKey key = run_key_of(options.run_key);
  std::unique_ptr<harness::Platform> platform =
      harness::make_platform(options.platform, common.layout);
  std::string case_id =
      options.case_id.empty() ? default_case(card, platform->num_devices()) : options.case_id;
  Progress progress(common.quiet);
  harness::Observation seen =
      harness::observe(common.layout, *platform,
                       {.card = &card,
                        .candidate = &candidate,
                        .key = &key,
                        .case_id = case_id,
                        .profile = false,
                        .timeline = true},
                       [&](const std::string& line) { progress.update(printable(line, 200)); });
  progress.clear();
  bool color = use_color(stdout);
  if (seen.timeline.is_null()) {
    print(verdict_text(seen.record, color) + ": nothing was run, so there is no trace\n" +
          results::finding_text(seen.record));
    return seen.record.verdict == results::Verdict::kInfraError ? kInfrastructure : kDidNotPass;
  }
  write_file(options.out, dump_json(seen.timeline) + "\n");
  if (!options.svg.empty()) {
    write_file(options.svg, timeline_svg(seen.timeline, card.id + ", case " + case_id));
  }
  if (common.json) {
    print_json({{"task", card.id},
                {"case", case_id},
                {"verdict", to_string(seen.record.verdict)},
                {"run_key", key.hex()},
                {"trace", options.out},
                {"events", seen.timeline.at("traceEvents").size()},
                {"left_out", seen.timeline.at("otherData").at("left_out")}});
  } else {
    print(fmt::format("{}, case {}: {}\n", card.id, case_id, verdict_text(seen.record, color)));
    print(results::finding_text(seen.record));
    print(fmt::format("{} events in {}; open it in ui.perfetto.dev\n",
                      seen.timeline.at("traceEvents").size(), options.out));
    for (const auto& [kind, count] : seen.timeline.at("otherData").at("left_out").items()) {
      if (count.get<uint64_t>() == 0) continue;
      print(fmt::format("left out: {} of {}, beyond the trace's bounds\n", count.get<uint64_t>(),
                        kind));
    }
  }
  return kDone;
}

}  // namespace

void add_sim_trace(CLI::App& sim, const Common& common, int& exit_code) {
  auto options = std::make_shared<TraceOptions>();
  CLI::App* command = sim.add_subcommand("trace", "one case of a candidate as a timeline");
  command->add_option("TASK", options->task, "id of a task, or the path of its folder")->required();
  command->add_option("CANDIDATE", options->candidate, "a file, or a folder of sources")
      ->required();
  command->add_option("--case", options->case_id, "default: the first measured one");
  command->add_option("--platform", options->platform, "where ranks execute")
      ->capture_default_str();
  command->add_option("--run-key", options->run_key, "64 hexadecimal digits; default: random");
  command->add_option("--out", options->out, "Trace Event Format, for Perfetto")
      ->capture_default_str();
  command->add_option("--svg", options->svg, "also a picture of the last step");
  command->callback([&common, &exit_code, options] { exit_code = trace(common, *options); });
}

}  // namespace cb::cli
