#include "launch/supervise.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>

#include "launch/stop_after.h"

namespace maya::launch {

namespace {

std::vector<char*> pointers(const std::vector<std::string>& words) {
  std::vector<char*> result;
  for (const auto& word : words) result.push_back(const_cast<char*>(word.c_str()));
  result.push_back(nullptr);
  return result;
}

// Attributes of posix_spawn for every child: the signal mask of the caller and default handlers.
class Attributes {
 public:
  explicit Attributes(const sigset_t& mask) {
    posix_spawnattr_init(&attributes_);
    sigset_t all;
    sigfillset(&all);
    posix_spawnattr_setsigmask(&attributes_, &mask);
    posix_spawnattr_setsigdefault(&attributes_, &all);
    posix_spawnattr_setflags(&attributes_, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  }
  ~Attributes() { posix_spawnattr_destroy(&attributes_); }
  Attributes(const Attributes&) = delete;
  Attributes& operator=(const Attributes&) = delete;
  void set_group(pid_t group) {
    posix_spawnattr_setpgroup(&attributes_, group);
    posix_spawnattr_setflags(
        &attributes_, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
  }
  posix_spawnattr_t* get() { return &attributes_; }

 private:
  posix_spawnattr_t attributes_{};
};

int spawn(pid_t* pid, const Process& process, Attributes& attributes,
          const posix_spawn_file_actions_t* actions = nullptr) {
  auto environment = pointers(process.environment);
  auto words = pointers(process.words);
  int code = posix_spawn(pid, process.path.c_str(), actions, attributes.get(), words.data(),
                         environment.data());
  if (code == ENOEXEC) {  // a script without "#!" is run with sh, as shells do
    std::vector<std::string> with_shell{"sh", process.path};
    with_shell.insert(with_shell.end(), process.words.begin() + 1, process.words.end());
    words = pointers(with_shell);
    code = posix_spawn(pid, "/bin/sh", actions, attributes.get(), words.data(), environment.data());
  }
  return code;
}

// Sends the output of a process to a file, if one is named.
class Redirected {
 public:
  explicit Redirected(const std::string& file) : used_(!file.empty()) {
    if (!used_) return;
    posix_spawn_file_actions_init(&actions_);
    posix_spawn_file_actions_addopen(&actions_, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&actions_, STDOUT_FILENO, file.c_str(),
                                     O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW, 0600);
    posix_spawn_file_actions_adddup2(&actions_, STDOUT_FILENO, STDERR_FILENO);
  }
  ~Redirected() {
    if (used_) posix_spawn_file_actions_destroy(&actions_);
  }
  Redirected(const Redirected&) = delete;
  Redirected& operator=(const Redirected&) = delete;
  const posix_spawn_file_actions_t* actions() const { return used_ ? &actions_ : nullptr; }

 private:
  bool used_;
  posix_spawn_file_actions_t actions_{};
};

// Makes the commands' process group the foreground group of the terminal while it runs.
class Terminal {
 public:
  explicit Terminal(pid_t group) : group_(group) {
    if (isatty(STDIN_FILENO) && tcgetpgrp(STDIN_FILENO) == getpgrp()) owner_ = getpgrp();
    lend();
  }
  ~Terminal() { take_back(); }
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;
  void lend() { give(group_); }
  void take_back() { give(owner_); }

 private:
  void give(pid_t group) {
    if (owner_ <= 0) return;
    struct sigaction ignore {
    }, before{};
    ignore.sa_handler = SIG_IGN;
    sigaction(SIGTTOU, &ignore, &before);
    tcsetpgrp(STDIN_FILENO, group);
    sigaction(SIGTTOU, &before, nullptr);
  }
  pid_t group_;
  pid_t owner_{-1};
};

int exit_code(int status) {
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

// All descendants of this process. Orphans among them are its children (PR_SET_CHILD_SUBREAPER).
std::vector<pid_t> descendants() {
  std::multimap<pid_t, pid_t> children;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator("/proc", ignored)) {
    const pid_t pid = std::atoi(entry.path().filename().c_str());
    if (pid <= 0) continue;
    std::ifstream file(entry.path() / "stat");
    std::string text;
    std::getline(file, text);
    // "4711 (name, which may contain any character) S 4242 …"
    const auto end_of_name = text.rfind(") ");
    if (end_of_name == std::string::npos || text[end_of_name + 2] == 'Z') continue;
    // A template (cli/start/template.py) also forks programs of other runs. It ends with its owner,
    // and ends the programs of this run when their maya-start ends.
    if (text.find(" (maya-template) ") != std::string::npos) continue;
    children.emplace(std::atoi(text.c_str() + end_of_name + 4), pid);
  }
  std::vector<pid_t> found{getpid()};
  for (std::size_t i = 0; i < found.size(); ++i) {
    const auto [begin, end] = children.equal_range(found[i]);
    for (auto child = begin; child != end; ++child) found.push_back(child->second);
  }
  found.erase(found.begin());
  return found;
}

void signal_descendants(int number) {
  for (pid_t pid : descendants()) kill(pid, number);
}

// Ends the remaining processes of a stopped job: workers of data loaders, compilers, servers.
void end_descendants() {
  constexpr int rounds = 40, patience_rounds = 20;
  for (int round = 0; round < rounds; ++round) {
    while (waitpid(-1, nullptr, WNOHANG) > 0) {
    }
    if (descendants().empty()) return;
    if (round == 0) signal_descendants(SIGTERM);
    if (round >= patience_rounds) signal_descendants(SIGKILL);
    usleep(50'000);
  }
}

}  // namespace

Result<int> supervise(const std::vector<Process>& processes, const Patience& patience,
                      StopAfter* stop) {
  if (stop != nullptr || patience.enough) prctl(PR_SET_CHILD_SUBREAPER, 1);
  sigset_t watched, before;
  sigemptyset(&watched);
  for (int number : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGCHLD}) sigaddset(&watched, number);
  // Signals are blocked and read with sigtimedwait below, so there is no handler and no race.
  pthread_sigmask(SIG_BLOCK, &watched, &before);

  Attributes attributes(before);
  std::vector<pid_t> running;
  pid_t group = 0;
  for (const auto& process : processes) {
    attributes.set_group(group);
    pid_t pid = 0;
    const Redirected redirected(process.output);
    int code = spawn(&pid, process, attributes, redirected.actions());
    if (code != 0) {
      if (group) kill(-group, SIGTERM);
      for (pid_t started : running) waitpid(started, nullptr, 0);
      pthread_sigmask(SIG_SETMASK, &before, nullptr);
      return Error{fmt::format("cannot run {}: {}", process.path, std::strerror(code))};
    }
    if (!group) group = pid;
    running.push_back(pid);
  }

  using Clock = std::chrono::steady_clock;
  int result = 0;
  bool ending = false;  // we asked the commands to end
  bool stopped = false;
  bool enough = false;  // see Patience::enough
  Clock::time_point deadline = Clock::time_point::max(), last_call = deadline,
                    since_failed = deadline;
  auto after = [](double seconds) {
    return Clock::now() + std::chrono::milliseconds(static_cast<std::int64_t>(seconds * 1000));
  };
  {
    Terminal terminal(group);
    while (!running.empty()) {
      timespec pause{0, stop != nullptr ? 100'000'000 : 500'000'000};
      int number = sigtimedwait(&watched, nullptr, &pause);
      if (number > 0 && number != SIGCHLD && patience.interrupted) patience.interrupted();
      if (number == SIGTERM) {
        ending = true;
        for (pid_t pid : running) kill(pid, SIGTERM);
      } else if (number > 0 && number != SIGCHLD) {
        kill(-group, number);
      }
      int status = 0;
      while (pid_t pid = waitpid(-group, &status, WNOHANG | WUNTRACED)) {
        if (pid < 0) break;
        if (WIFSTOPPED(status)) {  // Ctrl-Z: this process stops and resumes with the job
          terminal.take_back();
          raise(SIGSTOP);
          terminal.lend();
          kill(-group, SIGCONT);
          continue;
        }
        if (std::erase(running, pid) == 0) continue;  // an orphan
        int code = exit_code(status);
        if (code != 0 && result == 0) {
          result = code;
          if (!stopped) deadline = after(patience.seconds_after_failure);
        }
      }
      if (stop != nullptr && !stopped && stop->advance()) {
        stopped = true;
        deadline = after(patience.seconds_after_stop);
      }
      if (!enough && patience.enough && patience.enough()) {
        enough = ending = true;
        for (pid_t pid : running) kill(pid, SIGTERM);
        last_call = after(5);
      }
      if (Clock::now() > last_call) {
        kill(-group, SIGKILL);
        last_call = Clock::time_point::max();
      }
      const bool failed = patience.rank_failed && patience.rank_failed();
      if (!failed) since_failed = Clock::time_point::max();
      if (failed && since_failed == Clock::time_point::max())
        since_failed = after(patience.seconds_after_failed_rank);
      if (Clock::now() > std::min(deadline, since_failed)) {
        if (stopped) {
          signal_descendants(ending ? SIGKILL : SIGTERM);
          deadline = after(patience.seconds_after_stop / 3);
        } else {
          for (pid_t pid : running) kill(pid, SIGTERM);
          deadline = since_failed = Clock::time_point::max();
          if (failed) kill(-group, SIGTERM);
        }
        ending = true;
      }
    }
  }
  if (stop != nullptr && stop->asked()) {
    end_descendants();
    ending = false;
    result = 0;
  } else if (enough) {
    end_descendants();  // a launcher that was killed may have left its ranks running
  }
  // A launcher may end without its workers, which would otherwise run for ever.
  if (ending) kill(-group, enough ? SIGKILL : SIGTERM);
  // Discard a signal that arrived after the last child ended: it was meant for the command.
  timespec none{};
  while (sigtimedwait(&watched, nullptr, &none) > 0) {
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return result;
}

Result<std::string> capture(const Process& process) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0)
    return Error{fmt::format("cannot make a pipe: {}", std::strerror(errno))};
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  sigset_t mask;
  pthread_sigmask(SIG_SETMASK, nullptr, &mask);
  Attributes attributes(mask);
  pid_t pid = 0;
  int code = spawn(&pid, process, attributes, &actions);
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
  if (code != 0) {
    close(ends[0]);
    return Error{fmt::format("cannot run {}: {}", process.path, std::strerror(code))};
  }
  std::string output;
  char buffer[4096];
  for (ssize_t n; (n = read(ends[0], buffer, sizeof buffer)) > 0 || (n < 0 && errno == EINTR);) {
    if (n > 0) output.append(buffer, static_cast<std::size_t>(n));
  }
  close(ends[0]);
  int status = 0;
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  if (exit_code(status) != 0) {
    return Error{fmt::format("{} ended with code {}", process.path, exit_code(status))};
  }
  return output;
}

}  // namespace maya::launch
