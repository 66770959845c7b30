// Loads the emulated libcuda.so.1 and asks it for functions the way programs do.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <string>

namespace {

using GetProcAddress = int (*)(const char*, void**, int, unsigned long long, int*);

class EntryPoints : public testing::Test {
 protected:
  void SetUp() override {
    library = dlopen(MAYA_LIBCUDA, RTLD_NOW | RTLD_LOCAL);
    ASSERT_NE(library, nullptr) << dlerror();
    ask = reinterpret_cast<GetProcAddress>(dlsym(library, "cuGetProcAddress_v2"));
    ASSERT_NE(ask, nullptr);
  }

  void expect(const char* name, int version, unsigned long long flags, const char* symbol) {
    void* address = nullptr;
    int status = -1;
    EXPECT_EQ(ask(name, &address, version, flags, &status), 0);
    EXPECT_EQ(status, 0) << name;
    EXPECT_EQ(address, dlsym(library, symbol))
        << name << " at " << version << " should be " << symbol;
  }

  void* library = nullptr;
  GetProcAddress ask = nullptr;
};

TEST_F(EntryPoints, VersionPicksTheForm) {
  expect("cuMemAlloc", 3000, 0, "cuMemAlloc");
  expect("cuMemAlloc", 12000, 0, "cuMemAlloc_v2");
  expect("cuMemPrefetchAsync", 12010, 0, "cuMemPrefetchAsync");
  expect("cuMemPrefetchAsync", 13000, 0, "cuMemPrefetchAsync_v2");
  expect("cuStreamWriteValue32", 12000, 0, "cuStreamWriteValue32_v2");
  expect("cuMulticastBindMem", 12030, 0, "cuMulticastBindMem");
  expect("cuMulticastBindMem", 13010, 0, "cuMulticastBindMem_v2");
  expect("cuGetProcAddress", 12000, 0, "cuGetProcAddress_v2");
}

TEST_F(EntryPoints, PerThreadStreamForms) {
  expect("cuLaunchKernel", 12000, 2, "cuLaunchKernel_ptsz");
  expect("cuMemcpyHtoD", 12000, 2, "cuMemcpyHtoD_v2_ptds");
  expect("cuInit", 12000, 2, "cuInit");
}

TEST_F(EntryPoints, AbsentNamesAndOldVersionsAreReported) {
  int something = 0;
  void* address = &something;
  int status = -1;
  EXPECT_EQ(ask("cuNoSuchThing", &address, 12000, 0, &status), 0);
  EXPECT_EQ(address, nullptr);
  EXPECT_EQ(status, 1);
  EXPECT_EQ(ask("cuGreenCtxCreate", &address, 12000, 0, &status), 0);
  EXPECT_EQ(address, nullptr);
  EXPECT_EQ(status, 2);
  EXPECT_EQ(ask(nullptr, &address, 12000, 0, &status), 1);
}

}  // namespace
