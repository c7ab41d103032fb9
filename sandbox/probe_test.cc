// Runs the probe in every kind of jail and compares with probe_golden.txt: a new "allowed" must be
// a decision, not an accident. Then takes one layer away at a time and checks that the attempts
// that it is there to stop change, so that the table proves the layers and not the weather.
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <map>

#include "base/fd.h"
#include "base/file.h"
#include "base/process.h"
#include "base/text.h"
#include "sandbox/jail.h"

namespace cb {
namespace {

struct Column {
  const char* name;
  JailProfile profile;
  JailScope scope;
};
constexpr Column kColumns[] = {
    {"build", JailProfile::kBuild, JailScope::kRank},
    {"host-rank", JailProfile::kHost, JailScope::kRank},
    {"host-job", JailProfile::kHost, JailScope::kJob},
    {"daemon", JailProfile::kDaemon, JailScope::kRank},
};

/// Attempt to result: "allowed", "denied" or "ended:<system call>".
using Results = std::map<std::string, std::string>;

std::vector<std::string> attempt_names() {
  ProcessOptions options;
  options.argv = {COMMBENCH_PROBE};
  std::vector<std::string> names = split(run_process(options, 10'000).standard_output, '\n');
  names.pop_back();
  return names;
}

// What must not be visible inside, and a descriptor that must not be inherited.
class Planted {
 public:
  Planted() : canary_(::dup(2)), listener_(::socket(AF_UNIX, SOCK_STREAM, 0)) {
    for (const char* path : kFiles) std::ofstream(path) << "planted";
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::string name = "commbench-planted";
    name.copy(address.sun_path + 1, name.size());
    auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
    // Another test process may hold the name; then that one is the listener.
    if (::bind(listener_.get(), reinterpret_cast<sockaddr*>(&address), length) == 0) {
      ::listen(listener_.get(), 8);
    }
  }
  ~Planted() {
    for (const char* path : kFiles) ::unlink(path);
  }

 private:
  static constexpr const char* kFiles[] = {"/tmp/commbench-planted", "/dev/shm/commbench-planted"};
  UniqueFd canary_;
  UniqueFd listener_;
};

Results probe(const Column& column, std::vector<std::string> names, unsigned without_layers = 0) {
  Planted planted;
  Results results;
  while (!names.empty()) {
    JailSpec spec;
    spec.profile = column.profile;
    spec.scope = column.scope;
    spec.argv = {"/box/probe"};
    spec.argv.insert(spec.argv.end(), names.begin(), names.end());
    spec.read_only = {{COMMBENCH_PROBE, "/box/probe"}};
    spec.without_layers = without_layers;
    CompletedJail done = run_jailed(spec, 30'000);
    size_t answered = 0;
    for (const std::string& line : split(done.standard_output, '\n')) {
      std::vector<std::string> words = split(line, ' ');
      if (words.size() != 2) break;
      // The line that the jail was ended for has a name and nothing after the blank.
      results[words[0]] = words[1].empty() ? "ended:" + done.outcome.syscall_name : words[1];
      ++answered;
    }
    if (answered == 0 || (answered < names.size() && !done.outcome.killed_for_syscall)) {
      ADD_FAILURE() << column.name << ": the probe broke down after "
                    << (answered == 0 ? "nothing" : names[answered - 1]) << ": "
                    << done.outcome.status.describe() << " " << done.outcome.setup_message << " "
                    << to_string(done.outcome.limit);
      break;
    }
    names.erase(names.begin(), names.begin() + static_cast<std::ptrdiff_t>(answered));
  }
  return results;
}

std::string row(const std::string& name, const std::vector<std::string>& cells) {
  std::string line = name;
  line.resize(std::max<size_t>(line.size(), 30), ' ');
  for (const std::string& cell : cells) {
    line += ' ' + cell;
    line.resize(line.size() + 22 - std::min<size_t>(cell.size(), 22), ' ');
  }
  line.erase(line.find_last_not_of(' ') + 1);
  return line + '\n';
}

TEST(ProbeTest, EveryProfileMatchesTheGoldenTable) {
  std::vector<std::string> names = attempt_names();
  ASSERT_GT(names.size(), 90u);
  std::vector<std::string> titles;
  std::vector<Results> columns;
  for (const Column& column : kColumns) {
    titles.emplace_back(column.name);
    columns.push_back(probe(column, names));
  }
  std::string table = row("attempt", titles);
  for (const std::string& name : names) {
    std::vector<std::string> cells;
    cells.reserve(columns.size());
    for (Results& column : columns) cells.push_back(column[name]);
    table += row(name, cells);
  }
  std::string golden_path = std::string(COMMBENCH_SOURCE_DIR) + "/sandbox/probe_golden.txt";
  if (std::getenv("COMMBENCH_UPDATE_GOLDEN") != nullptr) write_file(golden_path, table);
  Result<std::string> golden = read_file(golden_path);
  ASSERT_TRUE(golden) << golden.error().message();
  std::vector<std::string> expected = split(*golden, '\n');
  std::vector<std::string> actual = split(table, '\n');
  ASSERT_EQ(expected.size(), actual.size());
  for (size_t line = 0; line < expected.size(); ++line) EXPECT_EQ(actual[line], expected[line]);
}

struct Mutation {
  unsigned layer;
  std::vector<const char*> attempts;
  unsigned without_already = 0;  ///< layers that stop the same attempts
};

TEST(ProbeTest, TakingALayerAwayIsNoticed) {
  const Column& host = kColumns[1];
  const Mutation mutations[] = {
      {kSyscallFilter, {"io_uring", "socket_inet", "lock_shared_file", "userfaultfd"}},
      {kLandlock, {"fifo_in_tmp", "symlink_in_tmp"}, kSyscallFilter},
      {kResourceLimits, {"raise_file_cap", "fill_memfd"}},
      {kProcHiding, {"see_other_processes", "read_machine_load"}},
      {kInodeCaps, {"make_many_files", "code_from_tmp"}},
      {kNetworkNamespace, {"connect_to_planted_abstract"}, kSyscallFilter | kLandlock},
  };
  for (const Mutation& mutation : mutations) {
    std::vector<std::string> names(mutation.attempts.begin(), mutation.attempts.end());
    Results with = probe(host, names, mutation.without_already);
    Results without = probe(host, names, mutation.without_already | mutation.layer);
    for (const std::string& name : names) {
      EXPECT_NE(with[name], without[name]) << name << " without layer " << mutation.layer;
      EXPECT_EQ(without[name], "allowed") << name << " without layer " << mutation.layer;
    }
  }
}

}  // namespace
}  // namespace cb
