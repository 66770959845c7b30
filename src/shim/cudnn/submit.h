// Work that writes a number of ranges known only at run time.
#pragma once

#include <array>

#include "session/session.h"

namespace maya::shim::cudnn {

class Touches {
 public:
  // Beyond the eighth they are dropped: those ranges keep what is known of them.
  void add(session::Touch touch) {
    if (count_ < all_.size()) all_[count_++] = touch;
  }
  int submit(void* stream, const Work& work, const char* name) const {
    const auto& t = all_;
    switch (count_) {
      case 0:
        return session::submit(stream, work, name);
      case 1:
        return session::submit(stream, work, name, {t[0]});
      case 2:
        return session::submit(stream, work, name, {t[0], t[1]});
      case 3:
        return session::submit(stream, work, name, {t[0], t[1], t[2]});
      case 4:
        return session::submit(stream, work, name, {t[0], t[1], t[2], t[3]});
      case 5:
        return session::submit(stream, work, name, {t[0], t[1], t[2], t[3], t[4]});
      case 6:
        return session::submit(stream, work, name, {t[0], t[1], t[2], t[3], t[4], t[5]});
      case 7:
        return session::submit(stream, work, name, {t[0], t[1], t[2], t[3], t[4], t[5], t[6]});
      default:
        return session::submit(stream, work, name,
                               {t[0], t[1], t[2], t[3], t[4], t[5], t[6], t[7]});
    }
  }

 private:
  std::array<session::Touch, 8> all_{};
  std::size_t count_{};
};

}  // namespace maya::shim::cudnn
