#include "harness/score.h"

#include <fmt/format.h>

#include <atomic>
#include <exception>
#include <filesystem>
#include <mutex>
#include <optional>
#include <thread>

#include "base/file.h"

namespace cb::harness {
namespace {

namespace fs = std::filesystem;

/// What the lanes share.
class ScoreRun {
 public:
  ScoreRun(const Layout& layout, Platform& platform, const RunKey& key,
           const std::vector<ScoreItem>& items, results::RunDirectory& run,
           const ScoreOptions& options)
      : layout_(layout),
        platform_(platform),
        key_(key),
        items_(items),
        run_(run),
        options_(options),
        references_(layout),
        records_(items.size()) {}

  std::vector<results::Record> execute() {
    size_t count = std::min(items_.size(), static_cast<size_t>(std::max(1, options_.lanes)));
    std::vector<std::thread> lanes;
    for (size_t i = 0; i < count; ++i) lanes.emplace_back([this] { work(); });
    for (std::thread& lane : lanes) lane.join();
    if (failure_) std::rethrow_exception(failure_);
    std::vector<results::Record> records;
    for (auto& record : records_) records.push_back(std::move(*record));
    return records;
  }

 private:
  // A lane's exceptions end in the thread that called score().
  void work() {
    try {
      Evaluator evaluator(layout_, platform_, references_);
      for (size_t index = next_++; index < items_.size() && !stop_; index = next_++) {
        evaluate(evaluator, index);
      }
    } catch (const Error&) {
      std::lock_guard<std::mutex> lock(mutex_);
      if (!failure_) failure_ = std::current_exception();
      stop_ = true;
    }
  }

  void evaluate(Evaluator& evaluator, size_t index) {
    const ScoreItem& item = items_[index];
    Request request;
    request.card = item.card;
    request.candidate = &item.candidate;
    request.key = &key_;
    request.attempt = item.attempt;
    request.environment = options_.environment;
    request.with_reference = options_.with_reference;
    Evaluated done = evaluator.evaluate(request, [&](const std::string& what) {
      std::lock_guard<std::mutex> lock(mutex_);
      if (options_.on_progress) {
        options_.on_progress(
            fmt::format("[{}/{}] {}: {}", finished_ + 1, items_.size(), item.candidate.name, what));
      }
    });
    std::lock_guard<std::mutex> lock(mutex_);
    keep_attempt(run_, item.candidate, done);
    run_.append(done.record);
    ++finished_;
    if (options_.on_record) options_.on_record(done.record);
    records_[index] = std::move(done.record);
  }

  const Layout& layout_;
  Platform& platform_;
  const RunKey& key_;
  const std::vector<ScoreItem>& items_;
  results::RunDirectory& run_;
  const ScoreOptions& options_;
  ReferenceTimes references_;
  std::atomic<size_t> next_{0};
  std::atomic<bool> stop_{false};
  std::mutex mutex_;
  size_t finished_ = 0;
  std::exception_ptr failure_;
  std::vector<std::optional<results::Record>> records_;
};

}  // namespace

void keep_attempt(const results::RunDirectory& run, const Candidate& candidate,
                  const Evaluated& evaluated) {
  std::string folder = run.attempt_folder(evaluated.record.task, evaluated.record.attempt);
  for (const build::SourceFile& file : candidate.sources) {
    bool single = candidate.sources.size() == 1;
    std::string suffix = fs::path(file.name).extension().string();
    std::string path = single ? folder + "/candidate" + suffix : folder + "/candidate/" + file.name;
    fs::create_directories(fs::path(path).parent_path());
    write_file(path, file.content);
  }
  write_file(folder + "/build.log", evaluated.build_log);
  write_file(folder + "/run.log", evaluated.run_log);
  write_file(folder + "/verdict.json", dump_json_pretty(results::to_json(evaluated.record)));
}

std::vector<results::Record> score(const Layout& layout, Platform& platform, const RunKey& key,
                                   const std::vector<ScoreItem>& items, results::RunDirectory& run,
                                   const ScoreOptions& options) {
  return ScoreRun(layout, platform, key, items, run, options).execute();
}

}  // namespace cb::harness
