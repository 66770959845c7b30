#include "session/counter_reads.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cmath>
#include <cstring>

// What replaced reads are answered with: a function that uses vector registers.
volatile double scratch = 2;
extern "C" std::uint64_t maya_counter_read() {
  scratch = std::sqrt(scratch) * 3 + 1;
  return 0x1122334455667788;
}

namespace maya::session {
namespace {

using Bytes = std::vector<std::uint8_t>;

class Code {
 public:
  explicit Code(const Bytes& bytes) {
    auto* memory = static_cast<std::uint8_t*>(
        mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    std::memcpy(memory, bytes.data(), bytes.size());
    mprotect(memory, 4096, PROT_READ | PROT_EXEC);
    code_ = {memory, bytes.size()};
  }
  ~Code() { munmap(code_.data(), 4096); }
  Code(const Code&) = delete;
  Code& operator=(const Code&) = delete;
  std::span<std::uint8_t> bytes() const { return code_; }
  template <class Function>
  Function* as() const {
    return reinterpret_cast<Function*>(code_.data());
  }

 private:
  std::span<std::uint8_t> code_;
};

bool replace_all(const Code& code) {
  return replace_counter_reads(code.bytes(), find_counter_reads(code.bytes()).sites);
}

TEST(CounterReads, ReturnsTheAnswerInPlaceOfTheCounter) {
  // rdtsc; shl rdx, 32; or rax, rdx; ret
  const Code code({0x0f, 0x31, 0x48, 0xc1, 0xe2, 0x20, 0x48, 0x09, 0xd0, 0xc3});
  ASSERT_NE(code.as<std::uint64_t()>()(), 0x1122334455667788u);
  ASSERT_TRUE(replace_all(code));
  EXPECT_EQ(code.as<std::uint64_t()>()(), 0x1122334455667788u);
}

TEST(CounterReads, MovesTheInstructionsBehind) {
  // rdtsc; mov r8, rax; shl rdx, 32; or rdx, r8; mov rax, rdx; ret
  const Code code({0x0f, 0x31, 0x49, 0x89, 0xc0, 0x48, 0xc1, 0xe2, 0x20, 0x4c, 0x09, 0xc2, 0x48,
                   0x89, 0xd0, 0xc3});
  const auto found = find_counter_reads(code.bytes());
  ASSERT_EQ(found.sites.size(), 1u);
  EXPECT_EQ(found.sites[0].moved, 3u);
  ASSERT_TRUE(replace_all(code));
  EXPECT_EQ(code.as<std::uint64_t()>()(), 0x1122334455667788u);
}

TEST(CounterReads, KeepsVectorRegistersAndTheRedZone) {
  // mov [rsp-8], rdi; rdtsc; mov rdi, [rsp-8]; shl rdx, 32; mov [rsi], rdi; ret (xmm0 as it came)
  const Code code({0x48, 0x89, 0x7c, 0x24, 0xf8, 0x0f, 0x31, 0x48, 0x8b, 0x7c,
                   0x24, 0xf8, 0x48, 0xc1, 0xe2, 0x20, 0x48, 0x89, 0x3e, 0xc3});
  ASSERT_TRUE(replace_all(code));
  std::uint64_t kept = 0;
  EXPECT_EQ(code.as<double(std::uint64_t, std::uint64_t*, double)>()(4711, &kept, 0.25), 0.25);
  EXPECT_EQ(kept, 4711u);
}

TEST(CounterReads, LeavesAloneWhatIsNotUnderstood) {
  // The bytes of rdtsc within other instructions, without a shift.
  EXPECT_TRUE(
      find_counter_reads(Bytes{0x66, 0x0f, 0x31, 0xc9, 0x4c, 0x89, 0xf2, 0xc3}).sites.empty());
  // rdtsc; mov rcx, [rip + 16]; shl rdx, 32: cannot be executed elsewhere.
  const auto relative = find_counter_reads(
      Bytes{0x0f, 0x31, 0x48, 0x8b, 0x0d, 0x10, 0, 0, 0, 0x48, 0xc1, 0xe2, 0x20, 0xc3});
  EXPECT_TRUE(relative.sites.empty());
  EXPECT_EQ(relative.unknown, 1u);
  // rdtsc; call …; shl rdx, 32
  EXPECT_EQ(find_counter_reads(Bytes{0x0f, 0x31, 0xe8, 1, 2, 3, 4, 0x48, 0xc1, 0xe2, 0x20}).unknown,
            1u);
  EXPECT_EQ(find_counter_reads(Bytes{0x0f, 0x31}).unknown, 0u);
  EXPECT_TRUE(find_counter_reads(Bytes{}).sites.empty());
}

TEST(CounterReads, FindsReadsAnywhere) {
  const Bytes read{0x0f, 0x31, 0x48, 0xc1, 0xe2, 0x20};
  for (std::size_t before = 0; before < 40; ++before) {
    Bytes code(before, 0x90);
    code.insert(code.end(), read.begin(), read.end());
    const auto found = find_counter_reads(code);
    ASSERT_EQ(found.sites.size(), 1u) << before;
    EXPECT_EQ(found.sites[0].offset, before);
  }
}

}  // namespace
}  // namespace maya::session
