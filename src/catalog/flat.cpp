#include "catalog/flat.h"

#include <charconv>
#include <type_traits>

#include "catalog/each.h"

namespace maya::catalog {
namespace {

std::string print(double v) {
  char buffer[40];
  return {buffer, std::to_chars(buffer, buffer + sizeof buffer, v).ptr};
}

template <class T>
std::string print_field(const T& v) {
  if constexpr (std::is_same_v<T, std::string>) {
    std::string line = v;
    for (char& c : line)
      if (c == '\n' || c == '\r') c = ' ';
    return line;
  } else if constexpr (std::is_same_v<T, double>) {
    return print(v);
  } else {
    return std::to_string(v);
  }
}

template <class T>
bool scan(std::string_view text, T& v) {
  if constexpr (std::is_same_v<T, std::string>) {
    v = text;
    return true;
  } else if constexpr (std::is_same_v<T, bool>) {
    v = text == "1";
    return text == "0" || text == "1";
  } else {
    auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), v);
    return code == std::errc{} && end == text.data() + text.size();
  }
}

struct Writer {
  std::string& out;
  std::string_view prefix;
  template <class T>
  void operator()(const char* key, const T& value, Unit) {
    out.append(prefix).append(key).append("=").append(print_field(value)).append("\n");
  }
};

struct Reader {
  std::string_view key, value;
  bool found = false, good = false;
  template <class T>
  void operator()(const char* name, T& member, Unit) {
    if (key != name) return;
    found = true;
    good = scan(value, member);
  }
};

}  // namespace

std::string to_flat(const Cluster& cluster) {
  std::string out;
  each_cluster(cluster, Writer{out, ""});
  each_gpu(cluster.gpu, Writer{out, "gpu."});
  for (const auto& [type, tflops] : cluster.gpu.peak_tflops)
    out.append("gpu.peak_tflops.").append(name(type)).append("=" + print(tflops) + "\n");
  each_host(cluster.host, Writer{out, "host."});
  for (const auto& [key, value] : cluster.extra)
    out.append("network.model." + key + "=" + print(value) + "\n");
  return out;
}

Result<Cluster> parse_flat(std::string_view text) {
  Cluster cluster;
  constexpr std::string_view kPeak = "gpu.peak_tflops.", kModel = "network.model.";
  for (int line = 1; !text.empty(); ++line) {
    auto end = text.find('\n');
    std::string_view row = text.substr(0, end);
    text = end == text.npos ? std::string_view{} : text.substr(end + 1);
    if (row.empty()) continue;
    auto bad = [&](const char* why) {
      return Error{"cluster file, line " + std::to_string(line) + ": " + why + ": '" +
                   std::string(row) + "'; it is written by `maya run`, start the run again"};
    };
    auto equals = row.find('=');
    if (equals == row.npos) return bad("expected key=value");
    Reader reader{row.substr(0, equals), row.substr(equals + 1)};
    if (reader.key.starts_with(kPeak)) {
      auto type = parse_dtype(reader.key.substr(kPeak.size()));
      double v{};
      if (!type || !scan(reader.value, v)) return bad("unknown type or bad number");
      cluster.gpu.peak_tflops[*type] = v;
      continue;
    }
    if (reader.key.starts_with(kModel)) {
      double v{};
      if (!scan(reader.value, v)) return bad("bad number");
      cluster.extra[std::string(reader.key.substr(kModel.size()))] = v;
      continue;
    }
    if (reader.key.starts_with("gpu.")) {
      reader.key.remove_prefix(4);
      each_gpu(cluster.gpu, reader);
    } else if (reader.key.starts_with("host.")) {
      reader.key.remove_prefix(5);
      each_host(cluster.host, reader);
    } else {
      each_cluster(cluster, reader);
    }
    if (!reader.found) return bad("unknown key");
    if (!reader.good) return bad("bad value");
  }
  return cluster;
}

}  // namespace maya::catalog
