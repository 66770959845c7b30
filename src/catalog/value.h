// A value from a file or from --set, and its conversion to a typed field with a unit.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>

#include "catalog/each.h"

namespace maya::catalog {

using Value = std::variant<double, bool, std::string>;

// Converts text of --set ("true", "1.5", "400 Gb/s") to the type that it would have in TOML.
Value value_of_text(std::string_view text);

// Returns an empty string on success, else what was expected: "a bandwidth in GB/s such as 900, …".
std::string assign(std::string& to, const Value& value, Unit unit);
std::string assign(bool& to, const Value& value, Unit unit);
std::string assign(int& to, const Value& value, Unit unit);
std::string assign(std::int64_t& to, const Value& value, Unit unit);
std::string assign(double& to, const Value& value, Unit unit);

std::string describe(const Value& value);

}  // namespace maya::catalog
