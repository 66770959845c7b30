#include "collate/repetition.h"

#include <algorithm>

namespace maya::collate {
namespace {

// Z function: z[p] is the number of letters that agree between the sequence and its suffix at p.
std::vector<std::uint32_t> self_agreement(std::span<const std::uint32_t> s) {
  std::vector<std::uint32_t> z(s.size());
  std::size_t left = 0, right = 0;
  for (std::size_t i = 1; i < s.size(); ++i) {
    std::size_t n = i < right ? std::min<std::size_t>(right - i, z[i - left]) : 0;
    while (i + n < s.size() && s[n] == s[i + n]) ++n;
    z[i] = static_cast<std::uint32_t>(n);
    if (i + n > right) left = i, right = i + n;
  }
  return z;
}

// Matches as many repetitions as possible. The second and later iterations of a repeated part must
// have the same counts as the first, which are then already in `out`.
bool match(const std::vector<Repetition>& nesting, std::span<const std::uint32_t> letters,
           std::size_t& at, std::vector<Repetition>& out, bool again) {
  for (std::size_t i = 0; i < nesting.size(); ++i) {
    const Repetition& node = nesting[i];
    if (!again) out.push_back({node.letter, {}, 0});
    Repetition& found = out[i];
    std::uint64_t count = 0;
    for (; node.count > 1 ? !again || count < found.count : count < 1; ++count) {
      const std::size_t before = at;
      bool fits = false;
      if (node.body.empty()) {
        fits = at < letters.size() && letters[at] == node.letter;
        at += fits;
      } else {
        std::vector<Repetition> body;
        fits = count == 0 && !again ? match(node.body, letters, at, body, false)
                                    : match(node.body, letters, at, found.body, true);
        if (fits && count == 0 && !again) found.body = std::move(body);
        fits = fits && at > before;
      }
      if (!fits) {
        at = before;
        break;
      }
    }
    if (!again) found.count = count;
    if (count != found.count || (node.count == 1 && count != 1)) return false;
    if (count == 0 && !node.body.empty()) found.body = node.body;
  }
  return true;
}

std::uint64_t length_of(const std::vector<Repetition>& sequence) {
  std::uint64_t length = 0;
  for (const Repetition& r : sequence) length += r.count * (r.body.empty() ? 1 : length_of(r.body));
  return length;
}

void positions(const std::vector<Repetition>& model, const std::vector<Repetition>& wanted,
               std::uint64_t at, std::vector<std::uint32_t>& out) {
  for (std::size_t i = 0; i < model.size(); ++i) {
    const std::uint64_t unit = model[i].body.empty() ? 1 : length_of(model[i].body);
    const std::uint64_t have = model[i].count, want = wanted[i].count;
    for (std::uint64_t k = 0; k < want; ++k) {
      const std::uint64_t left = want - k;  // including this one
      std::uint64_t from = k < have / 2 ? k : left <= (have + 1) / 2 ? have - left : have / 2;
      from = std::min(from, have - 1);
      if (model[i].body.empty())
        out.push_back(static_cast<std::uint32_t>(at + from));
      else
        positions(model[i].body, wanted[i].body, at + from * unit, out);
    }
    at += have * unit;
  }
}

}  // namespace

std::vector<Repetition> repetitions_of(std::span<const std::uint32_t> letters) {
  std::vector<Repetition> result;
  while (!letters.empty()) {
    const auto z = self_agreement(letters);
    std::size_t period = 0, covered = 1;
    for (std::size_t p = 1; p <= letters.size() / 2; ++p)
      if (const std::size_t reach = (z[p] / p + 1) * p; z[p] >= p && reach > covered)
        period = p, covered = reach;
    Repetition next;
    if (period > 1)
      next.body = repetitions_of(letters.first(period));
    else
      next.letter = letters[0];
    if (period > 0) next.count = covered / period;
    result.push_back(std::move(next));
    letters = letters.subspan(covered);
  }
  return result;
}

std::optional<std::vector<Repetition>> counted(const std::vector<Repetition>& nesting,
                                               std::span<const std::uint32_t> letters) {
  std::vector<Repetition> result;
  std::size_t at = 0;
  if (!match(nesting, letters, at, result, false) || at != letters.size()) return std::nullopt;
  return result;
}

std::optional<std::vector<Repetition>> continued(const std::vector<Repetition>& a,
                                                 std::int64_t at_a,
                                                 const std::vector<Repetition>& b,
                                                 std::int64_t at_b, std::int64_t at) {
  if (a.size() != b.size() || at_a == at_b) return std::nullopt;
  std::vector<Repetition> result;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (a[i].letter != b[i].letter || a[i].body.empty() != b[i].body.empty()) return std::nullopt;
    const std::int64_t change =
        static_cast<std::int64_t>(b[i].count) - static_cast<std::int64_t>(a[i].count);
    if (change % (at_b - at_a) != 0) return std::nullopt;
    const std::int64_t count =
        static_cast<std::int64_t>(a[i].count) + change / (at_b - at_a) * (at - at_a);
    if (count < 0) return std::nullopt;
    Repetition next{a[i].letter, {}, static_cast<std::uint64_t>(count)};
    if (!a[i].body.empty()) {
      auto body = continued(a[i].body, at_a, b[i].body, at_b, at);
      if (!body) return std::nullopt;
      next.body = std::move(*body);
    }
    result.push_back(std::move(next));
  }
  return result;
}

std::vector<std::uint32_t> positions_in(const std::vector<Repetition>& model,
                                        const std::vector<Repetition>& wanted) {
  std::vector<std::uint32_t> result;
  positions(model, wanted, 0, result);
  return result;
}

}  // namespace maya::collate
