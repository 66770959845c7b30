#include "cli/answers.h"

#include <unistd.h>

#include "network/open.h"
#include "op/text.h"

namespace maya::cli {

Result<estimate::Device> Devices::operator()(std::string_view name) {
  const std::string key(name);
  if (auto known = made_.find(key); known != made_.end())
    return estimate::Device{known->second.gpu, known->second.estimator.get()};
  const auto gpu = catalog_.gpu(name);
  if (!gpu) return gpu.error();
  auto estimator = estimate::make_estimator(*gpu, catalog_.directory(), calibration_);
  if (!estimator) return estimator.error();
  Made& made = made_[key] = {*gpu, std::move(*estimator)};
  return estimate::Device{made.gpu, made.estimator.get()};
}

Json to_json(const estimate::Answer& answer, const Op& op, const catalog::Gpu& gpu) {
  return {{"op", to_text(op.work)},
          {"gpu", gpu.name},
          {"predicted_us", answer.estimate.ns / 1000},
          {"low_us", answer.estimate.low_ns / 1000},
          {"high_us", answer.estimate.high_ns / 1000},
          {"origin", estimate::name(answer.estimate.origin)},
          {"tflops", answer.tflops},
          {"gbps", answer.gbps},
          {"peak_share", answer.peak_share},
          {"warning", answer.warning}};
}

namespace {

std::map<std::string, std::string> nccl_environment() {
  std::map<std::string, std::string> found;
  for (char** entry = environ; *entry; ++entry) {
    const std::string_view text = *entry;
    const std::size_t equals = text.find('=');
    if (text.rfind("NCCL_", 0) == 0 && equals != std::string_view::npos)
      found.emplace(text.substr(0, equals), text.substr(equals + 1));
  }
  return found;
}

}  // namespace

Result<NetAnswer> ask(const catalog::Catalog& catalog, const NetQuestion& question) {
  auto cluster = catalog.cluster(question.cluster, question.settings);
  if (!cluster) return cluster.error();
  const auto sizes = network::parse_sizes(question.sizes);
  if (!sizes) return sizes.error();
  const auto environment = nccl_environment();
  auto rows = network::table(*cluster, question.collective, *sizes, question.ranks, environment);
  if (!rows) return rows.error();
  NetAnswer answer{std::move(*cluster), std::move(*rows), {}, question.ranks};
  for (const std::string& note : network::environment_notes(environment))
    answer.notes.push_back(note);
  if (answer.ranks == 0) answer.ranks = answer.cluster.world_size();
  return answer;
}

Json to_json(const NetAnswer& answer, const NetQuestion& question) {
  Json list = Json::array();
  for (const network::Row& row : answer.rows)
    list.push_back({{"bytes", row.bytes},
                    {"time_us", row.time.ns / 1000},
                    {"low_us", row.time.low_ns / 1000},
                    {"high_us", row.time.high_ns / 1000},
                    {"algorithm", row.time.algorithm},
                    {"protocol", row.time.protocol},
                    {"channels", row.time.channels},
                    {"algbw_gbps", row.algbw_gbps},
                    {"busbw_gbps", row.busbw_gbps},
                    {"origin", estimate::name(row.time.origin)}});
  return {{"cluster", answer.cluster.name},
          {"collective", question.collective},
          {"ranks", answer.ranks},
          {"rows", std::move(list)}};
}

}  // namespace maya::cli
