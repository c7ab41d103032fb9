#include "tasks/testing/task_folder.h"

#include <fmt/format.h>

#include <filesystem>

#include "base/check.h"
#include "tasks/poison.h"

namespace cb::tasks::testing {

TaskFolder::TaskFolder(const std::string& family, const std::string& parameters,
                       const std::string& cases, const std::string& buffers) {
  std::filesystem::create_directories(path() + "/hidden");
  write("task.yaml", fmt::format(R"(id: sample
title: A sample
family: {}
category: {}
level: easy
tags: [sample]
api: [cuda-runtime]
needs: [peer]
topology: single-node
buffers: {}
scratch: true
parameters: {{{}}}
limits: {{wall_s: 60, virtual_ms: 100}}
canary: 00000000-0000-4000-8000-000000000000
)",
                                 family, family, buffers, parameters));
  write("prompt.md", "Do it.\n");
  write("starter.cu", "// nothing\n");
  write("hidden/cases.yaml", "cases:\n" + cases);
}

void TaskFolder::write(const std::string& name, const std::string& text) const {
  write_file(path() + "/" + name, text);
}

void TaskFolder::replace(const std::string& name, const std::string& from,
                         const std::string& to) const {
  std::string text = value_or_throw(read_file(path() + "/" + name));
  size_t at = text.find(from);
  CB_CHECK(at != text.npos, "replace: no such text: " + from);
  write(name, text.replace(at, from.size(), to));
}

Card TaskFolder::load() const { return value_or_throw(load_card(path())); }

StepOfAllRanks::StepOfAllRanks(const Card& card, const Case& of_case, const RunKey& run_key,
                               int step)
    : test_case(of_case), key{&run_key, card.hash, of_case.id, step} {
  for (int rank = 0; rank < test_case.world_size; ++rank) {
    plans.push_back(card.family->plan(test_case, key, rank));
  }
}

std::vector<std::byte> StepOfAllRanks::input(int rank, int call) const {
  const Input& input = plans[static_cast<size_t>(rank)].inputs[static_cast<size_t>(call)];
  std::vector<std::byte> bytes(input.region.bytes);
  input.content->produce(0, bytes);
  return bytes;
}

std::vector<std::byte> StepOfAllRanks::poison_of(int rank, const Region& region) const {
  std::vector<std::byte> bytes(region.bytes);
  poison(key, rank, region.buffer)->produce(region.offset, bytes);
  return bytes;
}

RunKey fixed_key() { return RunKey::from_hex(std::string(62, '5') + "c3"); }

}  // namespace cb::tasks::testing
