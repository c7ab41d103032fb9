#include "search/eval/eval_run.h"

#include <fmt/format.h>

#include <atomic>
#include <exception>
#include <filesystem>
#include <map>
#include <mutex>
#include <thread>

#include "base/check.h"
#include "base/file.h"
#include "base/hash.h"
#include "harness/score.h"
#include "search/eval/concurrency.h"
#include "search/eval/extract.h"
#include "search/eval/work_queue.h"

namespace cb::eval {
namespace {

using results::Record;
using results::Verdict;

constexpr size_t kFirstConcurrency = 2;

/// One sample of a task: its rounds so far.
struct Conversation {
  const tasks::Card* card = nullptr;
  int sample = 0;
  std::vector<Round> rounds;
};

/// A reply that has to be evaluated.
struct Answer {
  Conversation* conversation = nullptr;
  llm::Reply reply;
  std::string prompt_sha256;
};

/// Failures that concern one request; all others end the run.
bool is_about_the_request(llm::FailureKind kind) {
  return kind == llm::FailureKind::kBadRequest || kind == llm::FailureKind::kTooLarge;
}

class EvalRun {
 public:
  EvalRun(const harness::Layout& layout, harness::Platform& platform, const RunKey& key,
          const EvalPlan& plan, llm::Client& client, results::RunDirectory& run,
          const EvalOptions& options)
      : layout_(layout),
        platform_(platform),
        key_(key),
        plan_(plan),
        client_(client),
        run_(run),
        options_(options),
        references_(layout),
        limit_(std::min(kFirstConcurrency, options.most_requests), options.most_requests),
        questions_(0),
        answers_(2 * static_cast<size_t>(options.lanes)) {}

  EvalOutcome execute() {
    load();
    if (outcome_.progress.finished == conversations_.size()) return std::move(outcome_);
    std::vector<std::thread> askers, lanes;
    for (size_t i = 0; i < options_.most_requests; ++i) {
      askers.emplace_back([this] { guarded([this] { ask_questions(); }); });
    }
    for (int i = 0; i < options_.lanes; ++i) {
      lanes.emplace_back([this] { guarded([this] { evaluate_answers(); }); });
    }
    for (std::thread& thread : askers) thread.join();
    answers_.close();
    for (std::thread& thread : lanes) thread.join();
    if (error_) std::rethrow_exception(error_);
    return std::move(outcome_);
  }

 private:
  // What the run directory has is not made again.

  void load() {
    std::map<std::pair<std::string, int>, Record> known;
    for (Record& record : value_or_throw(results::read_records(run_.path()))) {
      known[{record.task, record.attempt}] = std::move(record);
    }
    for (const tasks::Card* card : plan_.cards) {
      for (int sample = 0; sample < plan_.samples; ++sample) {
        auto conversation = std::make_unique<Conversation>();
        conversation->card = card;
        conversation->sample = sample;
        load_rounds(*conversation, known);
        conversations_.push_back(std::move(conversation));
      }
    }
    outcome_.progress.conversations = conversations_.size();
    for (const auto& conversation : conversations_) {
      if (is_finished(*conversation)) {
        note_finished(*conversation);
      } else {
        questions_.put(conversation.get());
      }
    }
  }

  void load_rounds(Conversation& conversation,
                   const std::map<std::pair<std::string, int>, Record>& known) {
    for (int round = 0; round < plan_.rounds; ++round) {
      int number = plan_.attempt_number(conversation.sample, round);
      auto found = known.find({conversation.card->id, number});
      // An infrastructure failure is evaluated again, from its stored reply.
      if (found == known.end() || found->second.verdict == Verdict::kInfraError) return;
      auto reply = stored_reply(conversation, round);
      if (!reply) return;
      Round done{reply->text, found->second, stored_text(conversation, round, "build.log")};
      conversation.rounds.push_back(std::move(done));
    }
  }

  std::string path_of(const Conversation& conversation, int round, const std::string& name) const {
    int number = plan_.attempt_number(conversation.sample, round);
    return run_.attempt_folder(conversation.card->id, number) + "/" + name;
  }

  std::string stored_text(const Conversation& conversation, int round,
                          const std::string& name) const {
    auto text = read_file(path_of(conversation, round, name));
    return text ? *text : "";
  }

  std::optional<llm::Reply> stored_reply(const Conversation& conversation, int round) const {
    const std::string path = path_of(conversation, round, "reply.json");
    if (!std::filesystem::exists(path)) return std::nullopt;
    return llm::reply_from_json(value_or_throw(parse_json(value_or_throw(read_file(path)), path)));
  }

  bool is_finished(const Conversation& conversation) const {
    if (conversation.rounds.size() >= static_cast<size_t>(plan_.rounds)) return true;
    return !plan_.improve && !conversation.rounds.empty() &&
           conversation.rounds.back().record.verdict == Verdict::kPass;
  }

  // Asking.

  void ask_questions() {
    while (auto conversation = questions_.take()) {
      if (!limit_.acquire()) return;
      bool put_off = false;
      std::optional<Answer> answer;
      try {
        answer = answer_to(**conversation, put_off);
      } catch (...) {
        limit_.release(put_off);
        throw;
      }
      limit_.release(put_off);
      if (answer) answers_.put(std::move(*answer));
    }
  }

  std::optional<Answer> answer_to(Conversation& conversation, bool& put_off) {
    auto round = static_cast<int>(conversation.rounds.size());
    llm::Request request = ask(*conversation.card, layout_.tasks_folder, conversation.rounds);
    request.max_output_tokens = plan_.max_output_tokens;
    request.temperature = plan_.temperature;
    request.sample = static_cast<uint32_t>(conversation.sample);
    request.label = fmt::format("{}/{}/{}", conversation.card->id, conversation.sample, round);
    Answer answer{&conversation, {}, sha256_hex(dump_json(llm::to_json(request)))};
    if (auto stored = stored_reply(conversation, round)) {
      answer.reply = std::move(*stored);
      return answer;
    }
    write_file(path_of(conversation, round, "prompt.md"), text_of(request));
    llm::Completion done = client_.complete(request);
    if (!done && is_about_the_request(done.error().kind) && has_answered_) {
      done = refused_request(done.error());
    }
    if (!done) {
      put_off = done.error().kind == llm::FailureKind::kRateLimit;
      stop(done.error());
      return std::nullopt;
    }
    has_answered_ = true;
    put_off = done->rate_limited > 0;
    write_file(path_of(conversation, round, "reply.json"), dump_json_pretty(llm::to_json(*done)));
    note_reply(*done);
    answer.reply = std::move(*done);
    return answer;
  }

  /// What is recorded of a request that the provider does not take, such as one that is too long.
  static llm::Reply refused_request(const llm::Failure& failure) {
    llm::Reply reply;
    reply.finish = llm::Finish::kRefusal;
    reply.finish_reason = failure.message;
    return reply;
  }

  static std::string text_of(const llm::Request& request) {
    std::string text = request.system;
    for (const llm::Message& message : request.messages) {
      text += fmt::format("\n<!-- {} -->\n\n{}",
                          message.role == llm::Message::Role::kUser ? "user" : "assistant",
                          message.text);
    }
    return text;
  }

  // Evaluating.

  void evaluate_answers() {
    harness::Evaluator evaluator(layout_, platform_, references_);
    while (auto answer = answers_.take()) {
      Conversation& conversation = *answer->conversation;
      evaluate(evaluator, *answer);
      if (is_finished(conversation)) {
        std::lock_guard lock(mutex_);
        note_finished(conversation);
      } else {
        questions_.put_first(&conversation);
      }
    }
  }

  void evaluate(harness::Evaluator& evaluator, const Answer& answer) {
    Conversation& conversation = *answer.conversation;
    auto round = static_cast<int>(conversation.rounds.size());
    int number = plan_.attempt_number(conversation.sample, round);
    harness::Candidate candidate;
    candidate.name = fmt::format("{}/{}", conversation.card->id, number);
    harness::Evaluated done;
    auto code = extract_candidate(answer.reply.text);
    if (code) {
      candidate.sources = {{"candidate.cu", *code}};
      candidate.sha256 = sha256_hex(*code);
      RunKey key = attempt_key(key_, conversation.card->id, number);
      harness::Request request{.card = conversation.card, .candidate = &candidate, .key = &key};
      request.attempt = number;
      done = evaluator.evaluate(request, [](const std::string&) {});
    } else {
      done.record = no_answer(conversation, number, answer.reply, code.error());
      done.record.candidate = candidate.name;
    }
    done.record.generation = generation(conversation, round, answer);
    std::lock_guard lock(mutex_);
    harness::keep_attempt(run_, candidate, done);
    run_.append(done.record);
    conversation.rounds.push_back({answer.reply.text, done.record, done.build_log});
  }

  Record no_answer(const Conversation& conversation, int number, const llm::Reply& reply,
                   const NoCandidate& why) const {
    Record record;
    record.task = conversation.card->id;
    record.task_hash = conversation.card->hash;
    record.attempt = number;
    record.platform = platform_.name();
    record.verdict = Verdict::kNoAnswer;
    record.reason = why.reason;
    record.finding.emplace();
    record.finding->message = why.message;
    if (reply.finish == llm::Finish::kRefusal) {
      record.reason = "refusal";
      record.finding->message = "The model declined to answer: " + reply.finish_reason;
    } else if (reply.finish == llm::Finish::kLength) {
      record.reason = "length";
      record.finding->message =
          "The answer reached the limit of output tokens before it was complete.";
    }
    return record;
  }

  results::Generation generation(const Conversation& conversation, int round,
                                 const Answer& answer) const {
    const llm::Reply& reply = answer.reply;
    results::Generation made;
    made.model = plan_.model;
    made.answered_by = reply.model;
    made.sample = conversation.sample;
    made.round = round;
    made.prompt_sha256 = answer.prompt_sha256;
    made.finish = llm::to_string(reply.finish);
    made.input_tokens = reply.usage.input;
    made.cached_tokens = reply.usage.cached;
    made.output_tokens = reply.usage.output;
    made.cost_usd = llm::cost_usd(options_.price ? &*options_.price : nullptr, reply.usage);
    return made;
  }

  // What all threads share.

  void note_reply(const llm::Reply& reply) {
    std::lock_guard lock(mutex_);
    EvalProgress& progress = outcome_.progress;
    ++progress.requests;
    auto cost = llm::cost_usd(options_.price ? &*options_.price : nullptr, reply.usage);
    if (!cost) {
      progress.cost_usd = std::nullopt;
    } else if (progress.cost_usd) {
      *progress.cost_usd += *cost;
    }
    report();
  }

  /// With the lock held, or before there are threads.
  void note_finished(const Conversation& conversation) {
    ++outcome_.progress.finished;
    for (const Round& round : conversation.rounds) {
      if (round.record.verdict != Verdict::kPass) continue;
      ++outcome_.progress.passed;
      break;
    }
    if (outcome_.progress.finished == conversations_.size()) questions_.close();
    report();
  }

  void report() {
    outcome_.progress.concurrency = limit_.limit();
    if (options_.on_progress) options_.on_progress(outcome_.progress);
  }

  /// No more is asked; what was answered is still evaluated.
  void stop(const llm::Failure& failure) {
    {
      std::lock_guard lock(mutex_);
      if (!outcome_.stopped_by) outcome_.stopped_by = failure;
    }
    questions_.close(true);
    limit_.stop();
  }

  // A thread's exception ends in the thread that called execute().
  void guarded(const std::function<void()>& work) {
    try {
      work();
    } catch (const Error&) {
      {
        std::lock_guard lock(mutex_);
        if (!error_) error_ = std::current_exception();
      }
      questions_.close(true);
      answers_.close(true);
      limit_.stop();
    }
  }

  const harness::Layout& layout_;
  harness::Platform& platform_;
  const RunKey& key_;
  const EvalPlan& plan_;
  llm::Client& client_;
  results::RunDirectory& run_;
  const EvalOptions& options_;
  harness::ReferenceTimes references_;
  ConcurrencyLimit limit_;
  WorkQueue<Conversation*> questions_;
  WorkQueue<Answer> answers_;
  std::vector<std::unique_ptr<Conversation>> conversations_;
  std::atomic<bool> has_answered_{false};
  std::mutex mutex_;
  EvalOutcome outcome_;
  std::exception_ptr error_;
};

}  // namespace

RunKey attempt_key(const RunKey& key, const std::string& task, int attempt) {
  return key.derive(fmt::format("attempt:{}:{}", task, attempt));
}

EvalOutcome evaluate_model(const harness::Layout& layout, harness::Platform& platform,
                           const RunKey& key, const EvalPlan& plan, llm::Client& client,
                           results::RunDirectory& run, const EvalOptions& options) {
  CB_CHECK(options.most_requests > 0 && options.lanes > 0, "somebody must work");
  return EvalRun(layout, platform, key, plan, client, run, options).execute();
}

}  // namespace cb::eval
