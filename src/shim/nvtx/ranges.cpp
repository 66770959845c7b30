// NVTX: markers and ranges of the program become marks and ranges of the recording.
//
// NVTX 3 is header-only: a program calls nothing here but loads the library that
// NVTX_INJECTION64_PATH names and lets it fill in a table of functions (InitializeInjectionNvtx2).
// NVTX 2 links libnvToolsExt.so.1. Both end in the same bodies.
#include <atomic>
#include <cstdint>
#include <cwchar>
#include <string>

#include "session/session.h"

namespace session = maya::session;

namespace {

// nvtxEventAttributes_t, version 2.
struct Event {
  std::uint16_t version, size;
  std::uint32_t category;
  std::int32_t color_type;
  std::uint32_t color;
  std::int32_t payload_type, reserved;
  std::uint64_t payload;
  std::int32_t message_type;
  const void* message;
};
static_assert(sizeof(Event) == 48);

constexpr std::int32_t kAscii = 1, kUnicode = 2, kRegistered = 3;

// A registered string is the text itself, kept for good: programs register a handful.
struct Registered {
  std::string text;
};

std::string narrow(const wchar_t* wide) {
  std::string text;
  for (; wide && *wide; ++wide) text += *wide < 128 ? static_cast<char>(*wide) : '?';
  return text;
}

std::string text_of(const Event* event) {
  if (!event || !event->message) return "";
  switch (event->message_type) {
    case kAscii:
      return static_cast<const char*>(event->message);
    case kUnicode:
      return narrow(static_cast<const wchar_t*>(event->message));
    case kRegistered:
      return static_cast<const Registered*>(event->message)->text;
    default:
      return "";
  }
}

int push(const char* name) {
  session::Call call;
  return session::range_push(name ? name : "");
}
int pop() {
  session::Call call;
  return session::range_pop();
}
void mark(const char* name) {
  session::Call call;
  session::mark(name ? name : "");
}

// Ranges with an identifier may end on another thread; the recording has no such thing, so the
// start is a mark.
std::uint64_t start(const char* name) {
  static std::atomic<std::uint64_t> next{1};
  mark(name);
  return next++;
}

}  // namespace

extern "C" {

void nvtxMarkA(const char* message) { mark(message); }
void nvtxMarkW(const wchar_t* message) { mark(narrow(message).c_str()); }
void nvtxMarkEx(const void* event) { mark(text_of(static_cast<const Event*>(event)).c_str()); }
std::uint64_t nvtxRangeStartA(const char* message) { return start(message); }
std::uint64_t nvtxRangeStartW(const wchar_t* message) { return start(narrow(message).c_str()); }
std::uint64_t nvtxRangeStartEx(const void* event) {
  return start(text_of(static_cast<const Event*>(event)).c_str());
}
void nvtxRangeEnd(std::uint64_t) {}
int nvtxRangePushA(const char* message) { return push(message); }
int nvtxRangePushW(const wchar_t* message) { return push(narrow(message).c_str()); }
int nvtxRangePushEx(const void* event) {
  return push(text_of(static_cast<const Event*>(event)).c_str());
}
int nvtxRangePop() { return pop(); }

// Domains: their ranges are recorded like all others.
void* nvtxDomainCreateA(const char*) {
  static int domain;
  return &domain;
}
void* nvtxDomainCreateW(const wchar_t*) { return nvtxDomainCreateA(nullptr); }
void nvtxDomainDestroy(void*) {}
void* nvtxDomainRegisterStringA(void*, const char* text) {
  return new Registered{text ? text : ""};
}
void* nvtxDomainRegisterStringW(void*, const wchar_t* text) { return new Registered{narrow(text)}; }
void nvtxDomainMarkEx(void*, const void* event) { nvtxMarkEx(event); }
std::uint64_t nvtxDomainRangeStartEx(void*, const void* event) { return nvtxRangeStartEx(event); }
void nvtxDomainRangeEnd(void*, std::uint64_t) {}
int nvtxDomainRangePushEx(void*, const void* event) { return nvtxRangePushEx(event); }
int nvtxDomainRangePop(void*) { return pop(); }

// The entry point of an NVTX 3 injection library: returns 1 when the functions were put into the
// program's tables.
int InitializeInjectionNvtx2(const void* (*export_table)(std::uint32_t)) {
  using Function = void (*)();
  struct Callbacks {
    std::size_t size;
    int (*module_table)(std::uint32_t module, Function*** table, unsigned* size);
  };
  auto* callbacks = export_table ? static_cast<const Callbacks*>(export_table(1)) : nullptr;
  if (!callbacks || callbacks->size < sizeof(Callbacks) || !callbacks->module_table) return 0;
  Function** table = nullptr;
  unsigned size = 0;
  auto put = [&](unsigned id, auto function) {
    if (id < size && table[id]) *table[id] = reinterpret_cast<Function>(function);
  };
  if (callbacks->module_table(1, &table, &size)) {  // core
    put(1, nvtxMarkEx), put(2, nvtxMarkA), put(3, nvtxMarkW);
    put(4, nvtxRangeStartEx), put(5, nvtxRangeStartA), put(6, nvtxRangeStartW),
        put(7, nvtxRangeEnd);
    put(8, nvtxRangePushEx), put(9, nvtxRangePushA), put(10, nvtxRangePushW), put(11, nvtxRangePop);
  }
  if (callbacks->module_table(5, &table, &size)) {  // domains
    put(1, nvtxDomainMarkEx), put(2, nvtxDomainRangeStartEx), put(3, nvtxDomainRangeEnd);
    put(4, nvtxDomainRangePushEx), put(5, nvtxDomainRangePop);
    put(10, nvtxDomainRegisterStringA), put(11, nvtxDomainRegisterStringW);
    put(12, nvtxDomainCreateA), put(13, nvtxDomainCreateW), put(14, nvtxDomainDestroy);
  }
  return 1;
}

}  // extern "C"
