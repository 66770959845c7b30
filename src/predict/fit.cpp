#include "predict/fit.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <set>

#include "predict/reuse.h"
#include "predict/run_directory.h"
#include "report/format.h"

namespace maya::predict {
namespace {

std::string bytes(std::int64_t value) { return report::human_bytes(static_cast<double>(value)); }

// "--per-device-train_batch_size" → "perdevicetrainbatchsize"
std::string plain(std::string_view word) {
  std::string out;
  for (const char c : word)
    if (c != '-' && c != '_') out += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return out;
}

bool names_a_batch(std::string_view option) {
  static const std::set<std::string> names = {"b",
                                              "batch",
                                              "batchsize",
                                              "batchsizeperdevice",
                                              "bs",
                                              "devicebatchsize",
                                              "localbatchsize",
                                              "mbs",
                                              "microbatch",
                                              "microbatchsize",
                                              "perdevicetrainbatchsize",
                                              "trainbatchsize",
                                              "training.batchsize",
                                              "training.localbatchsize"};
  return option.size() > 1 && option[0] == '-' && names.count(plain(option)) > 0;
}

// The peak of the fullest rank; 0: not known.
std::int64_t peak_with(const report::MemoryChange& change, const Outcome& outcome) {
  std::int64_t peak = 0;
  for (std::size_t c = 0; c < outcome.job.classes.size() && c < outcome.places.size(); ++c) {
    const std::int64_t of_class =
        report::peak_with(change, outcome.job, c, outcome.cluster.gpu, outcome.places[c]);
    if (of_class == 0 && outcome.job.classes[c].derived_from < 0) return 0;
    peak = std::max(peak, of_class);
  }
  return peak;
}

// The part of the forward pass that is computed again, in ms.
double recomputation_ms(const Outcome& outcome) {
  double ms = 0;
  for (const report::ModuleCost& module : outcome.code.modules)
    if (module.path.find_first_of("0123456789") != std::string::npos)
      ms += module.ms - module.backward_ms;
  return ms;
}

// The largest micro-batch that fits, with or without recomputation.
std::optional<report::WhatIf> change_of_the_program(const Outcome& outcome, bool recompute) {
  const std::int64_t capacity = outcome.prediction.out_of_memory->capacity_bytes;
  // Fragmentation differs with the sizes, so not all of the memory is promised.
  const auto usable = static_cast<std::int64_t>(0.95 * static_cast<double>(capacity));
  const std::string& command = outcome.prediction.command;
  const auto word = batch_word(command);
  const int parts = word ? word->value : 16;  // in sixteenths if its number is not known
  auto peak_of = [&](int part) {
    return peak_with({static_cast<double>(part) / parts, recompute}, outcome);
  };
  int part = 0;
  for (int too_much = parts + (recompute ? 1 : 0); too_much - part > 1;) {
    const int middle = recompute && part == 0 && too_much > parts ? parts : (part + too_much) / 2;
    const std::int64_t peak = peak_of(middle);
    (peak > 0 && peak <= usable ? part : too_much) = middle;
  }
  if (part == 0) return std::nullopt;
  report::WhatIf one;
  one.memory_bytes = peak_of(part), one.capacity_bytes = capacity;
  if (part < parts)
    one.what =
        word ? fmt::format("a micro-batch of {} in place of {}", part, parts)
             : fmt::format("a micro-batch of {:.0f} % of the present one", 100.0 * part / parts);
  one.command = word && part < parts ? fmt::format("maya run --cluster {} -- {}",
                                                   outcome.cluster.name, word->in(command, part))
                                     : "change your program and run it again";
  if (recompute) {
    one.what += one.what.empty() ? "recompute the blocks of the model in the backward pass"
                                 : ", and the blocks of the model recomputed in the backward pass";
    one.problem = "torch.utils.checkpoint around each block";
    if (const double ms = recomputation_ms(outcome) * part / parts; ms > 0)
      one.problem += fmt::format("; costs a second forward pass, about {}", report::human_ms(ms));
  }
  return one;
}

struct Candidate {
  std::string spec;
  const catalog::Gpu* gpu{};
};

// GPUs, or for a job of several ranks clusters of as many GPUs per node, with enough memory: the
// smallest first, one of each GPU.
std::vector<Candidate> with_memory(const catalog::Catalog& catalog, const Outcome& outcome,
                                   std::int64_t needed) {
  std::vector<Candidate> fit;
  if (outcome.cluster.world_size() > 1) {
    for (const catalog::Cluster& one : catalog.clusters())
      if (one.gpus_per_node == outcome.cluster.gpus_per_node)
        fit.push_back(
            {fmt::format("{}:{}", one.name.substr(0, one.name.find(':')), outcome.cluster.nodes),
             &one.gpu});
  } else {
    for (const catalog::Gpu& gpu : catalog.gpus()) fit.push_back({gpu.name, &gpu});
  }
  const std::int64_t now = outcome.prediction.out_of_memory->capacity_bytes;
  std::erase_if(fit, [&](const Candidate& one) {
    return one.gpu->memory_bytes < needed || one.gpu->memory_bytes <= now;
  });
  std::stable_sort(fit.begin(), fit.end(), [](const Candidate& a, const Candidate& b) {
    return std::tie(a.gpu->memory_bytes, a.gpu->name) < std::tie(b.gpu->memory_bytes, b.gpu->name);
  });
  fit.erase(std::unique(
                fit.begin(), fit.end(),
                [](const Candidate& a, const Candidate& b) { return a.gpu->name == b.gpu->name; }),
            fit.end());
  return fit;
}

}  // namespace

std::string BatchWord::in(const std::string& command, int other) const {
  return command.substr(0, begin) + std::to_string(other) + command.substr(end);
}

void without_gpu(std::vector<std::pair<std::string, std::string>>& settings) {
  std::erase_if(settings, [](const auto& pair) { return pair.first.rfind("gpu.", 0) == 0; });
}

std::optional<BatchWord> batch_word(const std::string& command) {
  std::string before;
  for (std::size_t begin = 0; begin < command.size();) {
    const std::size_t end = std::min(command.find(' ', begin), command.size());
    std::string word = command.substr(begin, end - begin);
    std::size_t number = begin;
    if (const std::size_t equals = word.find('='); equals != std::string::npos) {
      before = word.substr(0, equals);
      number = begin + equals + 1;
    }
    int value = 0;
    const char* last = command.data() + end;
    const auto [stop, error] = std::from_chars(command.data() + number, last, value);
    if (names_a_batch(before) && error == std::errc() && stop == last && value >= 1)
      return BatchWord{number, end, value};
    before = std::move(word);
    begin = end + 1;
  }
  return std::nullopt;
}

std::vector<report::WhatIf> what_would_fit(const Run& run, const std::string& directory,
                                           const Options& options, const Outcome& outcome,
                                           Reuse& models) {
  const auto catalog = models.catalog();
  if (!catalog) return {};
  const report::OutOfMemory& refused = *outcome.prediction.out_of_memory;
  std::vector<report::WhatIf> found;
  if (refused.during_run) {
    // The rest of the step is not known: it has to run again, beyond the memory.
    found.push_back({"the smallest change that fits",
                     fmt::format("maya run --no-memory-limit --cluster {} -- {}",
                                 outcome.cluster.name, outcome.prediction.command),
                     0,
                     "records the whole step although it does not fit, and computes which "
                     "micro-batch, recomputation or GPU would"});
  } else {
    for (const bool recompute : {false, true})
      if (auto one = change_of_the_program(outcome, recompute)) found.push_back(std::move(*one));
  }

  const std::int64_t needed =
      refused.capacity_bytes +
      std::max(refused.missing_bytes, refused.estimated_missing_bytes.value_or(0));
  constexpr std::size_t most = 3;
  std::size_t shown = 0;
  for (const Candidate& one : with_memory(**catalog, outcome, needed)) {
    if (shown++ == most) break;
    report::WhatIf made;
    made.what = fmt::format("{}, with {}", one.gpu->name, bytes(one.gpu->memory_bytes));
    if (refused.during_run) {
      made.command =
          fmt::format("maya run --cluster {} -- {}", one.spec, outcome.prediction.command);
      made.problem = "has enough memory for the part that ran";
    } else {
      made.command = fmt::format("maya predict {} --cluster {}", directory, one.spec);
      Options asked = options;
      asked.keep_spans = asked.what_ifs = false;
      asked.reuse = &models;
      asked.cluster = one.spec;
      without_gpu(asked.settings);
      const auto then = predict_recorded(run, directory, asked);
      if (!then) continue;
      if (then->prediction.out_of_memory) continue;
      if (then->prediction.step) made.ms = then->prediction.step->ms;
      for (const report::RankMemory& memory : then->prediction.memory)
        made.memory_bytes = std::max(made.memory_bytes, memory.peak_bytes);
      made.capacity_bytes = one.gpu->memory_bytes;
    }
    found.push_back(std::move(made));
  }
  return found;
}

std::optional<report::WhatIf> larger_batch(const Outcome& outcome) {
  if (outcome.prediction.memory.empty()) return std::nullopt;
  const std::int64_t peak = peak_with({.batch = 2}, outcome);
  if (peak == 0) return std::nullopt;
  report::WhatIf one;
  one.memory_bytes = peak;
  one.capacity_bytes = outcome.prediction.memory.front().capacity_bytes;
  const std::string& command = outcome.prediction.command;
  const auto word = batch_word(command);
  one.what = word ? fmt::format("a micro-batch of {} in place of {}", 2 * word->value, word->value)
                  : "twice the micro-batch";
  one.command = word ? fmt::format("maya run --cluster {} -- {}", outcome.cluster.name,
                                   word->in(command, 2 * word->value))
                     : "needs a run of its own; maya search tries several";
  one.problem = peak <= one.capacity_bytes ? fmt::format("would fit, with {}", bytes(peak))
                                           : fmt::format("would not fit: {}", bytes(peak));
  return one;
}

}  // namespace maya::predict
