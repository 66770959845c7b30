// A value as a file or --set gives it, and its way into a typed field with a unit.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>

#include "catalog/each.h"

namespace maya::catalog {

using Value = std::variant<double, bool, std::string>;

// "true", "1.5", "400 Gb/s": what --set wrote, in the type TOML would have given it.
Value value_of_text(std::string_view text);

// Empty on success, else what was expected: "a bandwidth in GB/s such as 900, …".
std::string assign(std::string& to, const Value& value, Unit unit);
std::string assign(bool& to, const Value& value, Unit unit);
std::string assign(int& to, const Value& value, Unit unit);
std::string assign(std::int64_t& to, const Value& value, Unit unit);
std::string assign(double& to, const Value& value, Unit unit);

std::string describe(const Value& value);

}  // namespace maya::catalog
