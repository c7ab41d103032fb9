#include "tasks/card.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <numeric>
#include <set>

#include "base/check.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/random.h"
#include "base/text.h"
#include "base/yaml.h"

// Cards are read strictly: every value is checked at its line, and a key that nobody asked for is
// an error. What a family-specific key means, its kind and its default come from
// Family::parameters, so that a family needs no code here.

namespace cb::tasks {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kMaxWorldSize = 64;
constexpr int64_t kMaxSteps = 1000;
constexpr int64_t kMaxCalls = 8;
constexpr int64_t kMaxPool = 16;
constexpr int64_t kMaxNumber = int64_t{1} << 40;
constexpr int64_t kDefaultHostBytes = 64 << 10;
constexpr size_t kMinCanaryBytes = 24;

const std::vector<std::string> kCategories = {"p2p", "collective", "ep", "fusion", "utility"};
const std::vector<std::string> kLevels = {"easy", "medium", "hard"};
const std::vector<std::string> kBufferKinds = {"local", "symmetric", "multicast"};
const std::vector<std::string> kLinks = {"cuda", "nccl", "ibverbs", "nvrtc"};
const std::vector<std::string> kNeeds = {"peer", "ipc", "vmm", "multicast", "nccl", "rdma"};

bool is_identifier(std::string_view text) {
  return !text.empty() && text.size() <= 64 &&
         text.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-") == text.npos;
}

std::string identifier(const Yaml& node) {
  std::string text = node.text();
  if (!is_identifier(text)) {
    throw node.error(fmt::format("\"{}\" is not an id: 1 to 64 of a-z, 0-9 and -", text));
  }
  return text;
}

Choice parse_choice(const Yaml& node) {
  if (node.is_mapping()) {
    auto min = static_cast<uint64_t>(node.at("min").integer(0, kMaxNumber));
    auto max = static_cast<uint64_t>(node.at("max").integer(0, kMaxNumber));
    if (min > max) throw node.error(fmt::format("min {} is above max {}", min, max));
    return Choice::range(min, max);
  }
  if (!node.is_list()) {
    return Choice::one_of({static_cast<uint64_t>(node.integer(0, kMaxNumber))});
  }
  std::vector<uint64_t> values;
  for (int64_t value : node.integers(0, kMaxNumber)) values.push_back(static_cast<uint64_t>(value));
  if (values.empty()) throw node.error("the list is empty");
  return Choice::one_of(std::move(values));
}

/// The node of a parameter: from the case, else from the card's parameters, else nothing.
std::optional<Yaml> find_parameter(const std::string& name, const Yaml& node,
                                   const std::optional<Yaml>& shared) {
  std::optional<Yaml> own = node.find(name);
  std::optional<Yaml> common = shared ? shared->find(name) : std::nullopt;
  return own ? own : common;
}

void parse_parameter(const Parameter& parameter, const Yaml& node,
                     const std::optional<Yaml>& shared, Case& test_case) {
  std::optional<Yaml> value = find_parameter(parameter.name, node, shared);
  if (!value && parameter.fallback) {
    value = Yaml::load_text(*parameter.fallback, parameter.name);
  }
  if (!value) throw node.error(fmt::format("missing key \"{}\"", parameter.name));
  switch (parameter.kind) {
    case Parameter::Kind::kNumbers:
      test_case.numbers.emplace(parameter.name, parse_choice(*value));
      break;
    case Parameter::Kind::kWord:
      test_case.words.emplace(parameter.name, parameter.words[value->one_of(parameter.words)]);
      break;
    case Parameter::Kind::kFlag:
      test_case.flags.emplace(parameter.name, value->boolean());
      break;
  }
}

/// A list of sizes is a promise that each is tested.
void check_lists_are_dealt(const Yaml& node, const Case& test_case) {
  auto calls = static_cast<size_t>(test_case.min_steps) * static_cast<size_t>(test_case.calls);
  for (const auto& [name, choice] : test_case.numbers) {
    if (choice.values().size() > calls) {
      throw node.error(
          fmt::format("{}: {} values, but at least {} calls (steps.min * calls): some "
                      "would never be tested",
                      name, choice.values().size(), calls));
    }
  }
}

Case parse_case(const Yaml& node, const Card& card, const std::optional<Yaml>& shared) {
  Case test_case;
  test_case.id = identifier(node.at("id"));
  test_case.buffers = card.buffers;
  test_case.world_size = static_cast<int>(node.at("world_size").integer(2, kMaxWorldSize));
  Yaml steps = node.at("steps");
  test_case.min_steps = static_cast<int>(steps.at("min").integer(1, kMaxSteps));
  test_case.max_steps = static_cast<int>(steps.at("max").integer(test_case.min_steps, kMaxSteps));
  if (auto calls = node.find("calls")) {
    test_case.calls = static_cast<int>(calls->integer(1, kMaxCalls));
  }
  test_case.pool = std::max(2, test_case.calls);
  if (auto pool = node.find("pool")) {
    test_case.pool = static_cast<int>(pool->integer(test_case.pool, kMaxPool));
  }
  if (auto skew = node.find("skew_us")) {
    test_case.skew_us = static_cast<uint32_t>(skew->integer(0, 1'000'000));
  }
  if (auto measured = node.find("measured")) test_case.measured = measured->boolean();
  for (const Parameter& parameter : card.family->parameters()) {
    parse_parameter(parameter, node, shared, test_case);
  }
  check_lists_are_dealt(node, test_case);
  try {
    card.family->validate(test_case);
  } catch (const Error& e) {
    throw node.error(e.message());
  }
  return test_case;
}

void parse_cases(const std::string& path, const std::optional<Yaml>& shared, Card& card) {
  Yaml root = Yaml::load_file(path);
  std::set<std::string> ids;
  bool measured = false;
  for (const Yaml& node : root.at("cases").items()) {
    Case test_case = parse_case(node, card, shared);
    if (!ids.insert(test_case.id).second) {
      throw node.error(fmt::format("id \"{}\" is taken by a case above", test_case.id));
    }
    measured = measured || test_case.measured;
    card.cases.push_back(std::move(test_case));
  }
  root.finish();
  if (!measured) throw root.error("no case has `measured: true`: there would be no speed-up");
}

std::vector<std::string> known_words(const Yaml& list, const std::vector<std::string>& known) {
  std::vector<std::string> words;
  for (const Yaml& item : list.items()) words.push_back(known[item.one_of(known)]);
  return words;
}

void parse_task(const Yaml& root, Card& card) {
  card.id = identifier(root.at("id"));
  std::string folder_name = fs::path(card.folder).filename().string();
  if (card.id != folder_name) {
    throw root.at("id").error(
        fmt::format("\"{}\" must be the folder's name, \"{}\"", card.id, folder_name));
  }
  card.title = root.at("title").text();
  Yaml family = root.at("family");
  card.family = find_family(family.text());
  if (card.family == nullptr) {
    throw family.error(fmt::format("unknown family \"{}\"", family.text()));
  }
  card.category = static_cast<Category>(root.at("category").one_of(kCategories));
  card.level = static_cast<Level>(root.at("level").one_of(kLevels));
  card.tags = root.at("tags").texts();
  card.api = root.at("api").texts();
  if (auto links = root.find("links")) card.links = known_words(*links, kLinks);
  card.needs = known_words(root.at("needs"), kNeeds);
  card.multi_node = root.at("topology").one_of({"single-node", "multi-node"}) == 1;
  card.buffers = static_cast<BufferKind>(root.at("buffers").one_of(kBufferKinds));
  card.scratch = root.at("scratch").boolean();
  if (auto forbidden = root.find("forbidden")) {
    if (auto includes = forbidden->find("includes")) card.forbidden_includes = includes->texts();
    if (auto symbols = forbidden->find("symbols")) card.forbidden_symbols = symbols->texts();
  }
  card.host_bytes_max = kDefaultHostBytes;
  if (auto bytes = root.find("host_bytes_max")) {
    card.host_bytes_max = static_cast<uint64_t>(bytes->integer(0, kMaxNumber));
  }
  Yaml limits = root.at("limits");
  card.wall_limit_s = static_cast<uint32_t>(limits.at("wall_s").integer(1, 3600));
  card.virtual_limit_ms = static_cast<uint32_t>(limits.at("virtual_ms").integer(1, 600'000));
  card.canary = root.at("canary").text();
  if (card.canary.size() < kMinCanaryBytes) {
    throw root.at("canary").error("too short to be found again: use a random UUID");
  }
}

void check_parameter_names(const Yaml& parameters, const Family& family) {
  for (const Parameter& parameter : family.parameters()) parameters.find(parameter.name);
  parameters.finish();
}

void require_file(const std::string& folder, const std::string& name) {
  if (!fs::is_regular_file(fs::path(folder) / name)) {
    throw Error(ErrorCode::kConfig, fmt::format("{}/{}: missing; a task consists of task.yaml, "
                                                "prompt.md, starter.cu and hidden/cases.yaml",
                                                folder, name));
  }
}

Card load(const std::string& folder) {
  Card card;
  card.folder = folder;
  for (const char* name : {"task.yaml", "prompt.md", "starter.cu", "hidden/cases.yaml"}) {
    require_file(folder, name);
  }
  Yaml root = Yaml::load_file(folder + "/task.yaml");
  parse_task(root, card);
  std::optional<Yaml> shared = root.find("parameters");
  if (shared) check_parameter_names(*shared, *card.family);
  parse_cases(folder + "/hidden/cases.yaml", shared, card);
  root.finish();
  card.hash = hash_folder(folder);
  return card;
}

StepKey whole_case(StepKey key) {
  key.step = StepKey::kWholeCase;
  return key;
}

template <typename Map>
const auto& parameter_value(const Map& map, std::string_view name) {
  auto found = map.find(name);
  CB_CHECK(found != map.end(), fmt::format("the family declares no parameter {}", name));
  return found->second;
}

}  // namespace

Choice Choice::one_of(std::vector<uint64_t> values) {
  CB_CHECK(!values.empty(), "a choice of nothing");
  Choice choice;
  choice.min_ = *std::min_element(values.begin(), values.end());
  choice.max_ = *std::max_element(values.begin(), values.end());
  choice.values_ = std::move(values);
  return choice;
}

Choice Choice::range(uint64_t min, uint64_t max) {
  CB_CHECK(min <= max, "an empty range");
  Choice choice;
  choice.min_ = min;
  choice.max_ = max;
  return choice;
}

uint64_t Choice::min() const { return min_; }
uint64_t Choice::max() const { return max_; }

uint64_t Choice::draw(const StepKey& key, std::string_view purpose, uint64_t index) const {
  StepKey common = whole_case(key);
  if (values_.empty()) {
    return min_ + CounterRandom(common.seed(purpose)).below(index, max_ - min_ + 1);
  }
  uint64_t round = index / values_.size();
  std::vector<uint64_t> deck = values_;
  CounterRandom random(common.seed(fmt::format("{} round {}", purpose, round)));
  for (uint64_t left = deck.size(); left > 1; --left) {
    std::swap(deck[left - 1], deck[random.below(left, left)]);
  }
  return deck[index % deck.size()];
}

const Choice& Case::number(std::string_view name) const { return parameter_value(numbers, name); }
const std::string& Case::word(std::string_view name) const { return parameter_value(words, name); }
bool Case::flag(std::string_view name) const { return parameter_value(flags, name); }

const char* to_string(Category category) {
  return kCategories[static_cast<size_t>(category)].c_str();
}
const char* to_string(Level level) { return kLevels[static_cast<size_t>(level)].c_str(); }

Result<Card> load_card(const std::string& folder) {
  fs::path path = fs::path(folder).lexically_normal();
  if (!path.has_filename()) path = path.parent_path();
  try {
    return load(path.string());
  } catch (const Error& e) {
    return tl::unexpected<Error>(e);
  }
}

std::vector<FoundTask> find_tasks(const std::vector<std::string>& task_dirs) {
  std::vector<FoundTask> tasks;
  for (const std::string& dir : task_dirs) {
    std::error_code error;
    fs::directory_iterator entries(dir, error);
    if (error) {
      throw Error(ErrorCode::kUsage,
                  fmt::format("task folder {}: {}; --task-dir takes a folder of tasks", dir,
                              error.message()));
    }
    for (const fs::directory_entry& entry : entries) {
      if (!fs::is_regular_file(entry.path() / "task.yaml")) continue;
      std::string folder = entry.path().lexically_normal().string();
      tasks.push_back({entry.path().filename().string(), folder, load_card(folder)});
    }
  }
  std::stable_sort(tasks.begin(), tasks.end(),
                   [](const FoundTask& a, const FoundTask& b) { return a.id < b.id; });
  for (size_t i = 1; i < tasks.size(); ++i) {
    if (tasks[i].id != tasks[i - 1].id) continue;
    tasks[i].card = failure(ErrorCode::kConfig,
                            fmt::format("{}: the id is taken by {}; rename one of the folders",
                                        tasks[i].folder, tasks[i - 1].folder));
  }
  return tasks;
}

int step_count(const Case& test_case, StepKey key) {
  uint64_t width = static_cast<uint64_t>(test_case.max_steps - test_case.min_steps) + 1;
  CounterRandom random(whole_case(std::move(key)).seed("steps"));
  return test_case.min_steps + static_cast<int>(random.below(0, width));
}

int delayed_rank(const Case& test_case, const StepKey& key) {
  if (test_case.skew_us == 0) return -1;
  CounterRandom random(key.seed("delayed rank"));
  return static_cast<int>(random.below(0, static_cast<uint64_t>(test_case.world_size)));
}

std::string hash_folder(const std::string& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::recursive_directory_iterator it(folder, error), end; !error && it != end;
       it.increment(error)) {
    fs::file_status status = it->symlink_status();
    if (fs::is_directory(status)) continue;
    std::string name = it->path().lexically_relative(folder).generic_string();
    if (!fs::is_regular_file(status)) {
      throw Error(ErrorCode::kConfig,
                  fmt::format("{}/{}: only regular files can be part of a task", folder, name));
    }
    names.push_back(std::move(name));
  }
  if (error) throw Error(ErrorCode::kSystem, fmt::format("{}: {}", folder, error.message()));
  std::sort(names.begin(), names.end());
  std::string text;
  for (const std::string& name : names) {
    std::string content = value_or_throw(read_file(fmt::format("{}/{}", folder, name)));
    text += fmt::format("{}\n{}\n{}\n{}\n", name.size(), name, content.size(), content);
  }
  return sha256_hex(text);
}

}  // namespace cb::tasks
