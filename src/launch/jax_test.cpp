#include "launch/jax.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

namespace maya::launch {
namespace {

namespace fs = std::filesystem;

class JaxTest : public testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/maya-jax-XXXXXX";
    python.site = mkdtemp(name);
  }
  void TearDown() override { fs::remove_all(python.site); }
  std::string program(const std::string& folder) {
    fs::create_directories(python.site + folder);
    std::string path = python.site + folder + "/ptxas";
    std::ofstream(path) << "#!/bin/sh\n";
    chmod(path.c_str(), 0755);
    return path;
  }
  Python python;
};

TEST_F(JaxTest, IsNotThereWithoutItsPackage) {
  python.packages = {"jaxlib 0.10.2", "timm 1.0"};
  EXPECT_FALSE(find_jax(python, "/no/such"));
}

TEST_F(JaxTest, KnowsThePlugInsCuda) {
  python.packages = {"jax 0.10.2"};
  EXPECT_EQ(find_jax(python, "/no/such")->cuda_major, 0);
  python.packages = {"jax-cuda12-plugin 0.6.0", "jax 0.6.0", "jaxlib 0.6.0"};
  auto jax = find_jax(python, "/no/such");
  ASSERT_TRUE(jax);
  EXPECT_EQ(jax->version, "0.6.0");
  EXPECT_EQ(jax->cuda_major, 12);
  python.packages = {"jax 0.10.2", "jax-cuda13-plugin 0.10.2"};
  EXPECT_EQ(find_jax(python, "/no/such")->cuda_major, 13);
}

TEST_F(JaxTest, FindsTheAssemblerBesideItOrOnThePath) {
  python.packages = {"jax 0.10.2", "jax-cuda13-plugin 0.10.2"};
  std::string elsewhere = program("/elsewhere");
  EXPECT_EQ(find_jax(python, python.site + "/elsewhere")->ptxas, elsewhere);
  std::string beside = program("/nvidia/cu13/bin");
  EXPECT_EQ(find_jax(python, python.site + "/elsewhere")->ptxas, beside);
}

}  // namespace
}  // namespace maya::launch
