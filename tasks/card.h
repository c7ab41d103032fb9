#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "tasks/family.h"

/// The one loader of task cards. A task is a folder `<id>/` with
///
///   task.yaml          what the task is: the fields of Card, and `parameters` of the family
///   prompt.md          the statement, shown to models and people
///   starter.cu         a candidate that compiles and solves nothing
///   hidden/cases.yaml  the input shapes on which candidates are graded
namespace cb::tasks {

/// Whole numbers of which every call of a step gets one: `64`, `[1, 7, 64]` or
/// `{min: 1, max: 64}`.
class Choice {
 public:
  static Choice one_of(std::vector<uint64_t> values);
  static Choice range(uint64_t min, uint64_t max);

  /// The value of draw `index`. Lists are dealt like cards: every value comes once, in secret
  /// order, before any comes again. Ranges are drawn uniformly.
  uint64_t draw(const StepKey& key, std::string_view purpose, uint64_t index) const;

  uint64_t min() const;
  uint64_t max() const;
  /// The values of a list; empty for a range.
  const std::vector<uint64_t>& values() const { return values_; }

 private:
  std::vector<uint64_t> values_;
  uint64_t min_ = 0;
  uint64_t max_ = 0;
};

enum class BufferKind : uint8_t {
  kLocal,      ///< only their own rank can reach them
  kSymmetric,  ///< peers get their addresses
  kMulticast,  ///< symmetric, and with a multicast address where the platform has one
};

/// One input shape of a task.
struct Case {
  std::string id;
  int world_size = 2;
  int min_steps = 2;
  int max_steps = 2;
  /// cb_run calls per step, issued back to back; each has buffers of its own.
  int calls = 1;
  /// Buffers in the pool for each role (input, output, ...): at least 2 and at least `calls`.
  int pool = 2;
  /// In every step one secretly chosen rank starts this much later than the others.
  uint32_t skew_us = 0;
  bool measured = false;  ///< enters speed-ups
  BufferKind buffers = BufferKind::kSymmetric;

  /// The family's parameters; every one that the family declares is present.
  std::map<std::string, Choice, std::less<>> numbers;
  std::map<std::string, std::string, std::less<>> words;
  std::map<std::string, bool, std::less<>> flags;

  const Choice& number(std::string_view name) const;
  const std::string& word(std::string_view name) const;
  bool flag(std::string_view name) const;
};

enum class Category : uint8_t { kP2p, kCollective, kEp, kFusion, kUtility };
enum class Level : uint8_t { kEasy, kMedium, kHard };
const char* to_string(Category category);
const char* to_string(Level level);

struct Card {
  std::string folder;
  std::string id;
  std::string title;
  const Family* family = nullptr;
  Category category = Category::kP2p;
  Level level = Level::kEasy;
  std::vector<std::string> tags;
  std::vector<std::string> api;  ///< what a solution is expected to use, for filters
  std::vector<std::string>
      links;  ///< libraries beyond the CUDA runtime: cuda, nccl, ibverbs, nvrtc
  std::vector<std::string> needs;  ///< of a platform: peer, ipc, vmm, multicast, nccl, rdma
  bool multi_node = false;
  BufferKind buffers = BufferKind::kSymmetric;
  bool scratch = true;  ///< cb_sym_alloc is offered
  std::vector<std::string> forbidden_includes;
  std::vector<std::string> forbidden_symbols;
  /// Bytes that a rank may copy between host and device in one step, parameters excluded.
  uint64_t host_bytes_max = 0;
  uint32_t wall_limit_s = 0;      ///< for all cases together, per rank process
  uint32_t virtual_limit_ms = 0;  ///< for one step, on simulated hardware
  std::string canary;             ///< marks the folder's content in training data
  std::vector<Case> cases;
  /// SHA-256 over the names and contents of all files of the folder.
  std::string hash;
};

/// Loads and checks a task folder. Everything wrong with the files is the returned Error(kConfig),
/// whose message starts with file and line.
Result<Card> load_card(const std::string& folder);

struct FoundTask {
  std::string id;  ///< name of the folder
  std::string folder;
  Result<Card> card;  ///< a bad card disables its own task only
};

/// The task folders (those with a task.yaml) directly below each of `task_dirs`, sorted by id. Of
/// two folders with one id the second is an error. Throws Error(kUsage) for a folder that cannot
/// be read.
std::vector<FoundTask> find_tasks(const std::vector<std::string>& task_dirs);

/// The secret number of steps of a case. `key.step` does not matter.
int step_count(const Case& test_case, StepKey key);

/// The rank that starts `skew_us` late in this step, or -1.
int delayed_rank(const Case& test_case, const StepKey& key);

/// The identity of a task folder: sorted relative names and contents of its files, each preceded
/// by its length. Throws Error(kSystem, kConfig).
std::string hash_folder(const std::string& folder);

}  // namespace cb::tasks
