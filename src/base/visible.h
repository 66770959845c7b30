// Makes text from files and other processes safe to print.
//
// A recording, a cluster file or the name of a script may contain escape sequences that move the
// cursor, set the title of the window or hide lines. visible() replaces them by printable text.
#pragma once

#include <string>
#include <string_view>

namespace maya::base {

// Returns one line of valid UTF-8. Control characters (C0, C1, DEL) become \n, \t, \r, \e or \xNN,
// bytes that are not UTF-8 become \xNN, and characters that are invisible or change the direction
// of text become \u{NNNN}.
std::string visible(std::string_view text);

// The same for several lines of text: line feeds are kept.
std::string visible_lines(std::string_view text);

}  // namespace maya::base
