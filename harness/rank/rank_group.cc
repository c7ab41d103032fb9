#include "harness/rank/rank_group.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <thread>

#include "base/check.h"

namespace cb::harness {
namespace {

using std::chrono::microseconds;

constexpr microseconds kFirstPause{20};
// An idle pool costs nothing to speak of, and a job waits at most this long to be noticed.
constexpr microseconds kLongestPause{2000};

void check(int code) { CB_CHECK(code == MPI_SUCCESS, "an MPI call failed"); }

}  // namespace

RankGroup::RankGroup(MPI_Comm communicator) : communicator_(communicator) {
  if (communicator == MPI_COMM_NULL) return;
  check(MPI_Comm_rank(communicator, &rank_));
  check(MPI_Comm_size(communicator, &size_));
}

void RankGroup::wait(MPI_Request& request) const {
  microseconds pause = kFirstPause;
  for (;;) {
    int done = 0;
    check(MPI_Test(&request, &done, MPI_STATUS_IGNORE));
    if (done != 0) return;
    std::this_thread::sleep_for(pause);
    pause = std::min(pause * 5 / 4 + microseconds(1), kLongestPause);
  }
}

std::string RankGroup::broadcast(std::string text) const {
  MPI_Request request = MPI_REQUEST_NULL;
  auto bytes = static_cast<int>(text.size());
  check(MPI_Ibcast(&bytes, 1, MPI_INT, 0, communicator_, &request));
  wait(request);
  text.resize(static_cast<size_t>(bytes));
  check(MPI_Ibcast(text.data(), bytes, MPI_BYTE, 0, communicator_, &request));
  wait(request);
  return text;
}

std::vector<std::string> RankGroup::gather(const std::string& text) const {
  MPI_Request request = MPI_REQUEST_NULL;
  auto bytes = static_cast<int>(text.size());
  std::vector<int> sizes(static_cast<size_t>(size_));
  check(MPI_Igather(&bytes, 1, MPI_INT, sizes.data(), 1, MPI_INT, 0, communicator_, &request));
  wait(request);
  std::vector<int> offsets(sizes.size());
  int total = 0;
  for (size_t i = 0; i < sizes.size(); ++i) {
    offsets[i] = total;
    total += sizes[i];
  }
  std::string all(static_cast<size_t>(total), '\0');
  check(MPI_Igatherv(text.data(), bytes, MPI_BYTE, all.data(), sizes.data(), offsets.data(),
                     MPI_BYTE, 0, communicator_, &request));
  wait(request);
  std::vector<std::string> texts;
  if (rank_ != 0) return texts;
  for (size_t i = 0; i < sizes.size(); ++i) {
    texts.push_back(all.substr(static_cast<size_t>(offsets[i]), static_cast<size_t>(sizes[i])));
  }
  return texts;
}

unsigned RankGroup::any(unsigned bits) const {
  MPI_Request request = MPI_REQUEST_NULL;
  unsigned result = 0;
  check(MPI_Iallreduce(&bits, &result, 1, MPI_UNSIGNED, MPI_BOR, communicator_, &request));
  wait(request);
  return result;
}

const RankGroup& RankGroup::first(int count) {
  CB_CHECK(count >= 1 && count <= size_, "no such group of ranks");
  if (count == size_) return *this;
  auto found = parts_.find(count);
  if (found == parts_.end()) {
    MPI_Comm part = MPI_COMM_NULL;
    check(MPI_Comm_split(communicator_, rank_ < count ? 0 : MPI_UNDEFINED, rank_, &part));
    found = parts_.emplace(count, RankGroup(part)).first;
  }
  return found->second;
}

}  // namespace cb::harness
