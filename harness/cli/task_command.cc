#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <regex>

#include "base/file.h"
#include "base/hash.h"
#include "base/text.h"
#include "base/tty.h"
#include "harness/cli/command.h"
#include "harness/cli/task_check.h"
#include "tasks/prompt.h"

namespace cb::cli {
namespace {

namespace fs = std::filesystem;

Json to_json(const tasks::Card& card) {
  Json json;
  json["id"] = card.id;
  json["title"] = card.title;
  json["family"] = std::string(card.family->name());
  json["category"] = tasks::to_string(card.category);
  json["level"] = tasks::to_string(card.level);
  json["tags"] = card.tags;
  json["api"] = card.api;
  json["links"] = card.links;
  json["needs"] = card.needs;
  json["multi_node"] = card.multi_node;
  json["cases"] = card.cases.size();
  json["hash"] = card.hash;
  json["folder"] = card.folder;
  return json;
}

int list(const Common& common) {
  Json json = Json::array();
  Table table({{"task"}, {"title"}, {"family"}, {"level"}, {"cases", Table::Align::kRight}});
  int exit_code = kDone;
  for (const tasks::FoundTask& found : find_all_tasks(common)) {
    if (!found.card) {
      exit_code = kUsage;
      json.push_back({{"id", found.id}, {"error", found.card.error().message()}});
      table.add_row({{found.id}, {found.card.error().message(), Color::kRed}, {""}, {""}, {""}});
      continue;
    }
    const tasks::Card& card = *found.card;
    json.push_back(to_json(card));
    table.add_row({{card.id},
                   {card.title},
                   {std::string(card.family->name())},
                   {tasks::to_string(card.level)},
                   {fmt::format("{}", card.cases.size())}});
  }
  if (common.json) {
    print_json(json);
  } else {
    print(table.render(use_color(stdout)));
  }
  return exit_code;
}

int show(const Common& common, const std::string& name) {
  tasks::Card card = find_task(common, name);
  std::string prompt = tasks::render_prompt(card, common.layout.tasks_folder);
  if (common.json) {
    Json json = to_json(card);
    json["prompt"] = prompt;
    print_json(json);
  } else {
    print(prompt);
  }
  return kDone;
}

struct NewTask {
  std::string id;
  std::string like;
  std::string folder = ".";
};

std::string fresh_canary() {
  std::string hex = RunKey::random().hex();
  return fmt::format("commbench-task-{}-{}-{}-{}-{}", hex.substr(0, 8), hex.substr(8, 4),
                     hex.substr(12, 4), hex.substr(16, 4), hex.substr(20, 12));
}

void replace_all(std::string& text, const std::string& what, const std::string& with) {
  for (size_t at = text.find(what); at != std::string::npos;
       at = text.find(what, at + with.size())) {
    text.replace(at, what.size(), with);
  }
}

int make_new(const Common& common, const NewTask& options) {
  tasks::Card model = find_task(common, options.like);
  if (!std::regex_match(options.id, std::regex("[a-z0-9-]{1,64}"))) {
    throw Error(ErrorCode::kUsage,
                fmt::format("\"{}\" is not an id: 1 to 64 of a-z, 0-9 and -", options.id));
  }
  fs::path target = fs::path(options.folder) / options.id;
  if (fs::exists(target)) throw Error(ErrorCode::kUsage, target.string() + " exists already");
  std::string canary = fresh_canary();
  for (const auto& entry : fs::recursive_directory_iterator(model.folder)) {
    if (!entry.is_regular_file()) continue;
    std::string text = value_or_throw(read_file(entry.path().string()));
    replace_all(text, model.canary, canary);
    replace_all(text, "id: " + model.id + "\n", "id: " + options.id + "\n");
    fs::path to = target / entry.path().lexically_relative(model.folder);
    fs::create_directories(to.parent_path());
    write_file(to.string(), text);
  }
  tasks::Card made = value_or_throw(tasks::load_card(target.string()));
  if (common.json) {
    print_json(to_json(made));
  } else {
    print(fmt::format("{}: a copy of {} to be changed; `commbench task check {}` checks it\n",
                      target.string(), model.id, (target / "").string()));
  }
  return kDone;
}

}  // namespace

void add_task(CLI::App& app, const Common& common, int& exit_code) {
  CLI::App* command = app.add_subcommand("task", "tasks: list, show, new, check");
  command->require_subcommand(1);
  command->add_subcommand("list", "all tasks")->callback([&common, &exit_code] {
    exit_code = list(common);
  });

  auto shown = std::make_shared<std::string>();
  CLI::App* show_command = command->add_subcommand("show", "what a model is shown of a task");
  show_command->add_option("TASK", *shown, "id, or path of a folder")->required();
  show_command->callback([&common, &exit_code, shown] { exit_code = show(common, *shown); });

  auto made = std::make_shared<NewTask>();
  CLI::App* new_command = command->add_subcommand("new", "start a task as a copy of another");
  new_command->add_option("ID", made->id, "id of the new task")->required();
  new_command->add_option("--like", made->like, "task to copy")->required();
  new_command->add_option("--in", made->folder, "folder for it")->capture_default_str();
  new_command->callback([&common, &exit_code, made] { exit_code = make_new(common, *made); });

  auto checked = std::make_shared<CheckOptions>();
  CLI::App* check_command = command->add_subcommand(
      "check", "prove that the reference passes and that trivial and wrong answers fail");
  check_command->add_option("TASK", checked->tasks, "ids or folders; default: all tasks");
  check_command->add_option("--platform", checked->platform, "where ranks execute")
      ->capture_default_str();
  check_command->add_option("--run-key", checked->run_key, "64 hexadecimal digits");
  check_command->add_flag("--cost", checked->cost,
                          "also print what each case costs to simulate, and hold it to its limit");
  check_command->callback(
      [&common, &exit_code, checked] { exit_code = check_tasks(common, *checked); });
}

}  // namespace cb::cli
