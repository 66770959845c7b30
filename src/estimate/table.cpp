#include "estimate/table.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <istream>
#include <ostream>
#include <sstream>

#include "estimate/chip.h"
#include "estimate/question.h"
#include "estimate/vocabulary.h"

namespace maya::estimate {
namespace {

std::string lower(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(),
                 [](unsigned char c) { return std::tolower(c); });
  return out;
}

std::string number(double value) {
  char text[40];
  std::snprintf(text, sizeof text, "%.6g", value);
  return text;
}

// One record of RFC 4180: quotes, doubled quotes, line ends inside quotes.
bool read_record(std::istream& in, std::vector<std::string>& cells) {
  cells.clear();
  std::string cell;
  bool quoted = false, any = false;
  for (int c = in.get(); c != std::istream::traits_type::eof(); c = in.get()) {
    any = true;
    if (quoted) {
      if (c != '"')
        cell.push_back(static_cast<char>(c));
      else if (in.peek() == '"')
        cell.push_back(static_cast<char>(in.get()));
      else
        quoted = false;
    } else if (c == '"') {
      quoted = true;
    } else if (c == ',') {
      cells.push_back(std::move(cell)), cell.clear();
    } else if (c == '\n') {
      break;
    } else if (c != '\r') {
      cell.push_back(static_cast<char>(c));
    }
  }
  if (any) cells.push_back(std::move(cell));
  return any;
}

std::string quote(const std::string& cell) {
  if (cell.find_first_of(",\"\n\r") == cell.npos) return cell;
  std::string out = "\"";
  for (char c : cell) out.append(c == '"' ? "\"\"" : std::string(1, c));
  return out + "\"";
}

// The factor that makes microseconds of a measured column; 0: not one.
double measured_unit(const std::string& header) {
  if (header == "predicted_us" || header == "low_us" || header == "high_us") return 0;
  static constexpr std::string_view stems[] = {
      "measured", "latency", "time", "duration", "median", "dur", "actual", "kernel", "elapsed"};
  for (std::string_view stem : stems) {
    if (!header.starts_with(stem)) continue;
    if (header.ends_with("_us")) return 1;
    if (header.ends_with("_ms")) return 1e3;
    if (header.ends_with("_ns")) return 1e-3;
  }
  return 0;
}

// A measurement that beats the hardware or is a thousand times off has the wrong unit.
std::string implausible(const Op& op, const Chip& chip, double measured_us, double predicted_us) {
  if (!(measured_us > 0)) return "measured time is not positive";
  const double ns = measured_us * 1e3;
  const double rate = flops(op.work) / ns / chip.rate(compute_type(op.work));
  const bool winograd = std::holds_alternative<Convolution>(op.work);
  if (rate > (winograd ? 3.5 : 1.15))
    return "measured " + number(rate) +
           " times the peak arithmetic rate: check the unit of the time";
  // Of experts only those are read that get a token; which is not in the work.
  const double moved = scheme_of(op).experts ? 0 : bytes_moved(op.work);
  const double stream = (moved - chip.l2_bytes) / ns / chip.dram;
  if (stream > 1.3)
    return "measured " + number(stream) + " times the memory bandwidth: check the unit of the time";
  if (measured_us > 300 * predicted_us && measured_us > 1000)
    return "measured " + number(measured_us / predicted_us) +
           " times the prediction: check the unit of the time";
  return "";
}

}  // namespace

Result<Op> parse_op(const std::vector<std::string>& arguments) {
  // An op may also come as one argument: "gemm m=1 n=2 k=3".
  std::vector<std::string> words;
  for (const std::string& argument : arguments) {
    std::istringstream text(argument);
    for (std::string word; text >> word;) words.push_back(word);
  }
  if (words.empty()) return Error{"name an op; see `maya estimate --help`"};
  Keys keys;
  for (std::size_t i = 1; i < words.size(); ++i) {
    auto equals = words[i].find('=');
    if (equals == std::string::npos || equals == 0)
      return Error{words[0] + ": expected key=value, found '" + words[i] + "'"};
    if (!keys.emplace(lower(std::string_view(words[i]).substr(0, equals)),
                      words[i].substr(equals + 1))
             .second)
      return Error{words[0] + ": key '" + words[i].substr(0, equals) + "' is given twice"};
  }
  return build_op(words[0], std::move(keys), true);
}

std::string help() {
  std::string out = "Ops and their keys (those in brackets may be left out):\n";
  for (const Word& word : vocabulary()) {
    out.append("\n  ").append(word.names).append("\n      ").append(word.meaning);
    out.append("\n      keys: ")
        .append(word.keys)
        .append("\n      e.g.  maya estimate ")
        .append(word.example);
    out.append(" --gpu h100-sxm\n");
  }
  out.append("\nEvery kind of a recording works too, with its own fields:\n");
  for (std::size_t i = 0; i < std::variant_size_v<Work>; ++i) {
    auto work = work_of_kind(kind_name(i));
    out.append("  ").append(kind_name(i)).append(":");
    std::visit(
        [&](const auto& w) {
          std::remove_cvref_t<decltype(w)>::each(
              w, [&](std::string_view key, const auto&) { out.append(" ").append(key); });
        },
        *work);
    out.append("\n");
  }
  out.append(
      "\nTypes: f64 f32 tf32 f16 bf16 fp8 … (dtype=tf32: f32 in memory, tensor-core rate). Sizes "
      "are elements,\n"
      "bytes= is bytes. f16 rms_norm, swiglu, rope and embedding are taken as an inference "
      "engine's kernels\n"
      "(provider=vllm); say provider=torch for the training framework's.\n");
  return out;
}

Answer answer(const Op& op, const catalog::Gpu& gpu, const Estimator& estimator) {
  Answer a;
  a.op = op;
  a.estimate = estimator(op);
  const Chip chip = make_chip(gpu);
  const double work = flops(op.work), moved = bytes_moved(op.work);
  if (a.estimate.ns > 0) {
    a.tflops = work / a.estimate.ns / 1e3;
    a.gbps = moved / a.estimate.ns;
    a.peak_share =
        std::max(work / chip.rate(compute_type(op.work)), moved / chip.dram) / a.estimate.ns;
  }
  if (std::holds_alternative<Collective>(op.work) || std::holds_alternative<PointToPoint>(op.work))
    a.warning = "communication depends on the cluster: see `maya net`";
  else if (a.estimate.ns > 60e9)
    a.warning = "takes more than a minute: check the sizes";
  else if (moved > 2.0 * static_cast<double>(gpu.memory_bytes) && gpu.memory_bytes > 0)
    a.warning = "touches more than twice the memory of " + gpu.name + ": check the sizes";
  return a;
}

std::string to_line(const Answer& a) {
  char text[200];
  auto us = [](double ns) { return ns / 1e3; };
  std::snprintf(text, sizeof text, "%.2f µs  [%.2f, %.2f]  %s", us(a.estimate.ns),
                us(a.estimate.low_ns), us(a.estimate.high_ns),
                std::string(name(a.estimate.origin)).c_str());
  std::string out = text;
  const bool arithmetic = flops(a.op.work) > 20 * bytes_moved(a.op.work);
  if (arithmetic)
    std::snprintf(text, sizeof text, "  %.1f TFLOP/s", a.tflops);
  else
    std::snprintf(text, sizeof text, "  %.0f GB/s", a.gbps);
  out += text;
  // Beyond the data sheet: Winograd's short cut does fewer multiplications than the definition
  // counts, and what is found in L2 does not come from DRAM.
  const char* than = a.peak_share <= 1 ? "of peak"
                     : arithmetic      ? "of peak, effective: fewer multiplications than counted"
                                       : "of DRAM's peak, effective: part is found in L2";
  std::snprintf(text, sizeof text, " (%.0f %% %s)", 100 * a.peak_share, than);
  return out + text;
}

Result<CsvSummary> estimate_csv(std::istream& in, std::ostream& out, std::string_view default_gpu,
                                const FindDevice& find) {
  std::vector<std::string> header, cells;
  if (!read_record(in, header))
    return Error{"the file is empty: expected a header line with a column 'op'"};
  if (!header[0].empty() && header[0].starts_with("\xEF\xBB\xBF")) header[0].erase(0, 3);
  std::vector<std::string> keys;
  int op_column = -1, gpu_column = -1, measured_column = -1;
  double unit = 0;
  for (std::size_t i = 0; i < header.size(); ++i) {
    keys.push_back(lower(header[i]));
    const int column = static_cast<int>(i);
    if (keys[i] == "op")
      op_column = column;
    else if (keys[i] == "gpu")
      gpu_column = column;
    else if (double u = measured_unit(keys[i]); u > 0 && measured_column < 0)
      measured_column = column, unit = u;
  }
  if (op_column < 0) {
    std::string found;
    for (const auto& h : header) found.append(found.empty() ? "" : ", ").append(h);
    return Error{"no column 'op'; found: " + found + ". Expected one op a row: op,m,n,k,dtype,…"};
  }
  for (const auto& h : header) out << quote(h) << ',';
  out << "predicted_us,low_us,high_us,origin,warning\n";

  CsvSummary summary;
  std::vector<double> errors;
  int covered = 0;
  while (read_record(in, cells)) {
    if (cells.size() == 1 && cells[0].empty()) continue;
    ++summary.rows;
    for (std::size_t i = 0; i < header.size(); ++i)
      out << quote(i < cells.size() ? cells[i] : "") << ',';
    std::string warning;
    auto give_up = [&](const std::string& why) {
      ++summary.failed;
      out << ",,,," << quote(why) << '\n';
    };
    if (cells.size() > header.size()) {
      give_up("the row has " + std::to_string(cells.size()) + " cells, the header " +
              std::to_string(header.size()));
      continue;
    }
    Keys values;
    for (std::size_t i = 0; i < cells.size(); ++i) {
      const int column = static_cast<int>(i);
      if (column == op_column || column == gpu_column || column == measured_column ||
          cells[i].empty())
        continue;
      values[keys[i]] = cells[i];
    }
    const std::string& kind = static_cast<std::size_t>(op_column) < cells.size()
                                  ? cells[static_cast<std::size_t>(op_column)]
                                  : "";
    auto op = build_op(kind, std::move(values), false);
    if (!op) {
      give_up(op.error().message);
      continue;
    }
    std::string_view gpu = default_gpu;
    if (gpu_column >= 0 && static_cast<std::size_t>(gpu_column) < cells.size() &&
        !cells[static_cast<std::size_t>(gpu_column)].empty())
      gpu = cells[static_cast<std::size_t>(gpu_column)];
    auto device = find(gpu);
    if (!device) {
      give_up(device.error().message);
      continue;
    }
    Answer a = answer(*op, device->gpu, *device->estimator);
    warning = a.warning;
    const double predicted = a.estimate.ns / 1e3;
    if (measured_column >= 0 && static_cast<std::size_t>(measured_column) < cells.size()) {
      const std::string& cell = cells[static_cast<std::size_t>(measured_column)];
      char* end = nullptr;
      const double measured = std::strtod(cell.c_str(), &end) * unit;
      if (end != cell.c_str()) {
        std::string odd = implausible(*op, make_chip(device->gpu), measured, predicted);
        if (!odd.empty()) {
          ++summary.flagged;
          warning = warning.empty() ? odd : warning + "; " + odd;
        } else if (predicted > 0) {
          errors.push_back(std::abs(predicted / measured - 1));
          covered += measured * 1e3 >= a.estimate.low_ns && measured * 1e3 <= a.estimate.high_ns;
        }
      }
    }
    out << number(predicted) << ',' << number(a.estimate.low_ns / 1e3) << ','
        << number(a.estimate.high_ns / 1e3) << ',' << name(a.estimate.origin) << ','
        << quote(warning) << '\n';
  }
  summary.compared = static_cast<int>(errors.size());
  if (!errors.empty()) {
    double sum = 0;
    for (double e : errors) sum += e;
    summary.mean_error = sum / static_cast<double>(errors.size());
    std::nth_element(errors.begin(),
                     errors.begin() + static_cast<std::ptrdiff_t>(errors.size() / 2), errors.end());
    summary.median_error = errors[errors.size() / 2];
    summary.covered = static_cast<double>(covered) / static_cast<double>(summary.compared);
  }
  return summary;
}

}  // namespace maya::estimate
