#include "launch/status_line.h"

#include <fmt/format.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <chrono>

namespace maya::launch {
namespace {

void put(int terminal, const std::string& text) {
  // In one piece, so that output of the command does not come in between.
  [[maybe_unused]] auto ignored = ::write(terminal, text.data(), text.size());
}

}  // namespace

std::string first_columns(const std::string& line, int columns) {
  std::size_t end = 0;
  for (int seen = 0; end < line.size(); ++end)
    if ((static_cast<unsigned char>(line[end]) & 0xc0) != 0x80 && seen++ == columns) break;
  return line.substr(0, end);
}

StatusLine::StatusLine(int terminal, std::function<std::string()> text)
    : terminal_(terminal), text_(std::move(text)) {
  // Signals go to the thread that supervises the command. The command is in the foreground of the
  // terminal and this process is not: SIGTTOU would stop it.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  thread_ = std::thread([this] { show(); });
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

StatusLine::~StatusLine() {
  {
    std::lock_guard guard(mutex_);
    done_ = true;
  }
  wake_.notify_all();
  thread_.join();
}

void StatusLine::show() {
  using namespace std::chrono_literals;
  std::unique_lock lock(mutex_);
  for (auto pause = 2'000ms; !wake_.wait_for(lock, pause, [this] { return done_; });
       pause = 1'000ms) {
    lock.unlock();
    const std::string text = text_();
    if (!text.empty()) draw(text);
    lock.lock();
  }
  erase();
}

void StatusLine::draw(const std::string& text) {
  winsize size{};
  constexpr int fewest_rows = 3;
  if (ioctl(terminal_, TIOCGWINSZ, &size) != 0 || size.ws_row < fewest_rows || size.ws_col == 0)
    return;
  std::string out;
  if (size.ws_row != rows_) {
    // Make room; the cursor stays where it is.
    rows_ = size.ws_row;
    out += fmt::format("\n\0337\033[1;{}r\0338\033[1A", rows_ - 1);
  }
  out += fmt::format("\0337\033[{};1H\033[2K{}\0338", rows_, first_columns(text, size.ws_col - 1));
  put(terminal_, out);
}

void StatusLine::erase() {
  if (rows_ == 0) return;
  put(terminal_, fmt::format("\0337\033[{0};1H\033[2K\033[r\0338", rows_));
}

}  // namespace maya::launch
