#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/random.h"

/// The task families: what a case gives to a candidate, what its inputs are, and what its outputs
/// must be. Trusted code; the candidate's side of the same structs is in include/commbench/.
namespace cb::tasks {

struct Case;  // card.h

/// One buffer of the pool. The grader allocates the same buffers, in the same order, on every rank
/// of a case before cb_setup.
struct BufferSpec {
  std::string label;  ///< for findings: "input 0", "output 1"
  uint64_t bytes = 0;
  bool peer_access = true;  ///< peers get its address and may touch it
  bool multicast = false;   ///< give a multicast address where the platform has one
  /// Large address range of which a case touches little: never filled or read as a whole.
  bool sparse = false;
};

/// A C struct for the candidate, built without knowing any address: `patches` say where addresses
/// belong. The struct starts at byte 0; arrays it points to follow it.
struct Blob {
  enum class Target : uint8_t {
    kBlob,       ///< address of this blob + offset
    kBuffer,     ///< address, in the receiving rank's view, of `rank`'s copy of a buffer + offset
    kMulticast,  ///< the buffer's multicast address + offset, or NULL where there is none
  };
  struct Patch {
    uint32_t at = 0;  ///< byte in `bytes` where the 8-byte address goes
    Target target = Target::kBlob;
    uint32_t buffer = 0;
    int32_t rank = 0;
    uint64_t offset = 0;
  };
  std::vector<std::byte> bytes;
  std::vector<Patch> patches;
};

/// A byte range of one of this rank's own buffers.
struct Region {
  uint32_t buffer = 0;
  uint64_t offset = 0;
  uint64_t bytes = 0;
};

/// Bytes that are a function of their position, so that they can be produced piece by piece.
class Content {
 public:
  virtual ~Content() = default;
  /// Writes bytes [offset, offset + out.size()) of the content. `offset` and the size are
  /// multiples of the element size.
  virtual void produce(uint64_t offset, std::span<std::byte> out) const = 0;
};

struct Input {
  Region region;
  std::shared_ptr<const Content> content;
};

/// One wrong element, for the finding.
struct Mismatch {
  uint64_t element = 0;  ///< index within the output as the task's statement counts
  std::string expected;
  std::string actual;
  std::string note;  ///< what the value looks like: "own input", "poison", "rank 2's data"
};

struct Comparison {
  uint64_t elements = 0;
  uint64_t wrong = 0;
  std::vector<Mismatch> first;  ///< at most 8, lowest element first

  void merge(const Comparison& other);
};

/// What one output region must hold. The oracle: it runs in the trusted rank, after the snapshot.
class OutputCheck {
 public:
  OutputCheck(std::string label, Region region) : label_(std::move(label)), region_(region) {}
  virtual ~OutputCheck() = default;

  /// What findings call it: "output", "output of call 2", "target".
  const std::string& label() const { return label_; }
  const Region& region() const { return region_; }
  /// Compares bytes [offset, offset + actual.size()) of the region.
  virtual Comparison compare(uint64_t offset, std::span<const std::byte> actual) const = 0;

 private:
  std::string label_;
  Region region_;
};

/// When the content of a rank's buffers is promised to exist.
enum class Lifetime : uint8_t {
  /// All inputs are there when the step starts, and stay until every rank is done.
  kStep,
  /// As in an application whose streams are not synchronised with each other: a rank's inputs
  /// appear, and its outputs are poisoned, when that rank starts (a delayed rank starts late); its
  /// outputs are read, and then its inputs overwritten with poison, as soon as that rank is done.
  kRank,
};

/// Everything that one rank needs for one step.
struct StepPlan {
  /// cb_step of each cb_run of this step, in order; at least one. More than one: issued back to
  /// back on the same stream, without waiting for the work of the earlier ones.
  std::vector<Blob> calls;
  std::vector<Input> inputs;
  std::vector<std::unique_ptr<OutputCheck>> outputs;
  Lifetime lifetime = Lifetime::kStep;
  /// Inputs that must be unchanged after the step; compared with what was written. Every byte of
  /// the pool that is neither input nor output is a guard zone: poisoned and compared as well.
  bool inputs_constant = true;
};

/// Where every hidden choice of a step comes from.
struct StepKey {
  const RunKey* key = nullptr;
  std::string task_hash;
  std::string case_id;
  int step = 0;  ///< from 0; kWholeCase for what all steps share

  static constexpr int kWholeCase = -1;

  /// Seed for `purpose` ("input rank 3", "count"), the same on every rank that asks for it.
  uint64_t seed(std::string_view purpose) const;
};

/// A key of a case that its family gives a meaning to: `count: [1, 64]`, `dtype: bf16`. It may
/// also stand under `parameters` of the card, which then holds for every case.
struct Parameter {
  enum class Kind : uint8_t {
    kNumbers,  ///< a number, a list or a range of them (Choice in card.h)
    kWord,     ///< one of `words`
    kFlag,     ///< true or false
  };
  std::string name;
  Kind kind = Kind::kNumbers;
  std::vector<std::string> words;
  /// Its value where neither the case nor the card gives one; without it the key is required.
  std::optional<std::string> fallback;
};

/// What traffic a step stands for, for algbw and busbw as nccl-tests defines them
/// (doc/PERFORMANCE.md): algbw = bytes / time, busbw = algbw * bus_factor.
struct Traffic {
  uint64_t bytes = 0;  ///< nccl-tests' "size" of the operation
  double bus_factor = 1;
  uint64_t count = 0;  ///< elements, for the table
};

/// One family: five in all. Stateless; the parameters of card and case select the variant.
class Family {
 public:
  virtual ~Family() = default;
  virtual std::string_view name() const = 0;

  /// The keys that the card loader accepts for this family.
  virtual std::vector<Parameter> parameters() const = 0;
  /// Checks what `parameters` cannot say. Throws Error(kConfig); the loader adds file and line.
  virtual void validate(const Case& test_case) const = 0;
  virtual std::vector<BufferSpec> buffers(const Case& test_case) const = 0;
  virtual Blob args(const Case& test_case, int rank) const = 0;
  virtual StepPlan plan(const Case& test_case, const StepKey& key, int rank) const = 0;
  virtual Traffic traffic(const Case& test_case, const StepKey& key) const = 0;
  /// The modes of the family's deliberately wrong candidate (tasks/wrong/<name>.cu) that must
  /// fail on `test_case`: "zeros", "own-input", "own-shard", "stale", "skip-rank", "skip-tail",
  /// "nothing". Empty where wrong answers may be right, and for large cases. The candidate takes
  /// its mode from COMMBENCH_WRONG_MODE in cb_setup; "correct" must pass.
  virtual std::vector<std::string> wrong_modes(const Case& test_case) const = 0;
};

/// The family of that name, or nullptr.
const Family* find_family(std::string_view name);

}  // namespace cb::tasks
