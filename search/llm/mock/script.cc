#include "search/llm/mock/script.h"

#include <algorithm>
#include <filesystem>

#include "base/file.h"
#include "base/yaml.h"
#include "search/llm/patient_client.h"

namespace cb::llm {
namespace {

const std::vector<std::string> kFaults = {"none",       "rate_limit",   "quota",     "server_error",
                                          "overloaded", "unauthorized", "truncated", "malformed",
                                          "huge",       "refusal",      "silent"};

/// Prompts that are remembered for the cache.
constexpr size_t kMaxPrompts = 256;

ScriptedReply read_reply(const Yaml& yaml, const std::string& folder) {
  ScriptedReply reply;
  if (auto text = yaml.find("text")) reply.text = text->text();
  if (auto file = yaml.find("file")) {
    if (!reply.text.empty()) throw file->error("either text or file");
    auto content = read_file(folder + "/" + file->text());
    if (!content) throw file->error(content.error().message());
    reply.text = *std::move(content);
  }
  if (auto finish = yaml.find("finish")) {
    finish->one_of({"stop", "length"});
    reply.finish = finish->text();
  }
  if (auto match = yaml.find("match")) reply.match = match->text();
  if (auto times = yaml.find("times")) reply.times = static_cast<uint64_t>(times->integer(1));
  if (auto fault = yaml.find("fault")) reply.fault = static_cast<Fault>(fault->one_of(kFaults));
  if (auto after = yaml.find("retry_after_s")) reply.retry_after_s = after->number();
  if (auto chunk = yaml.find("chunk_bytes")) {
    reply.chunk_bytes = static_cast<uint64_t>(chunk->integer(1));
  }
  if (auto delay = yaml.find("delay_ms")) {
    reply.delay_ms = static_cast<uint64_t>(delay->integer(0, 3'600'000));
  }
  if (auto bytes = yaml.find("bytes")) reply.bytes = static_cast<uint64_t>(bytes->integer(1));
  return reply;
}

}  // namespace

Script Script::load_text(const std::string& text, const std::string& name) {
  Yaml yaml = Yaml::load_text(text, name);
  Script script;
  if (auto key = yaml.find("key")) script.key_ = key->text();
  const std::string folder = std::filesystem::absolute(name).parent_path().string();
  for (const Yaml& reply : yaml.at("replies").items()) {
    script.replies_.push_back(read_reply(reply, folder));
  }
  yaml.finish();
  return script;
}

Script Script::load_file(const std::string& path) {
  return load_text(value_or_throw(read_file(path)), path);
}

ScriptPlayer::ScriptPlayer(Script script)
    : script_(std::move(script)), used_(script_.replies().size()) {}

std::optional<ScriptedReply> ScriptPlayer::next(const std::string& prompt) {
  std::lock_guard lock(mutex_);
  const auto& replies = script_.replies();
  for (size_t i = 0; i < replies.size(); ++i) {
    const ScriptedReply& reply = replies[i];
    if (reply.times && used_[i] >= *reply.times) continue;
    if (prompt.find(reply.match) == std::string::npos) continue;
    ++used_[i];
    ++served_;
    return reply;
  }
  return std::nullopt;
}

uint64_t ScriptPlayer::cached_tokens(const std::string& prompt) {
  std::lock_guard lock(mutex_);
  size_t longest = 0;
  for (const std::string& earlier : prompts_) {
    size_t limit = std::min(earlier.size(), prompt.size());
    auto end = std::mismatch(prompt.begin(), prompt.begin() + static_cast<ptrdiff_t>(limit),
                             earlier.begin());
    longest = std::max(longest, static_cast<size_t>(end.first - prompt.begin()));
  }
  if (prompts_.size() < kMaxPrompts) prompts_.push_back(prompt);
  return estimated_tokens(longest);
}

uint64_t ScriptPlayer::served() const {
  std::lock_guard lock(mutex_);
  return served_;
}

}  // namespace cb::llm
