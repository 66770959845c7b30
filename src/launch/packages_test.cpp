#include "launch/packages.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace maya::launch {
namespace {

namespace fs = std::filesystem;

class PackagesTest : public testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/maya-packages-XXXXXX";
    ASSERT_NE(mkdtemp(name), nullptr);
    site = name;
  }
  void TearDown() override { fs::remove_all(site); }

  // Builds a library with or without device code, which links libcudart or not.
  void library(const std::string& path, bool device_code, bool needs_runtime) {
    fs::create_directories((site / path).parent_path());
    std::ofstream source(site / "a.c");
    if (device_code)
      source << "__attribute__((section(\".nv_fatbin\"), used)) static const int code[4] = {1};\n";
    source << "int f(void) { return 1; }\n";
    source.close();
    std::string runtime = site / "libcudart.so.12";
    std::string cc = "cc -shared -fPIC -o ";
    if (needs_runtime) {
      ASSERT_EQ(std::system((cc + runtime + " -Wl,-soname,libcudart.so.12 -x c /dev/null").c_str()),
                0);
    }
    ASSERT_EQ(std::system((cc + (site / path).string() + " " + (site / "a.c").string() +
                           (needs_runtime ? " -Wl,--no-as-needed " + runtime : ""))
                              .c_str()),
              0);
  }

  fs::path site;
};

TEST_F(PackagesTest, FindsStaticRuntimesAndPrivateCopies) {
  library("fixed/_C.so", true, false);
  library("shared/_C.so", true, true);
  library("plain/_C.cpython-311-x86_64-linux-gnu.so", false, false);
  library("vision.libs/libcudart-d0da41ae.so.11.0", false, false);
  std::ofstream(site / "text.so") << "GROUP ( libc.so.6 )";
  auto found = unreached_libraries(site);
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].path, site / "fixed/_C.so");
  EXPECT_EQ(found[0].kind, UnreachedLibrary::Kind::static_runtime);
  EXPECT_EQ(found[1].path, site / "vision.libs/libcudart-d0da41ae.so.11.0");
  EXPECT_EQ(found[1].kind, UnreachedLibrary::Kind::private_runtime);
}

TEST_F(PackagesTest, MissingFolderHasNoLibraries) {
  EXPECT_TRUE(unreached_libraries(site / "none").empty());
}

}  // namespace
}  // namespace maya::launch
