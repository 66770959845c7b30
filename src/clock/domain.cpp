#include "clock/domain.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <new>

#include "clock/system_call.h"

namespace maya::clock {
namespace {

constexpr std::uint64_t domain_magic = 0x314b434f4c43594dULL;
constexpr std::int64_t second = 1'000'000'000;

}  // namespace

struct Domain::Layout {
  Header header;
  alignas(64) Place places[most_threads];
  Member members[most_processes];
  BoardPage pages[most_boards];
  HostTimes host_times;
  DeviceLoad loads[most_devices];
};

Status Domain::create(const std::string& path, double scale) {
  const int file = ::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (file < 0) return Error{"cannot create " + path + " for the job's clock"};
  void* map = MAP_FAILED;
  // Sparse: only what is used takes room.
  if (ftruncate(file, sizeof(Layout)) == 0)
    map = mmap(nullptr, sizeof(Layout), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  ::close(file);
  if (map == MAP_FAILED) return Error{"cannot map " + path + " for the job's clock"};
  auto& header = static_cast<Layout*>(map)->header;
  header.scale = scale;
  // A hundredth of a second tells the rate of the counter to a few millionths.
  const std::int64_t begin = real_ns();
  const std::uint64_t ticks = __builtin_ia32_rdtsc();
  pause_ns(second / 50);
  const std::uint64_t passed = __builtin_ia32_rdtsc() - ticks;
  header.ns_per_tick = static_cast<double>(real_ns() - begin) / static_cast<double>(passed);
  for (int id = 0; id < 16; ++id) header.real_start[id] = real_ns(id);
  header.magic = domain_magic;
  munmap(map, sizeof(Layout));
  return {};
}

Domain* Domain::attach(const std::string& path) {
  const long file =
      system_call(SYS_openat, AT_FDCWD, reinterpret_cast<long>(path.c_str()), O_RDWR | O_CLOEXEC);
  if (file < 0) return nullptr;
  struct stat info {};
  void* map = MAP_FAILED;
  if (fstat(static_cast<int>(file), &info) == 0 &&
      info.st_size == static_cast<off_t>(sizeof(Layout)))
    map = mmap(nullptr, sizeof(Layout), PROT_READ | PROT_WRITE, MAP_SHARED, static_cast<int>(file),
               0);
  system_call(SYS_close, file);
  if (map == MAP_FAILED) return nullptr;
  auto* layout = static_cast<Layout*>(map);
  if (layout->header.magic != domain_magic) {
    munmap(map, sizeof(Layout));
    return nullptr;
  }
  auto* domain = new Domain;
  domain->header_ = &layout->header;
  domain->places_ = layout->places;
  domain->members_ = layout->members;
  domain->pages_ = layout->pages;
  domain->host_times_ = &layout->host_times;
  domain->loads_ = layout->loads;
  domain->scale_ = layout->header.scale;
  return domain;
}

double Domain::ns_per_tick() const { return header_->ns_per_tick; }
std::int64_t Domain::real_start(int clock) const {
  return header_->real_start[clock < 0 || clock > 15 ? 0 : clock];
}
std::int64_t Domain::now() const { return header_->now.load(std::memory_order_relaxed); }
std::uint32_t Domain::places() const { return std::min(header_->places.load(), most_threads); }
std::uint32_t Domain::members() const { return std::min(header_->members.load(), most_processes); }
std::uint32_t Domain::joins() const { return header_->joins.load(); }

void Domain::reached(std::int64_t time) {
  std::int64_t now = header_->now.load();
  while (now < time && !header_->now.compare_exchange_weak(now, time)) {
  }
}

namespace {

void raise_to(std::atomic<std::uint32_t>& word, std::uint32_t value) {
  std::uint32_t now = word.load();
  while (now < value && !word.compare_exchange_weak(now, value)) {
  }
}

}  // namespace

std::uint32_t Domain::member_of(std::int32_t process) {
  for (std::uint32_t i = 0; i < most_processes; ++i) {
    std::int32_t owner = members_[i].process.load();
    if (owner == process) return i;
    if (owner != 0) continue;
    if (members_[i].process.compare_exchange_strong(owner, process)) {
      members_[i].rank = -1;
      members_[i].latest = 0;
      members_[i].device = -1;
      members_[i].used_bytes = 0;
      members_[i].alarm_at = members_[i].alarm_every = 0;
      raise_to(header_->members, i + 1);
      return i;
    }
    if (owner == process) return i;
  }
  return most_processes - 1;
}

Place* Domain::join(std::int32_t process, std::int32_t thread, std::int64_t time) {
  for (std::uint32_t i = 0; i < most_threads; ++i) {
    Place& p = places_[i];
    State expected = State::free;
    // Not to be looked at until it is whole: a place without a thread is nobody's.
    if (p.state.load(std::memory_order_relaxed) != State::free || p.process.load() != 0) continue;
    std::int32_t nobody = 0;
    if (!p.process.compare_exchange_strong(nobody, process)) continue;
    p.thread = thread;
    p.time = time;
    p.deadline = 0;
    p.waits = Waits::on_word;
    p.member = member_of(process);
    p.state.compare_exchange_strong(expected, State::running);
    raise_to(header_->places, i + 1);
    ++header_->joins;
    return &p;
  }
  return nullptr;
}

void Domain::leave(Place& place) {
  place.state = State::free;
  place.process = 0;
}

void Domain::leave_others(const Place& place) {
  for (std::uint32_t i = 0; i < places(); ++i)
    if (&places_[i] != &place && places_[i].process.load() == place.process.load())
      leave(places_[i]);
}

Place* Domain::find(std::int32_t process, std::int32_t thread) {
  for (std::uint32_t i = 0; i < places(); ++i)
    if (places_[i].process.load() == process && places_[i].thread.load() == thread &&
        places_[i].state.load() != State::free)
      return &places_[i];
  return nullptr;
}

void Domain::ring() {
  header_->bell.fetch_add(1);
  futex_wake(header_->bell, 1);
}

void Domain::begin_wait(Place& place, std::int64_t now, std::int64_t deadline, Waits waits) {
  place.time.store(now, std::memory_order_relaxed);
  place.deadline.store(deadline, std::memory_order_relaxed);
  place.waits.store(waits, std::memory_order_relaxed);
  place.state.store(State::waiting);
  ring();
}

void Domain::acted(std::int64_t time) {
  std::int64_t before = header_->acted.load(std::memory_order_relaxed);
  while (before < time && !header_->acted.compare_exchange_weak(before, time)) {
  }
}

void Domain::end_wait(Place& place) {
  for (State state : {State::waiting, State::called})
    if (place.state.compare_exchange_strong(state, State::running)) return;
}

bool Domain::arbiter_lives() const { return real_ns() - header_->arbiter_beat.load() < 5 * second; }

bool Domain::sleep(Place& place, std::int64_t now, std::int64_t deadline, Waits waits) {
  if (deadline <= now) return true;
  const std::uint32_t word = place.word.load();
  begin_wait(place, now, deadline, waits);
  const std::int64_t began = real_ns();
  for (;;) {
    const long answer = futex_wait(place.word, word, second / 2);
    if (ended(place)) return true;
    if (answer == -EINTR) {
      end_wait(place);
      return place.time.load() >= deadline;
    }
    if (!arbiter_lives()) {  // in real time then
      const std::int64_t left = deadline - now - (real_ns() - began);
      if (left > 0) pause_ns(left);
      end_wait(place);
      place.time = deadline;
      reached(deadline);
      return true;
    }
  }
}

std::uint32_t Domain::news() const { return header_->news.load(); }

void Domain::await_news(std::uint32_t seen, std::int64_t ns) {
  ++header_->news_waiters;  // of one that is killed here, a wake too many
  futex_wait(header_->news, seen, ns);
  --header_->news_waiters;
}

void Domain::tell() {
  ++header_->news;
  if (header_->news_waiters.load() > 0) futex_wake(header_->news);
}

void Domain::count_arrival() {
  ++header_->arrivals;
  tell();
}

std::uint32_t Domain::arrivals() const { return header_->arrivals.load(); }

Domain::BoardPage* Domain::page(std::uint64_t key, bool make) const {
  if (key == 0) key = 1;
  for (std::uint32_t i = 0; i < most_boards; ++i) {
    BoardPage& page = pages_[(key + i) % most_boards];
    std::uint64_t held = page.key.load();
    if (held == key) return &page;
    if (held != 0) continue;
    if (!make) return nullptr;
    if (page.key.compare_exchange_strong(held, key) || held == key) return &page;
  }
  return nullptr;
}

void Domain::post(std::uint64_t key, std::uint32_t number, std::int64_t time) {
  BoardPage* page = this->page(key, true);
  if (page == nullptr) return;
  Entry& entry = page->entries[number % board_entries];
  if (entry.number.load(std::memory_order_relaxed) != number + 1) entry.number.store(0);
  entry.time.store(time);
  entry.number.store(number + 1);
  tell();
}

std::int64_t Domain::read(std::uint64_t key, std::uint32_t number) const {
  const BoardPage* page = this->page(key, false);
  if (page == nullptr) return -1;
  const Entry& entry = page->entries[number % board_entries];
  if (entry.number.load() != number + 1) return -1;
  const std::int64_t time = entry.time.load();
  return entry.number.load() == number + 1 ? time : -1;
}

}  // namespace maya::clock
