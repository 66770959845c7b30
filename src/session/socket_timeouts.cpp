// SO_RCVTIMEO and SO_SNDTIMEO in virtual time: a call on a socket that has one waits for the socket
// as poll does, until the deadline, and then asks the kernel. The kernel keeps the setting; here is
// only noted which descriptors may have one, so that others cost nothing.
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <atomic>

#include "session/next.h"
#include "session/timespans.h"
#include "session/virtual_time.h"

namespace {

using namespace maya::session;

constinit const Next<int(int, int, int, const void*, socklen_t)> real_setsockopt("setsockopt");
constinit const Next<ssize_t(int, void*, size_t)> real_read("read");
constinit const Next<ssize_t(int, void*, size_t, int)> real_recv("recv");
constinit const Next<ssize_t(int, void*, size_t, int, sockaddr*, socklen_t*)> real_recvfrom(
    "recvfrom");
constinit const Next<ssize_t(int, msghdr*, int)> real_recvmsg("recvmsg");
constinit const Next<int(int, sockaddr*, socklen_t*)> real_accept("accept");
constinit const Next<int(int, sockaddr*, socklen_t*, int)> real_accept4("accept4");
constinit const Next<ssize_t(int, const void*, size_t, int)> real_send("send");
constinit const Next<ssize_t(int, const void*, size_t, int, const sockaddr*, socklen_t)>
    real_sendto("sendto");
constinit const Next<ssize_t(int, const msghdr*, int)> real_sendmsg("sendmsg");

constexpr int most = 1 << 16;
std::atomic<bool> timed[most];

bool may_be_timed(int descriptor) {
  return descriptor >= 0 && descriptor < most &&
         timed[descriptor].load(std::memory_order_relaxed) && in_virtual_time();
}

// Whether the caller may go on to the kernel. False: the time is over, errno says so.
bool ready(int descriptor, int option, int flags) {
  timeval limit{};
  socklen_t size = sizeof limit;
  const int before = errno;
  if (getsockopt(descriptor, SOL_SOCKET, option, &limit, &size) != 0) {
    timed[descriptor] = false;  // the number is another file's now
    errno = before;
    return true;
  }
  const std::int64_t ns = to_ns({limit.tv_sec, limit.tv_usec * 1000});
  if (ns == 0 || (flags & MSG_DONTWAIT) != 0 || (fcntl(descriptor, F_GETFL) & O_NONBLOCK) != 0)
    return true;
  pollfd one{descriptor, static_cast<short>(option == SO_RCVTIMEO ? POLLIN : POLLOUT), 0};
  const timespec span = to_timespec(ns);
  const int found = ppoll(&one, 1, &span, nullptr);  // in virtual time
  if (found == 0) errno = EAGAIN;
  return found > 0;
}

bool may_receive(int descriptor, int flags = 0) {
  return !may_be_timed(descriptor) || ready(descriptor, SO_RCVTIMEO, flags);
}
bool may_send(int descriptor, int flags) {
  return !may_be_timed(descriptor) || ready(descriptor, SO_SNDTIMEO, flags);
}

}  // namespace

MAYA_WRAPPER int setsockopt(int descriptor, int level, int option, const void* value,
                            socklen_t size) noexcept {
  if (level == SOL_SOCKET && (option == SO_RCVTIMEO || option == SO_SNDTIMEO) && descriptor >= 0 &&
      descriptor < most && time_domain != nullptr)
    timed[descriptor] = true;
  return real_setsockopt.get()(descriptor, level, option, value, size);
}

MAYA_WRAPPER ssize_t read(int descriptor, void* data, size_t bytes) {
  return may_receive(descriptor) ? real_read.get()(descriptor, data, bytes) : -1;
}

MAYA_WRAPPER ssize_t recv(int descriptor, void* data, size_t bytes, int flags) {
  return may_receive(descriptor, flags) ? real_recv.get()(descriptor, data, bytes, flags) : -1;
}

MAYA_WRAPPER ssize_t recvfrom(int descriptor, void* data, size_t bytes, int flags, sockaddr* from,
                              socklen_t* size) {
  if (!may_receive(descriptor, flags)) return -1;
  return real_recvfrom.get()(descriptor, data, bytes, flags, from, size);
}

MAYA_WRAPPER ssize_t recvmsg(int descriptor, msghdr* message, int flags) {
  return may_receive(descriptor, flags) ? real_recvmsg.get()(descriptor, message, flags) : -1;
}

MAYA_WRAPPER int accept(int descriptor, sockaddr* from, socklen_t* size) {
  if (!may_receive(descriptor)) return -1;
  const int made = real_accept.get()(descriptor, from, size);
  if (made >= 0 && made < most && may_be_timed(descriptor)) timed[made] = true;  // it inherits
  return made;
}

MAYA_WRAPPER int accept4(int descriptor, sockaddr* from, socklen_t* size, int flags) {
  if (!may_receive(descriptor)) return -1;
  const int made = real_accept4.get()(descriptor, from, size, flags);
  if (made >= 0 && made < most && may_be_timed(descriptor)) timed[made] = true;
  return made;
}

MAYA_WRAPPER ssize_t send(int descriptor, const void* data, size_t bytes, int flags) {
  return may_send(descriptor, flags) ? real_send.get()(descriptor, data, bytes, flags) : -1;
}

MAYA_WRAPPER ssize_t sendto(int descriptor, const void* data, size_t bytes, int flags,
                            const sockaddr* to, socklen_t size) {
  if (!may_send(descriptor, flags)) return -1;
  return real_sendto.get()(descriptor, data, bytes, flags, to, size);
}

MAYA_WRAPPER ssize_t sendmsg(int descriptor, const msghdr* message, int flags) {
  return may_send(descriptor, flags) ? real_sendmsg.get()(descriptor, message, flags) : -1;
}
