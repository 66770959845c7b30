// The rows of `maya net SPEC all_reduce 1MB..1GB`, in the form of nccl-tests.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "maya/network.h"
#include "maya/result.h"

namespace maya::network {

struct Row {
  std::int64_t bytes{};
  CollectiveTime time;
  double algbw_gbps{}, busbw_gbps{};
};

struct SizeRange {
  std::int64_t first{}, last{};
};

// "1MB..1GB", "64KiB", "8M": powers of 1024 as in nccl-tests. Sizes double from first to last.
Result<SizeRange> parse_sizes(std::string_view text);

// Uses all GPUs of the cluster, or the first `ranks`. `kind` may also be "send_recv" (from rank 0
// to the last rank).
Result<std::vector<Row>> table(const catalog::Cluster& cluster, std::string_view kind,
                               SizeRange sizes, int ranks = 0,
                               const std::map<std::string, std::string>& environment = {});

// nccl-tests' factor between algorithm and bus bandwidth.
double bus_factor(CollectiveKind kind, int ranks);

// The table as text, with a bar for each row's bus bandwidth.
std::string print(const std::vector<Row>& rows);

}  // namespace maya::network
