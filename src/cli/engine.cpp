// `maya engine` reads questions as JSON lines from standard input and writes answers as JSON lines
// to standard output. It keeps recordings and models in memory between questions, so that a what-if
// takes only as long as its simulation. The Python package and `maya serve` use it; people use
// `maya predict`.
//
//   {"id": 1, "ask": "predict", "run": "maya-runs/demo", "set": {"host.speed": "2"}}
//   {"id": 1, "answer": {...}}            or  {"id": 1, "error": "what is wrong and what to do"}
#include <fmt/format.h>

#include <chrono>
#include <filesystem>
#include <iostream>
#include <list>

#include "cli/answers.h"
#include "cli/command.h"
#include "maya/report.h"
#include "op/text.h"
#include "predict/predict.h"
#include "predict/reuse.h"
#include "predict/run_directory.h"

namespace maya::cli {
namespace {

namespace fs = std::filesystem;

// Names, sizes and times of the files of a run. If they change, the recordings are read again.
std::string stamp(const std::string& directory) {
  std::vector<std::string> lines;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(directory, error)) {
    const std::string name = entry.path().filename().string();
    if (entry.path().extension() != ".maya" && name != "run.toml" &&
        entry.path().extension() != ".places")
      continue;
    const auto time = entry.last_write_time(error).time_since_epoch().count();
    lines.push_back(fmt::format("{} {} {}", name, entry.file_size(error), time));
  }
  std::sort(lines.begin(), lines.end());
  return fmt::format("{}", fmt::join(lines, "\n"));
}

class Runs {
 public:
  Result<const predict::Run*> operator()(const std::string& directory) {
    const std::string now = stamp(directory);
    for (auto one = open_.begin(); one != open_.end(); ++one)
      if (one->directory == directory && one->stamp == now) {
        open_.splice(open_.begin(), open_, one);
        return &open_.front().run;
      }
    auto run = predict::read_run(directory);
    if (!run) return run.error();
    open_.remove_if([&](const Open& one) { return one.directory == directory; });
    open_.push_front({directory, now, std::move(*run)});
    constexpr std::size_t most = 4;  // recordings of large jobs take hundreds of megabytes
    if (open_.size() > most) open_.pop_back();
    return &open_.front().run;
  }

 private:
  struct Open {
    std::string directory, stamp;
    predict::Run run;
  };
  std::list<Open> open_;  // the latest first
};

predict::Pairs pairs_of(const Json& question, const char* name) {
  predict::Pairs pairs;
  if (const auto found = question.find(name); found != question.end() && found->is_object())
    for (const auto& [key, value] : found->items())
      pairs.emplace_back(key, value.is_string() ? value.get<std::string>() : value.dump());
  return pairs;
}

std::string text_of(const Json& question, const char* name, const char* otherwise = "") {
  const auto found = question.find(name);
  return found == question.end() || found->is_null() ? otherwise : found->get<std::string>();
}

// Columns instead of rows, because a step of eight ranks has ten thousand entries.
Json timeline_json(const predict::Outcome& outcome) {
  const simulate::Timeline& timeline = outcome.timeline;
  Json ops = Json::array(), columns = Json::object();
  std::vector<std::size_t> first_op;
  Json ranks = Json::array();
  for (const job::RankClass& one : outcome.job.classes) {
    first_op.push_back(ops.size());
    ranks.push_back(one.ranks);
    for (const Op& op : one.recording.ops)
      ops.push_back({{"kind", kind_name(op.work)}, {"name", op.name}, {"work", to_text(op.work)}});
  }
  for (const char* name : {"class", "stream", "op", "record", "issue_us", "start_us", "end_us"})
    columns[name] = Json::array();
  for (const simulate::Span& span : timeline.spans) {
    const bool known = span.rank_class < first_op.size() &&
                       span.op < outcome.job.classes[span.rank_class].recording.ops.size();
    columns["class"].push_back(span.rank_class);
    columns["stream"].push_back(span.stream);
    columns["op"].push_back(known ? static_cast<std::int64_t>(first_op[span.rank_class] + span.op)
                                  : -1);
    columns["record"].push_back(span.record);
    columns["issue_us"].push_back(static_cast<double>(span.issue_ns) / 1000);
    columns["start_us"].push_back(static_cast<double>(span.start_ns) / 1000);
    columns["end_us"].push_back(static_cast<double>(span.end_ns) / 1000);
  }
  Json steps = Json::array();
  for (const simulate::Step& step : timeline.steps)
    steps.push_back({{"start_us", static_cast<double>(step.start_ns) / 1000},
                     {"end_us", static_cast<double>(step.end_ns) / 1000},
                     {"measured", step.measured}});
  return {{"ranks", ranks}, {"ops", ops}, {"steps", steps}, {"spans", columns}};
}

class Engine {
 public:
  Result<Json> answer(const Json& question) {
    const std::string ask = text_of(question, "ask");
    if (ask == "predict" || ask == "timeline" || ask == "page") return predict(question, ask);
    if (ask == "estimate") return estimate(question);
    if (ask == "net") return net(question);
    if (ask == "version") return Json(MAYA_VERSION);
    return Error{fmt::format(
        "unknown question '{}': expected predict, timeline, page, estimate, net or version", ask)};
  }

 private:
  Result<Json> predict(const Json& question, const std::string& ask) {
    const std::string directory = text_of(question, "run");
    auto run = runs_(directory);
    if (!run) return run.error();
    predict::Options options;
    options.cluster = text_of(question, "cluster");
    options.calibration = text_of(question, "calibration");
    options.steps = text_of(question, "steps", "auto");
    options.fold = !question.value("unfold", false);
    options.settings = pairs_of(question, "set");
    const bool details = question.value("details", false);
    options.keep_spans = ask != "predict" || details;
    options.what_ifs = ask == "page" || details;
    options.reuse = &models_;
    const auto outcome = predict::predict_recorded(**run, directory, options);
    if (!outcome) return outcome.error();
    if (ask == "timeline") return timeline_json(*outcome);
    if (ask == "page") return Json(report::html_page(outcome->page()));
    return Json::parse(predict::to_json(*outcome));
  }

  Result<Json> estimate(const Json& question) {
    const auto catalog = models_.catalog();
    if (!catalog) return catalog.error();
    const auto op = estimate::parse_op(question.at("op").get<std::vector<std::string>>());
    if (!op) return op.error();
    const std::string calibration = text_of(question, "calibration");
    auto [devices, added] = devices_.try_emplace(calibration, **catalog, calibration);
    const auto device = devices->second(text_of(question, "gpu", "h100-sxm"));
    if (!device) return device.error();
    return to_json(estimate::answer(*op, device->gpu, *device->estimator), *op, device->gpu);
  }

  Result<Json> net(const Json& question) {
    const auto catalog = models_.catalog();
    if (!catalog) return catalog.error();
    NetQuestion asked;
    asked.cluster = text_of(question, "cluster");
    asked.collective = text_of(question, "collective");
    asked.sizes = text_of(question, "sizes", "1MB..1GB");
    asked.ranks = question.value("ranks", 0);
    asked.settings = pairs_of(question, "set");
    const auto answer = cli::ask(**catalog, asked);
    if (!answer) return answer.error();
    return to_json(*answer, asked);
  }

  Runs runs_;
  predict::Reuse models_;
  std::map<std::string, Devices> devices_;  // by calibration
};

int run() {
  Engine engine;
  for (std::string line; std::getline(std::cin, line);) {
    if (line.empty()) continue;
    Json reply = Json::object();
    try {
      const Json question = Json::parse(line);
      reply["id"] = question.contains("id") ? question["id"] : Json(nullptr);
      auto answer = engine.answer(question);
      if (answer)
        reply["answer"] = std::move(*answer);
      else
        reply["error"] = answer.error().message;
    } catch (const std::exception& wrong) {
      reply["error"] = fmt::format("the question cannot be parsed: {}", wrong.what());
    }
    fmt::print("{}\n", reply.dump(-1, ' ', false, Json::error_handler_t::replace));
    std::fflush(stdout);
  }
  return success;
}

}  // namespace

void add_engine(CLI::App& app) {
  CLI::App* verb = app.add_subcommand("engine", "Answer questions as JSON lines, for programs");
  verb->group("");  // for the Python package; not in `maya --help`
  verb->callback([] { finish(run()); });
}

}  // namespace maya::cli
