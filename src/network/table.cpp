#include "network/table.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <numeric>

#include "network/open.h"

namespace maya::network {
namespace {

Result<std::int64_t> parse_size(std::string_view text) {
  double number{};
  auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), number);
  std::string_view unit(end, static_cast<std::size_t>(text.data() + text.size() - end));
  double factor = unit.empty() || unit == "B" ? 1 : 0;
  for (double power = 1024; char letter : std::string_view("KMGT")) {
    if (!unit.empty() && (unit[0] == letter || unit[0] == letter + 32) &&
        (unit.size() == 1 || unit.substr(1) == "B" || unit.substr(1) == "iB" ||
         unit.substr(1) == "b"))
      factor = power;
    power *= 1024;
  }
  if (code != std::errc{} || factor == 0)
    return Error{"'" + std::string(text) + "' is not a size; write 1MB, 64KB, 2G or 1MB..1GB"};
  if (number * factor < 1)
    return Error{"the size must be at least 1 byte, found '" + std::string(text) + "'"};
  if (number * factor > 1e15)
    return Error{"'" + std::string(text) + "' is larger than any GPU's memory"};
  return static_cast<std::int64_t>(number * factor);
}

}  // namespace

Result<SizeRange> parse_sizes(std::string_view text) {
  auto dots = text.find("..");
  auto first = parse_size(text.substr(0, dots));
  if (!first) return first.error();
  if (dots == text.npos) return SizeRange{*first, *first};
  auto last = parse_size(text.substr(dots + 2));
  if (!last) return last.error();
  if (*last < *first)
    return Error{"'" + std::string(text) + "': the first size must not be larger than the last"};
  return SizeRange{*first, *last};
}

double bus_factor(CollectiveKind kind, int ranks) {
  if (ranks <= 1) return 1;
  const double n = ranks;
  switch (kind) {
    case CollectiveKind::all_reduce:
      return 2 * (n - 1) / n;
    case CollectiveKind::all_gather:
    case CollectiveKind::reduce_scatter:
    case CollectiveKind::all_to_all:
    case CollectiveKind::gather:
    case CollectiveKind::scatter:
      return (n - 1) / n;
    default:
      return 1;
  }
}

Result<std::vector<Row>> table(const catalog::Cluster& cluster, std::string_view name,
                               SizeRange sizes, int ranks,
                               const std::map<std::string, std::string>& environment) {
  // vllm_all_reduce: an engine's own.
  auto library = parse_enum<CollectiveLibrary>(name.substr(0, name.find('_')));
  if (library && name.ends_with("_all_reduce")) name = "all_reduce";
  auto kind = parse_enum<CollectiveKind>(name);
  bool pair = name == "send_recv";
  if (!pair && (!kind || *kind == CollectiveKind::barrier))
    return Error{
        "unknown collective '" + std::string(name) +
        "'; known are all_reduce, all_gather, reduce_scatter, broadcast, reduce, all_to_all, "
        "gather, scatter, send_recv; all-reduces of engines are vllm_all_reduce, "
        "sglang_all_reduce, trtllm_all_reduce"};
  if (ranks == 0) ranks = cluster.world_size();
  if (auto status = check(cluster, ranks); !status) return status.error();
  if (ranks < 2)
    return Error{cluster.name +
                 " has one GPU: a collective needs two or more; name a cluster, or a "
                 "number of GPUs as in " +
                 cluster.gpu.name + ":8"};
  auto network = open_network(cluster, environment);
  if (!network) return network.error();
  std::vector<std::int32_t> group(static_cast<std::size_t>(ranks));
  std::iota(group.begin(), group.end(), 0);
  std::vector<Row> rows;
  for (std::int64_t bytes = sizes.first; bytes <= sizes.last; bytes *= 2) {
    Row row{bytes, {}, 0, 0};
    if (pair) {
      Message message{0, ranks - 1, bytes};
      row.time = (*network)->messages({&message, 1});
    } else {
      row.time = (*network)->collective({.kind = *kind,
                                         .bytes = bytes,
                                         .root = 0,
                                         .library = library.value_or(CollectiveLibrary::nccl)},
                                        group);
    }
    row.algbw_gbps = static_cast<double>(bytes) / row.time.ns;
    row.busbw_gbps = row.algbw_gbps * (pair ? 1 : bus_factor(*kind, ranks));
    rows.push_back(row);
  }
  return rows;
}

std::string print(const std::vector<Row>& rows) {
  constexpr double kBar = 24;
  double most = 0;
  for (const Row& row : rows) most = std::max(most, row.busbw_gbps);
  std::string out = fmt::format(
      "{:>14} {:>12} {:>15} {:>7} {:>4} {:>9} {:>9}\n{:>14} {:>12} {:>15} {:>7} {:>4} {:>9} "
      "{:>9}\n",
      "size", "time", "algorithm", "proto", "ch", "algbw", "busbw", "(B)", "(us)", "", "", "",
      "(GB/s)", "(GB/s)");
  for (const Row& row : rows) {
    std::string bar;
    for (int i = 0; i < std::lround(kBar * row.busbw_gbps / most); ++i) bar += "▆";
    out += fmt::format("{:>14} {:>12.2f} {:>15} {:>7} {:>4} {:>9.2f} {:>9.2f}  {}\n", row.bytes,
                       row.time.ns / 1e3, row.time.algorithm, row.time.protocol, row.time.channels,
                       row.algbw_gbps, row.busbw_gbps, bar);
  }
  return out;
}

}  // namespace maya::network
