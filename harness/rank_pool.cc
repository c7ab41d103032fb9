#include "harness/rank_pool.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <thread>

#include "base/error.h"
#include "base/socket.h"
#include "base/text.h"
#include "harness/wire.h"

namespace cb::harness {
namespace {

namespace fs = std::filesystem;

constexpr const char* kFolderPrefix = "commbench-ranks";
constexpr int kStartMs = 30'000;
// Beyond the job's own limit, after which a rank has reported whatever happened.
constexpr int kPatienceMs = 30'000;
constexpr int kGoodbyeMs = 2'000;
constexpr unsigned kBoxLanes = 6;

std::string temporary_folder() {
  const char* folder = std::getenv("TMPDIR");
  return folder != nullptr && *folder != '\0' ? folder : "/tmp";
}

/// The file, locked, or nothing if somebody else holds it.
UniqueFd try_lock(const std::string& path) {
  UniqueFd fd(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!fd) throw system_error("open " + path);
  if (::flock(fd.get(), LOCK_EX | LOCK_NB) != 0) return UniqueFd();
  return fd;
}

// A folder without a lock file may be another's that is just being made.
void remove_abandoned() {
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(temporary_folder(), ignored)) {
    std::string path = entry.path().string();
    if (!entry.path().filename().string().starts_with(kFolderPrefix)) continue;
    struct stat info {};
    if (::lstat((path + "/lock").c_str(), &info) != 0 || info.st_uid != ::geteuid()) continue;
    if (UniqueFd lock = try_lock(path + "/lock")) fs::remove_all(path, ignored);
  }
}

ProcessOptions mpirun_options(const Layout& layout, const std::string& folder, int num_ranks) {
  ProcessOptions options;
  options.argv = {"mpirun", "-np", std::to_string(num_ranks)};
  auto add = [&](std::initializer_list<const char*> words) {
    options.argv.insert(options.argv.end(), words.begin(), words.end());
  };
  if (::geteuid() == 0) add({"--allow-run-as-root"});
  // Ranks of two or fewer would each be bound to one core, and their hosts with them.
  add({"--bind-to", "none", "--oversubscribe"});
  // Messages stay on this machine; what is not loaded needs no time.
  add({"--mca", "pml", "ob1", "--mca", "btl", "vader,self"});
  add({"--mca", "coll", "basic,self,libnbc", "--mca", "plm", "isolated"});
  // What Open MPI leaves behind when it is killed lies in a folder that we remove.
  add({"--mca", "orte_tmpdir_base", folder.c_str()});
  add({"--mca", "btl_vader_backing_directory", folder.c_str()});
  add({layout.rank_program.c_str(), folder.c_str()});
  options.env = environment_subset({"PATH", "HOME", "LD_LIBRARY_PATH", "COMMBENCH_CACHE_DIR"});
  options.env.push_back("TMPDIR=" + folder);
  return options;
}

}  // namespace

PrivateFolder::PrivateFolder()
    : folder_([] {
        remove_abandoned();
        return kFolderPrefix;
      }()) {
  lock_ = try_lock(folder_.path() + "/lock");
}

BoxSlots::BoxSlots() {
  using namespace std::chrono;
  constexpr seconds kLongest{60};
  auto end = steady_clock::now() + kLongest;
  while (steady_clock::now() < end) {
    for (unsigned lane = 0; lane < kBoxLanes; ++lane) {
      std::string path =
          fmt::format("{}/commbench-boxes-{}-{}", temporary_folder(), ::geteuid(), lane);
      lock_ = try_lock(path);
      first_ = lane * kSlotsPerLane;
      if (lock_) return;
    }
    std::this_thread::sleep_for(milliseconds(100));
  }
  throw Error(ErrorCode::kSystem,
              fmt::format("{} evaluations run on this machine already, as many as can be kept "
                          "apart; wait for one to end",
                          kBoxLanes));
}

RankPool::RankPool(const Layout& layout, std::string profile, int num_ranks)
    : layout_(layout), profile_(std::move(profile)), num_ranks_(num_ranks) {
  start();
}

RankPool::~RankPool() {
  connection_.reset();
  // Ranks that hear nothing more leave MPI and end.
  if (mpirun_ && !mpirun_->wait(kGoodbyeMs)) mpirun_->kill(SIGKILL);
}

void RankPool::start() {
  connection_.reset();
  mpirun_.reset();
  listener_.reset();
  folder_.emplace();
  listener_ = seqpacket_listen(folder_->path() + "/control");
  mpirun_ = Process::spawn(mpirun_options(layout_, folder_->path(), num_ranks_));
}

void RankPool::connect() {
  if (connection_) return;
  if (!mpirun_ || mpirun_->wait(0)) start();
  pollfd waits[] = {{listener_.get(), POLLIN, 0}, {mpirun_->pidfd(), POLLIN, 0}};
  int ready = ::poll(waits, 2, kStartMs);
  if (ready <= 0 || (waits[0].revents & POLLIN) == 0) {
    throw Error(ErrorCode::kRemote, "mpirun did not start the ranks: " + last_words());
  }
  connection_ = seqpacket_accept(listener_.get());
}

std::string RankPool::last_words() {
  if (!mpirun_) return "";
  constexpr int kGraceMs = 1'000;
  std::optional<ExitStatus> status = mpirun_->wait(kGraceMs);
  mpirun_->drain();
  std::string text = printable(mpirun_->standard_error() + mpirun_->standard_output(), 2000);
  return status ? fmt::format("{} ({})", text, status->describe()) : text;
}

std::vector<RankReport> RankPool::run(Job job, const std::string& library,
                                      const std::function<void(const std::string&)>& progress) {
  job.profile = profile_;
  job.first_box_slot = slots_.first();
  job.host_program = layout_.host_program;
  job.simulator_program = layout_.simulator_program;
  job.library_folder = layout_.library_folder;
  try {
    connect();
    return converse(job, library, progress);
  } catch (const Error&) {
    connection_.reset();
    mpirun_.reset();
    throw;
  }
}

std::vector<RankReport> RankPool::converse(
    const Job& job, const std::string& library,
    const std::function<void(const std::string&)>& progress) {
  bool sent = send_text(connection_.get(), dump_json(to_json(job))) &&
              send_text(connection_.get(), library);
  int patience_ms = static_cast<int>(job.wall_limit_ms) + kPatienceMs;
  while (sent) {
    std::optional<std::string> text = receive_text(connection_.get(), patience_ms);
    mpirun_->drain();
    if (!text) break;
    Json said = value_or_throw(parse_json(*text, "answer of the ranks"));
    if (said.contains("case")) {
      progress(said.at("case").get<std::string>());
      continue;
    }
    std::vector<RankReport> reports;
    for (const Json& report : said.at("reports")) reports.push_back(rank_report_from(report));
    return reports;
  }
  throw Error(ErrorCode::kRemote, "the ranks ended during a job: " + last_words());
}

}  // namespace cb::harness
