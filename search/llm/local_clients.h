#pragma once

#include <memory>
#include <string>
#include <vector>

#include "search/llm/client.h"

namespace cb::llm {

/// Runs a program for every request: the prompt on stdin, its answer on stdout. The prompt is the
/// system text, then the messages, with a line "## user" or "## assistant" before each where there
/// are several. `command` is run by /bin/sh.
std::unique_ptr<Client> command_client(std::string command, Limits limits);

/// Lets a person, or another program, answer in a folder: a request becomes NAME.prompt.md, and the
/// answer is read from NAME.reply.md once that exists (write it elsewhere and rename it). NAME is
/// the start of the prompt's SHA-256, so that an interrupted run finds its answers again.
std::unique_ptr<Client> file_client(std::string folder, Limits limits,
                                    std::shared_ptr<Clock> clock);

/// A request as one text.
std::string prompt_text(const Request& request);

}  // namespace cb::llm
