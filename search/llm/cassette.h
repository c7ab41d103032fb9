#pragma once

#include <memory>
#include <string>

#include "search/llm/client.h"

namespace cb::llm {

/// A folder with `replies.jsonl`: requests and what was answered, one a line. A request is found by
/// the SHA-256 of its canonical JSON (`to_json`), the sample's number included, so that it does not
/// matter in which order requests come. Nothing about keys, hosts or times is in it.
class Cassette {
 public:
  /// Opens or creates. Throws Error(kConfig) with the line for one that is not valid.
  explicit Cassette(std::string folder);
  ~Cassette();

  std::optional<Reply> find(const Request& request) const;
  /// Appends and syncs. A request that is there already is an Error(kUsage).
  void record(const Request& request, const Reply& reply);
  size_t size() const;
  /// Where the request differs from the recorded one that is most like it, for people.
  std::string difference(const Request& request) const;
  /// The reply that was recorded for what `label` names, whatever the request was then.
  std::optional<Reply> find_label(const std::string& label) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

enum class CassetteMode {
  kRecord,  ///< answers from the tape, else asks and records
  kReplay,  ///< answers from the tape, by request or else by label: prompts and findings may differ
  kStrict,  ///< by request only; a miss is Failure kCassetteMiss that shows the difference
};

/// Answers from `old`, by request or else by label, and records what it answered in `made`: for
/// when prompts were edited and the replies are still what is wanted.
std::unique_ptr<Client> rekeying_client(std::shared_ptr<Cassette> old,
                                        std::shared_ptr<Cassette> made);

/// `inner` is needed for kRecord only.
std::unique_ptr<Client> cassette_client(std::shared_ptr<Cassette> cassette, CassetteMode mode,
                                        std::shared_ptr<Client> inner);

}  // namespace cb::llm
