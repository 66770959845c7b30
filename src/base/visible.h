// Text that came from a file or another process, made safe to print.
//
// A recording, a cluster file or a script name may hold escape sequences that move the cursor, set
// the window's title or hide lines. Printed through here they are seen and not executed.
#pragma once

#include <string>
#include <string_view>

namespace maya::base {

// One line of valid UTF-8. Control characters (C0, C1, DEL) become \n, \t, \r, \e or \xNN, bytes
// that are no UTF-8 become \xNN, and characters that change the direction of text or are invisible
// become \u{NNNN}.
std::string visible(std::string_view text);

// The same for text of several lines: line feeds stay.
std::string visible_lines(std::string_view text);

}  // namespace maya::base
