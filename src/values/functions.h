// The functions that semantics name ("add", "eq", "sum", …), on one or two numbers.
#pragma once

#include <optional>
#include <string>

#include "values/operand.h"

namespace maya::values {

// Nothing: no such function, or not defined there (a division by zero).
std::optional<Number> apply(const std::string& function, Number a);
std::optional<Number> apply(const std::string& function, Number a, Number b);

// "eq", "lt", … as a truth value; nothing for other functions.
std::optional<bool> compare(const std::string& function, Number a, Number b);

// One more element of a reduction or scan.
std::optional<Number> fold(const std::string& function, Number so_far, Number element);

}  // namespace maya::values
