#include "session/testing/device.h"

namespace maya::session {

bool be_on_device() {
  static const bool there = shim::pretend("h100-sxm", MAYA_SOURCE_DIR "/catalog");
  return there && touch() == code::success;
}

}  // namespace maya::session
