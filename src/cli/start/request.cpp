#include "request.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <string_view>

namespace maya::start {
namespace {

bool starts_with(std::string_view text, std::string_view start) {
  return text.substr(0, start.size()) == start;
}

// Whether the program should be forked. Ranks and their launchers import torch. Other Python
// programs of a job (a helper of a start script, a worker of a compiler) may not need it and are
// started normally.
bool worth_it(const Program& program, char* const* words) {
  const std::string_view target = words[program.target];
  if (program.kind == Kind::code)
    return starts_with(target, "from multiprocessing.spawn import spawn_main");
  if (std::getenv("MAYA_START_MAIN") != nullptr) return true;
  if (program.kind == Kind::module)
    return std::getenv("RANK") != nullptr || starts_with(target, "torch.distributed.") ||
           starts_with(target, "accelerate.");
  const std::size_t slash = target.rfind('/');
  const std::string_view name = slash == target.npos ? target : target.substr(slash + 1);
  if (name == "torchrun" || name == "accelerate" || name == "deepspeed") return true;
  // A program that a rank starts (a worker of a compiler) inherits RANK, but is in a package.
  return std::getenv("RANK") != nullptr && target.find("/site-packages/") == target.npos;
}

void put(std::string& message, std::string_view text) {
  const auto size = static_cast<std::uint32_t>(text.size());
  message.append(reinterpret_cast<const char*>(&size), sizeof size);
  message.append(text);
}

void put(std::string& message, const std::vector<std::string_view>& texts) {
  const auto size = static_cast<std::uint32_t>(texts.size());
  message.append(reinterpret_cast<const char*>(&size), sizeof size);
  for (auto text : texts) put(message, text);
}

}  // namespace

Program parse_words(char* const* words) {
  Program program;
  int at = 1;
  for (; words[at] != nullptr; ++at) {
    const std::string_view word = words[at];
    if (word == "-m" || word == "-c") {
      program.kind = word == "-m" ? Kind::module : Kind::code;
      ++at;
      break;
    }
    if (word == "-X" || word == "-W") {
      if (words[at + 1] == nullptr) return program;
      program.options.emplace_back(word);
      program.options.emplace_back(words[++at]);
      continue;
    }
    if (word.empty() || word[0] != '-') {
      program.kind = Kind::script;
      break;
    }
    if (word.size() < 2 || word.find_first_not_of("uBOsSEIPb", 1) != word.npos) return program;
    program.options.emplace_back(word);
  }
  if (words[at] == nullptr) return program;
  program.target = at;
  program.reproducible = worth_it(program, words);
  return program;
}

std::vector<int> open_descriptors() {
  std::vector<int> found;
  DIR* directory = opendir("/proc/self/fd");
  if (directory == nullptr) return found;
  while (const dirent* entry = readdir(directory)) {
    const int fd = std::atoi(entry->d_name);
    if (entry->d_name[0] == '.' || fd == dirfd(directory)) continue;
    const int flags = fcntl(fd, F_GETFD);
    if (flags >= 0 && (flags & FD_CLOEXEC) == 0) found.push_back(fd);
  }
  closedir(directory);
  return found;
}

bool send_request(int connection, const Program& program, char* const* words,
                  const std::vector<int>& descriptors) {
  constexpr std::size_t most = 250;  // the kernel's limit of one message is 253
  if (descriptors.empty() || descriptors.size() > most) return false;
  char* directory = getcwd(nullptr, 0);
  if (directory == nullptr) return false;
  std::string body;
  const std::uint32_t head[] = {
      static_cast<std::uint32_t>(program.kind), static_cast<std::uint32_t>(program.target),
      static_cast<std::uint32_t>(getsid(0) == getpid()), static_cast<std::uint32_t>(getppid())};
  body.append(reinterpret_cast<const char*>(head), sizeof head);
  put(body, std::string_view(directory));
  std::free(directory);
  std::vector<std::string_view> texts;
  for (char* const* word = words; *word != nullptr; ++word) texts.emplace_back(*word);
  put(body, texts);
  texts.clear();
  for (char* const* entry = environ; *entry != nullptr; ++entry)
    if (!starts_with(*entry, "MAYA_START_MAIN=")) texts.emplace_back(*entry);
  put(body, texts);
  const auto count = static_cast<std::uint32_t>(descriptors.size());
  body.append(reinterpret_cast<const char*>(&count), sizeof count);
  body.append(reinterpret_cast<const char*>(descriptors.data()), sizeof(int) * descriptors.size());

  auto size = static_cast<std::uint32_t>(body.size());
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int) * most)] = {};
  iovec first{&size, sizeof size};
  msghdr message{};
  message.msg_iov = &first;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = CMSG_SPACE(sizeof(int) * descriptors.size());
  cmsghdr* header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof(int) * descriptors.size());
  std::memcpy(CMSG_DATA(header), descriptors.data(), sizeof(int) * descriptors.size());
  if (sendmsg(connection, &message, MSG_NOSIGNAL) != static_cast<ssize_t>(sizeof size))
    return false;
  for (std::size_t sent = 0; sent < body.size();) {
    const ssize_t n = send(connection, body.data() + sent, body.size() - sent, MSG_NOSIGNAL);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    sent += static_cast<std::size_t>(n);
  }
  return true;
}

bool read_whole(int fd, void* to, std::size_t bytes) {
  auto* at = static_cast<char*>(to);
  while (bytes > 0) {
    const ssize_t n = read(fd, at, bytes);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    at += n;
    bytes -= static_cast<std::size_t>(n);
  }
  return true;
}

}  // namespace maya::start
