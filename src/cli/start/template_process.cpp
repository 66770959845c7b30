#include "template_process.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>

namespace maya::start {
namespace {

// FNV-1a hash of everything that a child inherits from the template and cannot change.
class Key {
 public:
  void add(std::string_view text) {
    for (const char c : text) add_byte(static_cast<unsigned char>(c));
    add_byte(0);
  }
  template <class T>
  void add_value(const T& value) {
    const auto* bytes = reinterpret_cast<const unsigned char*>(&value);
    for (std::size_t i = 0; i < sizeof value; ++i) add_byte(bytes[i]);
  }
  std::uint64_t value() const { return value_; }

 private:
  void add_byte(unsigned char byte) { value_ = (value_ ^ byte) * 0x100000001b3ULL; }
  std::uint64_t value_ = 0xcbf29ce484222325ULL;
};

bool named(std::string_view entry, std::string_view name) {
  return entry.size() > name.size() && entry[name.size()] == '=' &&
         entry.substr(0, name.size()) == name;
}

// Whether a variable identifies the process or the run. It is not part of the key, because a
// template is used for all processes.
bool is_place(std::string_view entry) {
  for (const char* name : {"MAYA_RUN_DIR", "MAYA_RANKS", "MAYA_PLACES", "MAYA_RANK_PROCESS",
                           "MAYA_START_MAIN", "MAYA_SEARCH_TRIAL"})
    if (named(entry, name)) return true;
  return false;
}

std::uint64_t key_of(const Program& program, char* const* words) {
  Key key;
  key.add(words[0]);
  for (const auto& option : program.options) key.add(option);
  for (char* const* entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    for (std::string_view prefix : {"LD_", "PYTHON", "MAYA_", "GLIBC_", "MALLOC_"})
      if (text.substr(0, prefix.size()) == prefix && !is_place(text)) key.add(text);
  }
  const mode_t mask = umask(0);
  umask(mask);
  key.add_value(mask);
  sigset_t blocked;
  sigprocmask(SIG_SETMASK, nullptr, &blocked);
  for (int number = 1; number < NSIG; ++number) {
    struct sigaction action {};
    const bool ignored = sigaction(number, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
    key.add_value(static_cast<char>(ignored + 2 * (sigismember(&blocked, number) == 1)));
  }
  for (int resource = 0; resource < RLIM_NLIMITS; ++resource) {
    rlimit limit{};
    getrlimit(static_cast<__rlimit_resource_t>(resource), &limit);
    key.add_value(limit.rlim_cur);
    key.add_value(limit.rlim_max);
  }
  cpu_set_t cores;
  CPU_ZERO(&cores);
  sched_getaffinity(0, sizeof cores, &cores);
  key.add_value(cores);
  key.add_value(getpriority(PRIO_PROCESS, 0));
  key.add_value(geteuid());
  key.add_value(getegid());
  return key.value();
}

int connect_to(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) return -1;
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  const int connection = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (connection < 0) return -1;
  if (connect(connection, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0)
    return connection;
  close(connection);
  return -1;
}

// The file that stores, across jobs, the names of the modules that programs like this one import.
std::string modules_file(const Program& program, char* const* words, const std::string& path) {
  const char* cache = std::getenv("MAYA_CACHE_DIR");
  if (cache == nullptr) return path + ".modules";
  Key key;
  key.add(words[0]);
  key.add(words[program.target]);
  char* here = getcwd(nullptr, 0);
  if (here != nullptr && program.kind == Kind::script && words[program.target][0] != '/')
    key.add(here);
  std::free(here);
  char name[64];
  std::snprintf(name, sizeof name, "/modules-%016llx",
                static_cast<unsigned long long>(key.value()));
  return cache + std::string(name);
}

// Replaces this process by the template: without a terminal, and with this program's environment
// except for the variables of is_place().
[[noreturn]] void become_template(const std::string& path, const Program& program,
                                  char* const* words, int ready) {
  setsid();
  const int nothing = open("/dev/null", O_RDONLY);
  const int log = open((path + ".log").c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
  for (int fd : open_descriptors())
    if (fd > 2 && fd != ready && fd != nothing && fd != log) close(fd);
  dup2(nothing, 0), dup2(log, 1), dup2(log, 2);
  close(nothing), close(log);
  const std::string code = std::string(std::getenv("MAYA_LIB_DIR")) + "/start/template.py";
  const std::string socket_word = path + ".sock", ready_word = std::to_string(ready),
                    modules_word = modules_file(program, words, path);
  // Room for the arguments of children, which overwrite it so that `ps` shows the program.
  const std::string room(16384, ' ');
  std::vector<const char*> own{words[0]};
  for (const auto& option : program.options) own.push_back(option.c_str());
  for (const auto* word : {&code, &socket_word, &ready_word, &modules_word, &room})
    own.push_back(word->c_str());
  own.push_back(nullptr);
  std::vector<char*> environment;
  for (char** entry = environ; *entry != nullptr; ++entry)
    if (!is_place(*entry)) environment.push_back(*entry);
  environment.push_back(nullptr);
  execve(words[0], const_cast<char* const*>(own.data()), environment.data());
  _exit(127);
}

// Returns true if the template is listening.
bool start_template(const std::string& path, const Program& program, char* const* words) {
  int ends[2];
  if (std::getenv("MAYA_LIB_DIR") == nullptr || pipe(ends) != 0) return false;
  const pid_t middle = fork();
  if (middle == 0) {
    close(ends[0]);
    if (fork() == 0) become_template(path, program, words, ends[1]);
    _exit(0);
  }
  close(ends[1]);
  if (middle > 0) waitpid(middle, nullptr, 0);
  char listening = 0;
  const bool read_one = middle > 0 && read_whole(ends[0], &listening, 1);
  close(ends[0]);
  return read_one;
}

}  // namespace

int connect_to_template(const char* directory, const Program& program, char* const* words,
                        int number) {
  char name[64];
  std::snprintf(name, sizeof name, "/%016llx-%d",
                static_cast<unsigned long long>(key_of(program, words)), number);
  const std::string path = directory + std::string(name);
  if (const int connection = connect_to(path + ".sock"); connection >= 0) return connection;
  // Only one process at a time starts it. A file `.off` means that it cannot be used, because a
  // module that it imports does not support fork.
  const int lock = open((path + ".lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (lock < 0) return -1;
  while (flock(lock, LOCK_EX) != 0 && errno == EINTR) {
  }
  int connection = connect_to(path + ".sock");
  if (connection < 0 && access((path + ".off").c_str(), F_OK) != 0) {
    unlink((path + ".sock").c_str());
    if (start_template(path, program, words)) connection = connect_to(path + ".sock");
    if (connection < 0) close(open((path + ".off").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
  }
  close(lock);
  return connection;
}

}  // namespace maya::start
