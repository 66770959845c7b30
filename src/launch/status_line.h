// One line at the foot of the terminal while a command runs. The command's own output scrolls above
// it, as with apt: the last row is taken out of the region that scrolls.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

namespace maya::launch {

class StatusLine {
 public:
  // `text` is called about once a second, on a thread of its own, from two seconds on.
  StatusLine(int terminal, std::function<std::string()> text);
  ~StatusLine();
  StatusLine(const StatusLine&) = delete;
  StatusLine& operator=(const StatusLine&) = delete;

 private:
  void show();
  void draw(const std::string& text);
  void erase();

  int terminal_;
  std::function<std::string()> text_;
  int rows_{};  // of the terminal, while the line is there; 0: it is not
  std::mutex mutex_;
  std::condition_variable wake_;
  bool done_{};
  std::thread thread_;
};

// The first `columns` characters of a line of UTF-8.
std::string first_columns(const std::string& line, int columns);

}  // namespace maya::launch
