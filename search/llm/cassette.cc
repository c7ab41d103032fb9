#include "search/llm/cassette.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "base/hash.h"
#include "base/text.h"

namespace cb::llm {
namespace {

namespace fs = std::filesystem;

struct Entry {
  std::string label;
  Json request;
  Reply reply;
};

std::string key_of(const Json& request) { return sha256_hex(dump_json(request)); }

std::string line_of(const Entry& entry) {
  return dump_json(Json{{"label", entry.label},
                        {"key", key_of(entry.request)},
                        {"request", entry.request},
                        {"reply", to_json(entry.reply)}});
}

/// The whole prompt of a stored request.
std::string text_of(const Json& request) {
  std::string text = request.value("system", "") + "\n";
  for (const Json& message : request.value("messages", Json::array())) {
    text += message.value("role", "") + ": " + message.value("text", "") + "\n";
  }
  return text;
}

/// Bytes at the start that two texts share.
size_t common_prefix(const std::string& a, const std::string& b) {
  size_t limit = std::min(a.size(), b.size());
  return static_cast<size_t>(
      std::mismatch(a.begin(), a.begin() + static_cast<ptrdiff_t>(limit), b.begin()).first -
      a.begin());
}

std::string line_around(const std::string& text, size_t at) {
  size_t begin = text.rfind('\n', at == 0 ? 0 : at - 1);
  begin = begin == std::string::npos ? 0 : begin + 1;
  return printable(text.substr(begin, text.find('\n', begin) - begin), 200);
}

}  // namespace

struct Cassette::State {
  std::string path;
  mutable std::mutex mutex;
  std::map<std::string, Entry> entries;
  std::unique_ptr<DurableLog> log;

  void load() {
    size_t number = 0;
    for (const std::string& line : value_or_throw(read_lines(path))) {
      ++number;
      const std::string where = fmt::format("{}:{}", path, number);
      Json json = value_or_throw(parse_json(line, where));
      if (!json.is_object() || !json.contains("request") || !json.contains("reply")) {
        throw Error(ErrorCode::kConfig, where + ": a line has \"request\" and \"reply\"");
      }
      try {
        add({json.value("label", ""), json["request"], reply_from_json(json["reply"])});
      } catch (const Error& error) {
        throw Error(ErrorCode::kConfig, fmt::format("{}: {}", where, error.what()));
      }
    }
  }

  void add(Entry entry) {
    std::string key = key_of(entry.request);
    if (!entries.emplace(key, std::move(entry)).second) {
      throw Error(ErrorCode::kUsage, fmt::format("{} has the request {} already", path, key));
    }
  }
};

Cassette::Cassette(std::string folder) : state_(std::make_unique<State>()) {
  state_->path = folder + "/replies.jsonl";
  state_->load();
}

Cassette::~Cassette() = default;

std::optional<Reply> Cassette::find(const Request& request) const {
  std::lock_guard lock(state_->mutex);
  auto found = state_->entries.find(key_of(to_json(request)));
  if (found == state_->entries.end()) return std::nullopt;
  return found->second.reply;
}

void Cassette::record(const Request& request, const Reply& reply) {
  std::lock_guard lock(state_->mutex);
  Entry entry{request.label, to_json(request), reply};
  std::string line = line_of(entry);
  state_->add(std::move(entry));
  if (!state_->log) {
    fs::create_directories(fs::path(state_->path).parent_path());
    state_->log = std::make_unique<DurableLog>(state_->path);
  }
  state_->log->append(line);
}

size_t Cassette::size() const {
  std::lock_guard lock(state_->mutex);
  return state_->entries.size();
}

std::string Cassette::difference(const Request& request) const {
  std::lock_guard lock(state_->mutex);
  const Json json = to_json(request);
  const std::string wanted = text_of(json);
  const Entry* closest = nullptr;
  size_t best = 0;
  for (const auto& [key, entry] : state_->entries) {
    size_t shared = common_prefix(wanted, text_of(entry.request));
    if (closest == nullptr || shared > best) {
      closest = &entry;
      best = shared;
    }
  }
  if (closest == nullptr) return "the cassette is empty";
  const std::string recorded = text_of(closest->request);
  if (recorded == wanted) {
    for (const char* field : {"sample", "max_output_tokens", "temperature"}) {
      if (json[field] != closest->request.value(field, Json())) {
        return fmt::format("{}: {} here, {} recorded", field, dump_json(json[field]),
                           dump_json(closest->request.value(field, Json())));
      }
    }
  }
  auto lines = std::count(wanted.begin(), wanted.begin() + static_cast<ptrdiff_t>(best), '\n') + 1;
  return fmt::format("line {} of the prompt: \"{}\" here, \"{}\" recorded", lines,
                     line_around(wanted, best), line_around(recorded, best));
}

std::optional<Reply> Cassette::find_label(const std::string& label) const {
  std::lock_guard lock(state_->mutex);
  for (const auto& [key, entry] : state_->entries) {
    if (!label.empty() && entry.label == label) return entry.reply;
  }
  return std::nullopt;
}

namespace {

class CassetteClient : public Client {
 public:
  CassetteClient(std::shared_ptr<Cassette> cassette, CassetteMode mode,
                 std::shared_ptr<Client> inner)
      : cassette_(std::move(cassette)), mode_(mode), inner_(std::move(inner)) {}

  Completion complete(const Request& request) override {
    if (auto found = cassette_->find(request)) return *found;
    if (mode_ == CassetteMode::kReplay) {
      if (auto found = cassette_->find_label(request.label)) return *found;
    }
    if (mode_ != CassetteMode::kRecord) {
      return tl::unexpected(
          Failure{FailureKind::kCassetteMiss,
                  "this request was not recorded; " + cassette_->difference(request)});
    }
    Completion done = inner_->complete(request);
    if (done) cassette_->record(request, *done);
    return done;
  }

 private:
  std::shared_ptr<Cassette> cassette_;
  CassetteMode mode_;
  std::shared_ptr<Client> inner_;
};

class RekeyingClient : public Client {
 public:
  RekeyingClient(std::shared_ptr<Cassette> old, std::shared_ptr<Cassette> made)
      : old_(std::move(old)), made_(std::move(made)) {}

  Completion complete(const Request& request) override {
    auto reply = old_->find(request);
    if (!reply) reply = old_->find_label(request.label);
    if (!reply) {
      return tl::unexpected(Failure{FailureKind::kCassetteMiss,
                                    fmt::format("nothing was recorded for {}", request.label)});
    }
    made_->record(request, *reply);
    return *reply;
  }

 private:
  std::shared_ptr<Cassette> old_;
  std::shared_ptr<Cassette> made_;
};

}  // namespace

std::unique_ptr<Client> rekeying_client(std::shared_ptr<Cassette> old,
                                        std::shared_ptr<Cassette> made) {
  return std::make_unique<RekeyingClient>(std::move(old), std::move(made));
}

std::unique_ptr<Client> cassette_client(std::shared_ptr<Cassette> cassette, CassetteMode mode,
                                        std::shared_ptr<Client> inner) {
  return std::make_unique<CassetteClient>(std::move(cassette), mode, std::move(inner));
}

}  // namespace cb::llm
