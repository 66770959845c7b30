#include "session/counter_reads.h"

#include <cpuid.h>
#include <emmintrin.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

namespace maya::session {
namespace {

constexpr std::size_t jump_size = 5, window = 24;
constexpr std::array<std::uint8_t, 4> shift{0x48, 0xc1, 0xe2, 0x20};  // shl rdx, 32

// Length of an instruction that may be executed elsewhere: a move, a shift or arithmetic between
// registers and memory that is not addressed relative to the instruction. 0: another one.
std::size_t movable_length(std::span<const std::uint8_t> code) {
  std::size_t at = 0;
  auto next = [&]() -> int { return at < code.size() ? code[at++] : -1; };
  int byte = next();
  while (byte == 0xf3 || byte == 0xf2 || byte == 0x66) byte = next();
  if ((byte & 0xf0) == 0x40) byte = next();  // REX
  std::size_t immediate = 0;
  switch (byte) {
    case 0x01:
    case 0x03:
    case 0x09:
    case 0x0b:
    case 0x29:
    case 0x2b:
    case 0x31:
    case 0x33:
    case 0x85:
    case 0x89:
    case 0x8b:
    case 0x8d:
      break;
    case 0xc1:
    case 0x83:
    case 0xc6:
      immediate = 1;
      break;
    case 0xc7:
      immediate = 4;
      break;
    case 0x0f:
      switch (next()) {
        case 0x10:
        case 0x11:
        case 0x28:
        case 0x29:
        case 0x57:
        case 0x6e:
        case 0x6f:
        case 0x7e:
        case 0x7f:
        case 0xb6:
        case 0xb7:
        case 0xd6:
        case 0xef:
          break;
        default:
          return 0;
      }
      break;
    default:
      return 0;
  }
  const int modrm = next();
  if (modrm < 0) return 0;
  const int mode = modrm >> 6, base = modrm & 7;
  if (mode == 0 && base == 5) return 0;  // relative to the instruction
  if (mode != 3) {
    if (base == 4) {
      const int sib = next();
      if (sib < 0 || (mode == 0 && (sib & 7) == 5)) return 0;
    }
    at += mode == 1 ? 1 : mode == 2 ? 4 : 0;
  }
  at += immediate;
  return at <= code.size() ? at : 0;
}

// Bytes of the instructions behind a `rdtsc` that make room for the jump. 0: there is no shift. -1:
// there is one, but not all up to it is understood.
int room_behind(std::span<const std::uint8_t> code) {
  code = code.first(std::min(code.size(), window));
  const auto found = std::search(code.begin(), code.end(), shift.begin(), shift.end());
  if (found == code.end()) return 0;
  const auto begin = static_cast<std::size_t>(found - code.begin());
  std::size_t length = 0, room = 0;
  while (length <= begin) {
    const std::size_t step = movable_length(code.subspan(length));
    if (step == 0) return -1;
    length += step;
    if (room == 0 && length + 2 >= jump_size) room = length;
  }
  return length == begin + shift.size() ? static_cast<int>(room) : -1;
}

}  // namespace

CounterReads find_counter_reads(std::span<const std::uint8_t> code) {
  CounterReads found;
  auto look = [&](std::size_t at) {
    const int room = room_behind(code.subspan(at + 2));
    if (room > 0) found.sites.push_back({at, static_cast<std::size_t>(room)});
    if (room < 0) ++found.unknown;
  };
  const __m128i first = _mm_set1_epi8(0x0f), second = _mm_set1_epi8(0x31);
  std::size_t at = 0;
  for (; at + 17 <= code.size(); at += 16) {
    const auto* here = reinterpret_cast<const __m128i*>(code.data() + at);
    const auto* behind = reinterpret_cast<const __m128i*>(code.data() + at + 1);
    const __m128i equal = _mm_and_si128(_mm_cmpeq_epi8(_mm_loadu_si128(here), first),
                                        _mm_cmpeq_epi8(_mm_loadu_si128(behind), second));
    for (auto bits = static_cast<unsigned>(_mm_movemask_epi8(equal)); bits != 0; bits &= bits - 1)
      look(at + static_cast<std::size_t>(std::countr_zero(bits)));
  }
  for (; at + 2 <= code.size(); ++at)
    if (code[at] == 0x0f && code[at + 1] == 0x31) look(at);
  return found;
}

// What the replaced reads jump to. `rdtsc` changes rax and rdx and nothing else, so everything
// else is kept: flags, all registers of calls, vector registers (components 1, 2, 5, 6, 7).
asm(R"(
    .text
    .p2align 4
    .type maya_counter_entry, @function
    .hidden maya_counter_entry
maya_counter_entry:
    pushfq
    push %rcx
    push %rsi
    push %rdi
    push %r8
    push %r9
    push %r10
    push %r11
    push %rbx
    push %rbp
    mov %rsp, %rbp
    sub $2880, %rsp
    and $-64, %rsp
    xor %eax, %eax
    mov %rax, 512(%rsp)
    mov %rax, 520(%rsp)
    mov %rax, 528(%rsp)
    mov %rax, 536(%rsp)
    mov %rax, 544(%rsp)
    mov %rax, 552(%rsp)
    mov %rax, 560(%rsp)
    mov %rax, 568(%rsp)
    xor %edx, %edx
    mov $0xe6, %eax
    xsave64 (%rsp)
    cld
    call maya_counter_read
    mov %rax, %rbx
    xor %edx, %edx
    mov $0xe6, %eax
    xrstor64 (%rsp)
    mov %rbx, %rdx
    shr $32, %rdx
    mov %ebx, %eax
    mov %rbp, %rsp
    pop %rbp
    pop %rbx
    pop %r11
    pop %r10
    pop %r9
    pop %r8
    pop %rdi
    pop %rsi
    pop %rcx
    popfq
    ret
    .size maya_counter_entry, . - maya_counter_entry
)");
extern "C" __attribute__((visibility("hidden"))) void maya_counter_entry();

namespace {

constexpr std::size_t stub_size = 64;

bool vector_state_can_be_saved() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  constexpr unsigned os_xsave = 1u << 27;
  return __get_cpuid(1, &a, &b, &c, &d) != 0 && (c & os_xsave) != 0;
}

// Memory that a jump of 32 bits reaches from all of the code.
std::uint8_t* memory_near(std::span<const std::uint8_t> code, std::size_t bytes) {
  constexpr std::uintptr_t reach = 0x7fff0000, step = 1 << 20;
  const auto begin = reinterpret_cast<std::uintptr_t>(code.data()), end = begin + code.size();
  auto attempt = [&](std::uintptr_t at) -> std::uint8_t* {
    void* memory = mmap(reinterpret_cast<void*>(at & ~(step - 1)), bytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    return memory == MAP_FAILED ? nullptr : static_cast<std::uint8_t*>(memory);
  };
  for (std::uintptr_t away = 2 * step; away + code.size() + bytes < reach; away += step) {
    if (auto* memory = attempt(end + away)) return memory;
    if (begin > away)
      if (auto* memory = attempt(begin - away)) return memory;
  }
  return nullptr;
}

void put_jump(std::uint8_t* at, const std::uint8_t* target) {
  const auto distance = static_cast<std::int32_t>(target - (at + jump_size));
  at[0] = 0xe9;
  std::memcpy(at + 1, &distance, sizeof distance);
}

// Steps over the red zone, asks, executes what the jump replaced and goes back.
void write_stub(std::uint8_t* stub, const std::uint8_t* site, std::size_t moved) {
  const std::array<std::uint8_t, 5> below{0x48, 0x8d, 0x64, 0x24, 0x80};  // lea rsp, [rsp - 128]
  const std::array<std::uint8_t, 8> above{0x48, 0x8d, 0xa4, 0x24, 0x80, 0, 0, 0};  // … + 128
  auto put = [&](const void* bytes, std::size_t size) {
    std::memcpy(stub, bytes, size);
    stub += size;
  };
  const auto entry = reinterpret_cast<std::uintptr_t>(&maya_counter_entry);
  put(below.data(), below.size());
  put("\x48\xb8", 2);  // mov rax, entry
  put(&entry, sizeof entry);
  put("\xff\xd0", 2);  // call rax
  put(above.data(), above.size());
  put(site + 2, moved);
  put_jump(stub, site + 2 + moved);
}

}  // namespace

bool replace_counter_reads(std::span<std::uint8_t> code, const std::vector<CounterRead>& sites) {
  if (sites.empty()) return true;
  if (!vector_state_can_be_saved()) return false;
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  const std::size_t bytes = (sites.size() * stub_size + page - 1) / page * page;
  std::uint8_t* stubs = memory_near(code, bytes);
  if (stubs == nullptr) return false;
  for (std::size_t i = 0; i < sites.size(); ++i)
    write_stub(stubs + i * stub_size, code.data() + sites[i].offset, sites[i].moved);
  if (mprotect(stubs, bytes, PROT_READ | PROT_EXEC) != 0) {
    munmap(stubs, bytes);
    return false;
  }
  for (std::size_t i = 0; i < sites.size(); ++i) {
    std::uint8_t* site = code.data() + sites[i].offset;
    const auto first = reinterpret_cast<std::uintptr_t>(site) & ~(page - 1);
    const auto last = (reinterpret_cast<std::uintptr_t>(site) + jump_size - 1) & ~(page - 1);
    auto* pages = reinterpret_cast<void*>(first);
    if (mprotect(pages, last - first + page, PROT_READ | PROT_WRITE | PROT_EXEC) != 0) {
      if (i > 0) continue;  // cannot be: the first one was allowed
      munmap(stubs, bytes);
      return false;
    }
    put_jump(site, stubs + i * stub_size);
    mprotect(pages, last - first + page, PROT_READ | PROT_EXEC);
  }
  return true;
}

}  // namespace maya::session
