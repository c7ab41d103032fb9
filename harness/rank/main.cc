// commbench-rank: one of a pool of trusted processes under mpirun that evaluate candidates, job
// after job. Rank 0 talks to the controller; all of them end when it goes.
#include <fmt/format.h>
#include <mpi.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/fd.h"
#include "base/socket.h"
#include "harness/rank/evaluation.h"
#include "harness/wire.h"

namespace cb::harness {
namespace {

constexpr int kConnectMs = 10'000;

class Pool {
 public:
  Pool(RankGroup& group, std::string folder) : group_(group), folder_(std::move(folder)) {
    if (group_.rank() == 0) controller_ = seqpacket_connect(folder_ + "/control", kConnectMs);
  }

  /// Until the controller hangs up.
  void serve() {
    for (int number = 0;; ++number) {
      std::string job_text = group_.broadcast(receive());
      if (job_text.empty()) return;
      std::string library = group_.broadcast(receive());
      evaluate(job_from(value_or_throw(parse_json(job_text, "job"))), library, number);
    }
  }

 private:
  std::string receive() {
    if (group_.rank() != 0) return "";
    return receive_text(controller_.get(), -1).value_or("");
  }

  void say(const Json& json) {
    if (group_.rank() == 0) send_text(controller_.get(), dump_json(json));
  }

  void evaluate(const Job& job, const std::string& library, int number) {
    const RankGroup& group = group_.first(job.world_size);
    if (group_.rank() >= job.world_size) return;
    Evaluation evaluation(job, library, group, fmt::format("{}/sim-{}", folder_, number),
                          [&](const std::string& case_id) {
                            say({{"case", case_id}});
                          });
    std::vector<std::string> reports = group.gather(dump_json(to_json(evaluation.run())));
    Json answer;
    for (const std::string& report : reports) {
      answer["reports"].push_back(value_or_throw(parse_json(report, "rank report")));
    }
    say(answer);
  }

  RankGroup& group_;
  std::string folder_;
  UniqueFd controller_;
};

int serve(const std::string& folder) {
  try {
    RankGroup group(MPI_COMM_WORLD);
    Pool(group, folder).serve();
    return 0;
  } catch (const Error& error) {
    std::fprintf(stderr, "commbench-rank: %s\n", error.what());
    return 1;
  }
}

}  // namespace
}  // namespace cb::harness

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "commbench-rank is started by commbench\n");
    return 2;
  }
  // Without mpirun nobody would end us.
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() == 1) return 1;
  MPI_Init(&argc, &argv);
  int code = cb::harness::serve(argv[1]);
  if (code != 0) MPI_Abort(MPI_COMM_WORLD, code);
  MPI_Finalize();
  return code;
}
