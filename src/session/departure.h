#pragma once

namespace maya::session {

// This process ends with this code.
void leave_with(int code);

}  // namespace maya::session
