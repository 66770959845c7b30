// maya-start runs in place of a rank's Python interpreter. It asks a template (template.py), a
// Python process that has already imported torch, to fork a child that becomes the program. Then it
// forwards signals to the child and ends with the child's exit code. A program whose start cannot
// be reproduced exactly by a fork is started with exec: its arguments and environment are those of
// this process, and words[0] is the interpreter.
//
// Linked statically, so that the program's LD_PRELOAD is not loaded here.
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>

#include "request.h"
#include "template_process.h"

namespace {

using namespace maya::start;

sigset_t mask_before;

[[noreturn]] void start_plainly(char** words) {
  sigprocmask(SIG_SETMASK, &mask_before, nullptr);
  execve(words[0], words, environ);
  const int code = errno;
  dprintf(STDERR_FILENO, "maya: cannot run %s: %s\n", words[0], std::strerror(code));
  _exit(127);
}

// Forwards a signal to the child, which is in a process group of its own. Signals of a terminal are
// for the whole group, and so are signals to the leader of a session: launchers that give each rank
// its own session end it with killpg.
void pass_on(int signal, pid_t child) {
  const bool to_group = signal == SIGINT || signal == SIGQUIT || signal == SIGHUP ||
                        signal == SIGTSTP || signal == SIGCONT || getsid(0) == getpid();
  kill(to_group ? -child : child, signal);
}

[[noreturn]] void end_like(int status) {
  if (WIFSIGNALED(status)) {
    rlimit none{0, 0};  // the child has already written the core dump
    setrlimit(RLIMIT_CORE, &none);
    const int number = WTERMSIG(status);
    signal(number, SIG_DFL);
    sigset_t one;
    sigemptyset(&one);
    sigaddset(&one, number);
    raise(number);
    sigprocmask(SIG_UNBLOCK, &one, nullptr);
    _exit(128 + number);
  }
  _exit(WEXITSTATUS(status));
}

[[noreturn]] void accompany(int connection, int signals, pid_t child) {
  // Close the program's pipes and files, which only the child uses now: their readers wait until
  // the last writer has closed them.
  for (int fd : open_descriptors())
    if (fd != connection && fd != signals) close(fd);
  pollfd watched[2] = {{connection, POLLIN, 0}, {signals, POLLIN, 0}};
  while (true) {
    if (poll(watched, 2, -1) < 0 && errno != EINTR) _exit(1);
    if (watched[1].revents & POLLIN) {
      signalfd_siginfo info;
      if (read(signals, &info, sizeof info) == static_cast<ssize_t>(sizeof info))
        pass_on(static_cast<int>(info.ssi_signo), child);
    }
    if (watched[0].revents != 0) {
      int status = 0;
      if (read_whole(connection, &status, sizeof status)) end_like(status);
      end_like(SIGKILL);  // the template has ended, and the child with it
    }
  }
}

bool has_terminal() {
  const int terminal = open("/dev/tty", O_RDWR | O_CLOEXEC | O_NOCTTY);
  if (terminal >= 0) close(terminal);
  return terminal >= 0;
}

}  // namespace

int main(int, char** words) {
  sigset_t all;
  sigfillset(&all);
  sigprocmask(SIG_SETMASK, nullptr, &mask_before);
  const Program program = parse_words(words);
  const char* directory = std::getenv("MAYA_START_DIR");
  if (directory == nullptr || !program.reproducible || has_terminal()) start_plainly(words);
  const auto descriptors = open_descriptors();

  sigset_t forwarded = all;
  for (int own : {SIGCHLD, SIGURG, SIGWINCH, SIGPIPE, SIGTTIN, SIGTTOU, SIGSEGV, SIGBUS, SIGFPE,
                  SIGILL, SIGABRT, SIGTRAP})
    sigdelset(&forwarded, own);
  // This may start a template, which inherits the original signal mask of this process.
  for (int number = 0; number < most_templates; ++number) {
    const int connection = connect_to_template(directory, program, words, number);
    if (connection < 0) break;
    sigprocmask(SIG_BLOCK, &forwarded, nullptr);
    Answer answer{};
    if (send_request(connection, program, words, descriptors) &&
        read_whole(connection, &answer, sizeof answer) && answer.verdict == Verdict::started) {
      const int signals = signalfd(-1, &forwarded, SFD_CLOEXEC);
      if (signals >= 0) accompany(connection, signals, answer.child);
      kill(answer.child, SIGKILL);
    }
    sigprocmask(SIG_SETMASK, &mask_before, nullptr);
    close(connection);
    if (answer.verdict != Verdict::other_environment) break;
  }
  start_plainly(words);
}
