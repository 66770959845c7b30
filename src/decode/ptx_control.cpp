#include "decode/ptx_control.h"

#include <algorithm>

namespace maya::decode::ptx {
namespace {

constexpr std::uint32_t unset = ~std::uint32_t{0};

}  // namespace

Control::Control(const Program& program)
    : program_(program),
      end_(static_cast<std::uint32_t>(program.code.size())),
      deciding_(program.code.size()) {
  for (const Instruction& in : program.code)
    if (in.code == Code::branch_indexed ||
        (in.code == Code::branch && (in.target < 0 || in.target > static_cast<int>(end_))))
      good_ = false;
  if (!good_) return;
  find_joins();
  for (std::uint32_t i = 0; i < end_ && good_; ++i) {
    if (!conditional(program.code[i])) continue;
    for (std::uint32_t at : ways(i))
      for (; at != join_[i] && at != end_; at = join_[at]) deciding_[at].push_back(i);
  }
}

std::vector<std::uint32_t> Control::ways(std::size_t at) const {
  const Instruction& in = program_.code[at];
  std::vector<std::uint32_t> out;
  if (in.code == Code::branch) out.push_back(static_cast<std::uint32_t>(in.target));
  if (in.code == Code::exit) out.push_back(end_);
  if (out.empty() || in.predicate >= 0) out.push_back(static_cast<std::uint32_t>(at + 1));
  return out;
}

// Cooper, Harvey and Kennedy, on the graph turned round: each instruction's join is where the joins
// of its ways meet, until nothing changes.
void Control::find_joins() {
  std::vector<std::vector<std::uint32_t>> from(end_ + 1);
  for (std::uint32_t i = 0; i < end_; ++i)
    for (std::uint32_t to : ways(i)) from[to].push_back(i);
  // Backwards from the end, in postorder.
  std::vector<std::uint32_t> order, number(end_ + 1, unset);
  std::vector<std::pair<std::uint32_t, std::size_t>> open{{end_, 0}};
  std::vector<bool> seen(end_ + 1);
  seen[end_] = true;
  while (!open.empty()) {
    auto& [at, next] = open.back();
    if (next < from[at].size()) {
      const std::uint32_t before = from[at][next++];
      if (!seen[before]) seen[before] = true, open.emplace_back(before, 0);
      continue;
    }
    number[at] = static_cast<std::uint32_t>(order.size());
    order.push_back(at);
    open.pop_back();
  }
  join_.assign(end_ + 1, unset);
  join_[end_] = end_;
  auto meet = [&](std::uint32_t a, std::uint32_t b) {
    while (a != b) (number[a] < number[b] ? a : b) = join_[number[a] < number[b] ? a : b];
    return a;
  };
  for (bool changed = true; changed;) {
    changed = false;
    for (std::size_t i = order.size(); i-- > 0;) {
      const std::uint32_t at = order[i];
      if (at == end_) continue;
      std::uint32_t join = unset;
      for (std::uint32_t to : ways(at))
        if (join_[to] != unset) join = join == unset ? to : meet(join, to);
      if (join != unset && join != join_[at]) join_[at] = join, changed = true;
    }
  }
  good_ = std::none_of(join_.begin(), join_.end(), [](std::uint32_t j) { return j == unset; });
}

}  // namespace maya::decode::ptx
