#pragma once

// The process that holds the keys. Candidates run below the process that evaluates them; keys must
// not be in any process above a candidate, so that one is started first, beside it, which asks the
// model, and the evaluating process goes on without keys in its environment.

#include <memory>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/process.h"
#include "search/llm/client.h"

namespace cb::llm {

/// Answers requests from each of `connections` (stream sockets, one request at a time on each) with
/// `client` until they are closed. Messages are a line with the length in bytes, then JSON.
void serve_requests(const std::vector<int>& connections, Client& client);

/// The client side: requests go over whichever connection is free; complete() waits for one.
std::unique_ptr<Client> agent_client(std::vector<UniqueFd> connections);

/// Connected pairs for `count` requests at a time: {agent's ends, client's ends}.
std::pair<std::vector<UniqueFd>, std::vector<UniqueFd>> agent_connections(size_t count);

/// Names of the variables of our environment that hold keys: *_API_KEY, *_TOKEN, *_SECRET*.
std::vector<std::string> key_variables();

}  // namespace cb::llm
