#include "network/environment.h"

#include <strings.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <sstream>

#include "network/variables.h"

namespace maya::network {
namespace {

// Names as NCCL spells them, in the order of our enums.
constexpr std::array<const char*, 5> kFunctions{"AllReduce", "AllGather", "ReduceScatter",
                                                "Broadcast", "Reduce"};
constexpr std::array<const char*, kAlgorithms> kAlgorithmWords{
    "Tree", "Ring", "CollnetDirect", "CollnetChain", "NVLS", "NVLSTree", "PAT"};
constexpr std::array<const char*, kProtocols> kProtocolWords{"LL", "LL128", "Simple"};

std::vector<std::string> split(const std::string& text, char by) {
  std::vector<std::string> parts;
  std::istringstream in(text);
  for (std::string part; std::getline(in, part, by);) parts.push_back(part);
  return parts;
}

// Parses NCCL's syntax ("ring,tree;allreduce:^nvls"). Returns the word that is wrong, or an empty
// string.
template <std::size_t N>
std::string parse_list(const std::string& text, const std::array<const char*, N>& words,
                       std::array<std::array<bool, N>, 5>& enabled) {
  for (const std::string& part : split(text, ';')) {
    auto colon = part.find(':');
    std::string function = colon == std::string::npos ? "" : part.substr(0, colon);
    std::string list = colon == std::string::npos ? part : part.substr(colon + 1);
    bool value = true;
    if (list.starts_with('^')) value = false, list.erase(0, 1);
    bool found = false;
    for (std::size_t f = 0; f < kFunctions.size(); ++f) {
      if (!function.empty() && strcasecmp(function.c_str(), kFunctions[f]) != 0) continue;
      found = true;
      enabled[f].fill(!value);
      for (const std::string& word : split(list, ',')) {
        auto at = std::find_if(words.begin(), words.end(),
                               [&](const char* w) { return strcasecmp(w, word.c_str()) == 0; });
        if (at == words.end()) return word;
        enabled[f][static_cast<std::size_t>(at - words.begin())] = value;
      }
    }
    if (!found) return function;
  }
  return "";
}

std::optional<int> number(const std::string& text) {
  int v{};
  auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), v);
  if (code != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return v;
}

int version_of(const std::string& text) {
  int parts[3]{};
  std::size_t i = 0;
  for (const std::string& part : split(text.substr(0, text.find_first_of("-+")), '.'))
    if (auto v = number(part); v && i < 3) parts[i++] = *v;
  return parts[0] * 10000 + parts[1] * 100 + parts[2];
}

}  // namespace

Environment environment_of(const std::map<std::string, std::string>& variables) {
  Environment e;
  for (auto& row : e.algorithm) row.fill(true);
  for (auto& row : e.protocol) row.fill(true);
  for (const auto& entry : variables) {
    const auto& variable = entry.first;
    const auto& value = entry.second;
    if (!variable.starts_with("NCCL_")) continue;
    std::string name = variable.substr(5);
    auto refuse = [&](const std::string& why) {
      e.notes.push_back(variable + "=" + value + ": " + why);
    };
    auto whole = [&](int& to, int least) {
      auto v = number(value);
      if (!v || *v < least)
        refuse("expected a whole number of at least " + std::to_string(least) + "; not used");
      else
        to = *v;
    };
    auto flag = [&](bool& to, bool inverted = false) {
      int v = -1;
      whole(v, 0);
      if (v >= 0) to = (v != 0) != inverted;
    };
    if (name == "ALGO") {
      auto copy = e.algorithm;
      if (auto bad = parse_list(value, kAlgorithmWords, copy); bad.empty())
        e.algorithm = copy;
      else
        refuse("'" + bad +
               "' is not an algorithm or function of NCCL (Ring, Tree, CollnetDirect, " +
               "CollnetChain, NVLS, NVLSTree, PAT); not used");
    } else if (name == "PROTO") {
      auto copy = e.protocol;
      if (auto bad = parse_list(value, kProtocolWords, copy); bad.empty()) {
        e.protocol = copy;
        e.ll128_forced =
            value.find("128") != std::string::npos && value.find('^') == std::string::npos;
      } else {
        refuse("'" + bad + "' is not a protocol or function of NCCL (LL, LL128, Simple); not used");
      }
    } else if (name == "MAX_NCHANNELS" || name == "MAX_CTAS" || name == "MAX_NRINGS") {
      whole(e.most_channels, 1);
    } else if (name == "MIN_NCHANNELS" || name == "MIN_CTAS" || name == "MIN_NRINGS") {
      whole(e.least_channels, 1);
    } else if (name == "NVLS_ENABLE") {
      flag(e.nvls);
    } else if (name == "COLLNET_ENABLE") {
      flag(e.collnet);
    } else if (name == "PAT_ENABLE") {
      flag(e.pat);
    } else if (name == "P2P_DISABLE") {
      flag(e.p2p, true);
    } else if (name == "P2P_LEVEL") {
      if (value == "LOC" || value == "0") e.p2p = false;
    } else if (name == "NET_GDR_LEVEL") {
      if (value == "LOC" || value == "0") e.gpu_direct = false;
    } else if (name == "NET_OVERHEAD") {
      int ns = -1;
      whole(ns, 0);
      if (ns >= 0) e.net_overhead_us = ns * 1e-3;
    } else if (name == "IB_DISABLE") {
      if (value != "0")
        refuse("cards used through sockets are not modelled; describe them in a cluster file");
    } else if (name == "VERSION") {
      if (int v = version_of(value); v > 0) e.version = v;
    } else if (use_of(variable) == VariableUse::not_modelled) {
      e.notes.push_back(
          variable + "=" + value +
          ": its effect on NCCL's speed is not modelled; the prediction assumes NCCL's "
          "default");
    } else if (use_of(variable) == VariableUse::unknown) {
      e.notes.push_back(variable + ": unknown to the network model; the prediction ignores it");
    }
  }
  if (e.least_channels > e.most_channels) e.least_channels = e.most_channels;
  return e;
}

}  // namespace maya::network
