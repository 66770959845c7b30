// Removes credentials from command lines before they are stored or shown.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace maya::base {

inline constexpr std::string_view mask = "***";

// Replaces credentials in the words of a command by ***. Credentials are: values of names that end
// in key, token, secret, password or auth (--token X, --api-key=X, HF_TOKEN=X, token="X"),
// passwords in URLs, and long strings that look random. Words that contain a whole command
// (`bash -c "…"`) are searched too.
std::vector<std::string> without_secrets(const std::vector<std::string>& words);

// The same for a command in one string.
std::string without_secrets(std::string_view command);

// Whether a variable or option of this name holds a credential.
bool names_a_secret(std::string_view name);

}  // namespace maya::base
