#include "query.h"

#include <fmt/format.h>

#include <ctime>
#include <functional>
#include <map>
#include <sstream>

namespace maya::nvidia_smi {

namespace {

struct Field {
  std::string unit;  // as in the header: "memory.total [MiB]"
  std::function<std::string(const Machine&, int)> value;
};

std::function<std::string(const Machine&, int)> fixed(std::string text) {
  return [text = std::move(text)](const Machine&, int) { return text; };
}

std::string whole(double value) { return fmt::format("{:.0f}", value); }

const std::map<std::string, Field, std::less<>>& fields() {
  auto gpu = [](auto of) {
    return [of](const Machine& machine, int) { return of(machine.cluster.gpu); };
  };
  static const std::map<std::string, Field, std::less<>> table = [gpu] {
    std::map<std::string, Field, std::less<>> t;
    t["index"] = {"", [](const Machine&, int i) { return std::to_string(i); }};
    t["count"] = {"",
                  [](const Machine& m, int) { return std::to_string(m.cluster.gpus_per_node); }};
    t["name"] = t["gpu_name"] = {"", gpu([](const catalog::Gpu& g) { return g.marketing; })};
    t["uuid"] = t["gpu_uuid"] = {"", [](const Machine& m, int i) { return uuid(m.cluster, i); }};
    t["pci.bus_id"] = t["gpu_bus_id"] = {"", [](const Machine&, int i) { return bus_id(i); }};
    t["driver_version"] = {"", fixed(driver_version())};
    t["compute_cap"] = {"", gpu([](const catalog::Gpu& g) {
                          return fmt::format("{}.{}", g.capability_major, g.capability_minor);
                        })};
    t["memory.total"] = {"MiB",
                         gpu([](const catalog::Gpu& g) { return std::to_string(total_mib(g)); })};
    auto now = [](auto of) {
      return [of](const Machine& machine, int i) {
        return of(machine.conditions[static_cast<std::size_t>(i)]);
      };
    };
    t["memory.free"] = {"MiB", [](const Machine& m, int i) {
                          const long used = m.conditions[static_cast<std::size_t>(i)].used_mib;
                          return std::to_string(total_mib(m.cluster.gpu) - used);
                        }};
    t["memory.used"] = {"MiB", now([](const Condition& c) { return std::to_string(c.used_mib); })};
    t["memory.reserved"] = {"MiB", fixed("0")};
    t["utilization.gpu"] = {"%", now([](const Condition& c) { return whole(100 * c.busy); })};
    t["utilization.memory"] = {"%", now([](const Condition& c) { return whole(100 * c.memory); })};
    t["power.limit"] = t["power.max_limit"] = t["power.default_limit"] =
        t["enforced.power.limit"] = {
            "W", gpu([](const catalog::Gpu& g) { return fmt::format("{:.2f}", g.tdp_watts); })};
    t["clocks.max.sm"] = t["clocks.max.graphics"] = t["clocks.max.gr"] = {
        "MHz", gpu([](const catalog::Gpu& g) { return whole(g.boost_clock_mhz); })};
    t["clocks.sm"] = t["clocks.gr"] = t["clocks.current.sm"] = t["clocks.current.graphics"] =
        t["clocks.max.sm"];
    t["clocks.max.memory"] = t["clocks.max.mem"] = t["clocks.mem"] = t["clocks.current.memory"] = {
        "MHz", gpu([](const catalog::Gpu& g) { return whole(g.memory_clock_mhz); })};
    t["pstate"] = {"", fixed("P0")};
    t["compute_mode"] = {"", fixed("Default")};
    t["persistence_mode"] = {"", fixed("Enabled")};
    t["display_active"] = t["display_mode"] = t["mig.mode.current"] =
        t["mig.mode.pending"] = {"", fixed("Disabled")};
    // The same values as in the emulated NVML.
    t["temperature.gpu"] = {"", now([](const Condition& c) { return whole(c.celsius); })};
    t["power.draw"] = t["power.draw.average"] = t["power.draw.instant"] = {
        "W", now([](const Condition& c) { return fmt::format("{:.2f}", c.watts); })};
    t["pcie.link.width.current"] = t["pcie.link.width.max"] = {"", fixed("16")};
    t["ecc.mode.current"] = t["ecc.mode.pending"] = {
        "", gpu([](const catalog::Gpu& g) { return std::string(g.ecc ? "Enabled" : "Disabled"); })};
    // Physical properties that an emulated GPU does not have.
    for (const char* name :
         {"temperature.memory", "fan.speed", "serial", "gpu_serial", "vbios_version",
          "pcie.link.gen.current", "pcie.link.gen.max", "accounting.mode", "addressing_mode",
          "board_id", "driver_model.current", "utilization.encoder", "utilization.decoder",
          "clocks.video", "clocks.current.video"}) {
      t[name] = {"", fixed("[N/A]")};
    }
    t["timestamp"] = {"", [](const Machine&, int) {
                        std::time_t now = std::time(nullptr);
                        std::tm parts{};
                        char text[32] = "";
                        if (localtime_r(&now, &parts) != nullptr)
                          std::strftime(text, sizeof text, "%Y/%m/%d %H:%M:%S.000", &parts);
                        return std::string(text);
                      }};
    return t;
  }();
  return table;
}

std::vector<std::string> split(std::string_view text) {
  std::vector<std::string> parts;
  std::istringstream stream{std::string(text)};
  for (std::string part; std::getline(stream, part, ',');) {
    auto begin = part.find_first_not_of(' ');
    if (begin == std::string::npos) continue;
    parts.push_back(part.substr(begin, part.find_last_not_of(' ') - begin + 1));
  }
  return parts;
}

// Families of fields that only a physical GPU has.
const Field* physical_field(std::string_view name) {
  static const Field none{"", fixed("[N/A]")};
  for (std::string_view family :
       {"ecc.errors.", "clocks_throttle_reasons.", "clocks_event_reasons.", "retired_pages.",
        "encoder.stats.", "inforom.", "gom.", "clocks.applications.",
        "clocks.default_applications.", "remapped_rows.", "gsp.mode.", "c2c.", "fabric."})
    if (name.starts_with(family)) return &none;
  return nullptr;
}

}  // namespace

Result<Format> parse_format(std::string_view text) {
  Format format;
  bool csv = false;
  for (const auto& word : split(text)) {
    if (word == "csv")
      csv = true;
    else if (word == "noheader")
      format.header = false;
    else if (word == "nounits")
      format.units = false;
    else
      return Error{fmt::format("\"{}\" is not a valid format option.", word)};
  }
  if (!csv) return Error{"\"--format\" must contain csv."};
  return format;
}

Result<std::string> query(const Machine& machine, std::string_view wanted, const Format& format) {
  std::vector<std::pair<std::string, const Field*>> columns;
  for (const auto& name : split(wanted)) {
    auto it = fields().find(name);
    const Field* field = it != fields().end() ? &it->second : physical_field(name);
    if (field == nullptr)
      return Error{fmt::format("Field \"{}\" is not a valid field to query.", name)};
    columns.emplace_back(name, field);
  }
  std::string out;
  auto line = [&](auto cell) {
    for (std::size_t i = 0; i < columns.size(); ++i) {
      out += (i ? ", " : "") + cell(columns[i].first, *columns[i].second);
    }
    out += '\n';
  };
  if (format.header) {
    line([&](const std::string& name, const Field& field) {
      return format.units && !field.unit.empty() ? fmt::format("{} [{}]", name, field.unit) : name;
    });
  }
  for (int gpu : machine.gpus) {
    line([&](const std::string&, const Field& field) {
      std::string value = field.value(machine, gpu);
      return format.units && !field.unit.empty() ? value + " " + field.unit : value;
    });
  }
  return out;
}

}  // namespace maya::nvidia_smi
