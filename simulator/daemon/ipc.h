#pragma once

// Tokens by which processes hand memory and events to each other: unguessable to whoever does not
// know the seed, and the same in every run with it.

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "simulator/daemon/work.h"

namespace cb::sim {

class Call;

class IpcTokens {
 public:
  using Token = std::array<uint64_t, 2>;
  struct Memory {
    int rank = 0;
    uint64_t base = 0;
  };

  explicit IpcTokens(uint64_t seed) : seed_(seed) {}

  /// One token per allocation or event, however often it is asked for.
  Token of_memory(int rank, uint64_t base);
  Token of_event(const std::shared_ptr<Event>& event);
  const Memory* memory(const Token& token) const;
  std::shared_ptr<Event> event(const Token& token) const;
  void reset();

 private:
  Token make();

  uint64_t seed_;
  uint64_t counter_ = 0;
  std::map<Token, Memory> memories_;
  std::map<uint64_t, Token> by_base_;
  std::map<Token, std::shared_ptr<Event>> events_;
};

void ipc_get_memory(Call& call);
void ipc_open_memory(Call& call);
void ipc_close_memory(Call& call);
void ipc_get_event(Call& call);
void ipc_open_event(Call& call);

}  // namespace cb::sim
