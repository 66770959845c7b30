#include "session/loader.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace maya::session {
namespace {

class LoaderTest : public testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::create_directories(directory);
    for (const char* name : {"libcudart.so.12", "libcudart.so.13", "libcudart.so", "libcuda.so.1",
                             "libcudnn_ops.so.9", "libcudnn.so.9", "libmaya_device.so"}) {
      std::ofstream(directory + "/" + name) << "x";
    }
  }
  void TearDown() override { std::filesystem::remove_all(directory); }

  std::string found(const std::string& wanted, const std::vector<std::string>& needed = {}) {
    EmulatedLibraries libraries(directory);
    const char* path = libraries.find(wanted, needed);
    return path ? std::filesystem::path(path).filename().string() : "";
  }

  const std::string directory = testing::TempDir() + "loader_test";
};

TEST_F(LoaderTest, KnowsALibraryByNamePathAndLongerVersion) {
  EXPECT_EQ(found("libcudart.so.12"), "libcudart.so.12");
  EXPECT_EQ(found("/opt/nvidia/lib/libcudart.so.13"), "libcudart.so.13");
  EXPECT_EQ(found("libcudart.so.12.8.90"), "libcudart.so.12");
  EXPECT_EQ(found("../lib/libcudnn.so.9"), "libcudnn.so.9");
  EXPECT_EQ(found("libcudnn_ops.so.9.1.0"), "libcudnn_ops.so.9");
}

TEST_F(LoaderTest, WithoutAVersionTakesTheNewest) {
  EXPECT_EQ(found("libcuda.so"), "libcuda.so.1");
  EXPECT_EQ(found("/usr/local/cuda/lib64/libcudart.so"), "libcudart.so.13");
}

// A front end tries libcudart.so.12 and libcudart.so.13. With torch for CUDA 13, only that is
// there.
TEST_F(LoaderTest, VersionsThatTheProgramIsNotLinkedWithAreNotFoundByTheirName) {
  const std::vector<std::string> cuda13{"libc.so.6", "libcudart.so.13"};
  EXPECT_EQ(found("libcudart.so.13", cuda13), "libcudart.so.13");
  EXPECT_FALSE(std::filesystem::exists(directory + "/" + found("libcudart.so.12", cuda13)));
  EXPECT_EQ(found("/opt/nvidia/lib/libcudart.so.12", cuda13), "libcudart.so.12");
  EXPECT_EQ(found("libcuda.so.1", cuda13), "libcuda.so.1");
  EXPECT_EQ(found("libcudart.so.12", {"libcudart.so.12", "libcudart.so.13"}), "libcudart.so.12");
  EXPECT_EQ(found("libcudart.so", {"libcudart.so.12"}), "libcudart.so.12");
}

TEST_F(LoaderTest, LeavesOthersAlone) {
  EXPECT_EQ(found("libcudart.so.11"), "");
  EXPECT_EQ(found("libcudart.so.120"), "");
  EXPECT_EQ(found("libcudartx.so.12"), "");
  EXPECT_EQ(found("libm.so.6"), "");
  EXPECT_EQ(found("libcu"), "");
  EXPECT_EQ(found("libmaya_device.so"), "");
  EXPECT_EQ(found(directory + "/libcudart.so.12"), "");
  EXPECT_EQ(found(""), "");
}

}  // namespace
}  // namespace maya::session
