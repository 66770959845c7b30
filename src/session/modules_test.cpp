#include <sys/stat.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <fstream>
#include <string>

#include "session/kernels.h"
#include "session/testing/device.h"

namespace maya::session {
namespace {

using Modules = OnDevice;

const char ptx[] =
    ".version 8.0\n.target sm_80\n.address_size 64\n"
    ".visible .entry twice(.param .u64 out, .param .u32 n) { ret; }\n";

TEST_F(Modules, ThatAreNoCodeAreRefused) {
  void* module = nullptr;
  const char junk[64] = "this is no code at all, whatever it may look like from afar";
  EXPECT_EQ(module_load(module, junk), code::invalid_image);
  EXPECT_EQ(module_load(module, nullptr), code::invalid_value);
  EXPECT_EQ(module_load_file(module, "/nonexistent/module.cubin"), code::file_not_found);
}

TEST_F(Modules, AreReadFromRegularFilesOnly) {
  void* module = nullptr;
  const std::string fifo = ::testing::TempDir() + "maya-fifo-" + std::to_string(getpid());
  ASSERT_EQ(mkfifo(fifo.c_str(), 0600), 0);
  for (const std::string& path : {std::string("/"), std::string("/dev/zero"), fifo})
    EXPECT_EQ(module_load_file(module, path.c_str()), code::file_not_found) << path;
  unlink(fifo.c_str());
}

TEST_F(Modules, ThatWereCutOffAreRefused) {
  void* module = nullptr;
  std::string elf(4096, '\0');
  auto put = [&](std::size_t at, auto value) {
    std::memcpy(elf.data() + at, &value, sizeof value);
  };
  elf.replace(0, 7, "\177ELF\2\1\1");
  put(16, std::uint16_t{2}), put(18, std::uint16_t{190}), put(52, std::uint16_t{64});
  EXPECT_EQ(module_load(module, elf.data()), code::invalid_image) << "no table of sections";
  put(40, std::uint64_t{64}), put(58, std::uint16_t{64}), put(60, std::uint16_t{2});
  put(64 + 64 + 4, std::uint32_t{3}), put(64 + 64 + 24, std::uint64_t{3000});
  put(64 + 64 + 32, std::uint64_t{1000});
  const std::string path = ::testing::TempDir() + "maya-cut-" + std::to_string(getpid());
  std::ofstream(path, std::ios::binary) << elf.substr(0, 2000);
  EXPECT_EQ(module_load_file(module, path.c_str()), code::invalid_image)
      << "a section behind its end";
  unlink(path.c_str());
}

TEST_F(Modules, GiveTheirFunctionsByName) {
  void *module = nullptr, *function = nullptr, *again = nullptr;
  ASSERT_EQ(module_load(module, ptx), 0);
  EXPECT_EQ(module_function(module, "thrice", function), code::not_found);
  ASSERT_EQ(module_function(module, "twice", function), 0);
  ASSERT_EQ(module_function(module, "twice", again), 0);
  EXPECT_EQ(function, again);
  EXPECT_STREQ(function_name(function), "twice");
  EXPECT_EQ(function_module(function), module);
  std::size_t offset = 0, bytes = 0;
  ASSERT_EQ(function_parameter(function, 1, &offset, &bytes), 0);
  EXPECT_EQ(offset, 8u);
  EXPECT_EQ(bytes, 4u);
  EXPECT_EQ(function_parameter(function, 2, &offset, &bytes), code::invalid_value);
  module_unload(module);
}

TEST_F(Modules, TakeTheirFunctionsWithThem) {
  void *module = nullptr, *function = nullptr;
  ASSERT_EQ(module_load(module, ptx), 0);
  ASSERT_EQ(module_function(module, "twice", function), 0);
  ASSERT_EQ(module_unload(module), 0);
  EXPECT_EQ(module_unload(module), code::invalid_handle);
  EXPECT_FALSE(valid_function(function));
  EXPECT_EQ(launch(function, {{1, 1, 1}, {32, 1, 1}}, static_cast<void* const*>(nullptr), nullptr),
            code::invalid_handle);
}

TEST_F(Modules, LaunchesCheckTheirGeometryAndArguments) {
  void *module = nullptr, *function = nullptr;
  ASSERT_EQ(module_load(module, ptx), 0);
  ASSERT_EQ(module_function(module, "twice", function), 0);
  TestMemory memory;
  unsigned n = 4;
  void* arguments[] = {&memory.address, &n};
  EXPECT_EQ(launch(function, {{1, 1, 1}, {2048, 1, 1}}, arguments, nullptr),
            code::invalid_configuration);
  EXPECT_EQ(launch(function, {{0, 1, 1}, {32, 1, 1}}, arguments, nullptr),
            code::invalid_configuration);
  EXPECT_EQ(launch(function, {{1, 1, 1}, {32, 1, 1}}, static_cast<void* const*>(nullptr), nullptr),
            code::invalid_value);
  EXPECT_EQ(launch(function, {{1, 1, 1}, {32, 1, 1}}, arguments, nullptr), code::success);
  const struct {
    void* out;
    unsigned n;
  } packed{memory.address, 4};
  EXPECT_EQ(launch(function, {{1, 1, 1}, {32, 1, 1}}, PackedArguments{&packed, 4}, nullptr),
            code::invalid_value);
  EXPECT_EQ(launch(function, {{1, 1, 1}, {32, 1, 1}}, PackedArguments{&packed, 16}, nullptr),
            code::success);
  module_unload(module);
}

TEST_F(Modules, AStubThatNobodyRegisteredIsNoFunction) {
  int stub = 0;
  EXPECT_EQ(registered_function(&stub), nullptr);
  EXPECT_EQ(launch_registered(&stub, {{1, 1, 1}, {32, 1, 1}}, nullptr, nullptr),
            code::invalid_device_function);
}

}  // namespace
}  // namespace maya::session
