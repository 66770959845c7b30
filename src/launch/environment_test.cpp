#include "launch/environment.h"

#include <gtest/gtest.h>

namespace maya::launch {
namespace {

const Installation installation{"/opt/maya",
                                "/opt/maya/lib",
                                "/opt/maya/libexec",
                                {"/opt/maya/lib/libmaya_device.so", "/opt/maya/lib/libcuda.so.1"}};

TEST(Environment, EmulatedLibrariesComeFirstAndThoseOfTheUserAreKept) {
  auto made = training_environment({{"LD_PRELOAD", "/usr/lib/libjemalloc.so"},
                                    {"PATH", "/usr/bin"},
                                    {"LD_LIBRARY_PATH", "/x"},
                                    {"A", "b"}},
                                   installation, {"/runs/1", "/opt/catalog", 4000});
  ASSERT_TRUE(made);
  EXPECT_EQ(made->at("LD_PRELOAD"),
            "/opt/maya/lib/libmaya_device.so:/opt/maya/lib/libcuda.so.1:/usr/lib/libjemalloc.so");
  EXPECT_EQ(made->at("LD_LIBRARY_PATH"), "/opt/maya/lib:/x");
  EXPECT_EQ(made->at("PATH"), "/opt/maya/libexec:/usr/bin");
  EXPECT_EQ(made->at("TRITON_LIBCUDA_PATH"), "/opt/maya/lib");
  EXPECT_EQ(made->at("MAYA_RUN_DIR"), "/runs/1");
  EXPECT_EQ(made->at("PET_MASTER_PORT"), "4000");
  EXPECT_EQ(made->at("USE_PYTORCH_KERNEL_CACHE"), "0");
  EXPECT_EQ(made->at("CUPY_CACHE_IN_MEMORY"), "1");
  EXPECT_EQ(made->at("A"), "b");
}

TEST(Environment, PortOfTheUserIsKept) {
  auto made = training_environment({{"PET_MASTER_PORT", "29500"}}, installation,
                                   {"/runs/1", "/opt/catalog", 4000});
  EXPECT_EQ(made->at("PET_MASTER_PORT"), "29500");
}

TEST(Environment, CachesOfServingEnginesStayInTheRunDirectoryUnlessTheUserNamesThem) {
  auto made = training_environment({{"VLLM_CACHE_ROOT", "/mine"}, {"HOME", "/home/me"}},
                                   installation, {"/runs/1", "/opt/catalog", 0});
  ASSERT_TRUE(made);
  EXPECT_EQ(made->at("VLLM_CACHE_ROOT"), "/mine");
  EXPECT_EQ(made->at("FLASHINFER_WORKSPACE_BASE"), "/home/me/.cache/maya/flashinfer");
  EXPECT_EQ(made->at("SGLANG_CACHE_DIR"), "/runs/1/caches/sglang");
  EXPECT_EQ(made->at("DG_JIT_CACHE_DIR"), "/runs/1/caches/deep_gemm");
}

TEST(Environment, PathWithASpaceUsesFileNames) {
  Installation spaced = installation;
  spaced.libraries = "/opt/my tools/lib";
  auto made = training_environment({}, spaced, {"/runs/1", "/opt/catalog", 0});
  ASSERT_TRUE(made);
  EXPECT_EQ(made->at("LD_PRELOAD"), "libmaya_device.so:libcuda.so.1");
  EXPECT_EQ(made->at("LD_LIBRARY_PATH"), "/opt/my tools/lib");
}

TEST(Environment, PathWithAColonIsRejected) {
  Installation bad = installation;
  bad.libraries = "/opt/a:b/lib";
  EXPECT_FALSE(training_environment({}, bad, {"/runs/1", "/opt/catalog", 0}));
}

TEST(Environment, RemarksOnPreloadedLibrariesOfTheUser) {
  EXPECT_TRUE(preload_remarks({}).empty());
  auto remarks =
      preload_remarks({{"LD_PRELOAD", "/x/libjemalloc.so.2 /y/libasan.so.8:/z/libcudart.so.12"}});
  ASSERT_EQ(remarks.size(), 3u);
  EXPECT_TRUE(remarks[0].conflict);
  EXPECT_NE(remarks[0].text.find("/y/libasan.so.8"), std::string::npos);
  EXPECT_TRUE(remarks[1].conflict);
  EXPECT_NE(remarks[1].text.find("/z/libcudart.so.12"), std::string::npos);
  EXPECT_FALSE(remarks[2].conflict);
  EXPECT_NE(remarks[2].text.find("/x/libjemalloc.so.2"), std::string::npos);
}

}  // namespace
}  // namespace maya::launch
