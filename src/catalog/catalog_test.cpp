#include "maya/catalog.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>

#include "catalog/cluster_file.h"
#include "catalog/draw.h"
#include "catalog/fields.h"
#include "catalog/flat.h"

namespace maya::catalog {
namespace {

const Catalog& shipped() {
  static const Catalog catalog = [] {
    auto loaded = Catalog::load(MAYA_SOURCE_DIR "/catalog");
    EXPECT_TRUE(loaded) << (loaded ? "" : loaded.error().message);
    return loaded ? *loaded : Catalog{};
  }();
  return catalog;
}

std::string written(const std::string& text) {
  auto path = (std::filesystem::temp_directory_path() / "maya_catalog_test.toml").string();
  std::ofstream(path) << text;
  return path;
}

// The error message for a file of the user, or "accepted".
std::string message(const std::string& text) {
  auto cluster = shipped().cluster(written(text));
  return cluster ? "accepted" : cluster.error().message;
}

bool has(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

TEST(Catalog, HasAllExpectedGpusAndClusters) {
  for (const char* name : {"p100",
                           "v100-pcie-32gb",
                           "v100-sxm2-16gb",
                           "v100-sxm2-32gb",
                           "t4",
                           "rtx2080ti",
                           "titan-rtx",
                           "rtx3090",
                           "rtx4090",
                           "a40",
                           "a100-40gb-pcie",
                           "a100-40gb-sxm",
                           "a100-80gb-pcie",
                           "a100-80gb-sxm",
                           "l4",
                           "l40",
                           "l40s",
                           "h100-pcie",
                           "h100-sxm",
                           "h100-96gb-500w",
                           "h200-sxm",
                           "gh200",
                           "b200-sxm",
                           "gb200",
                           "titan-v",
                           "titan-xp",
                           "gtx1080ti",
                           "p4"})
    EXPECT_TRUE(shipped().gpu(name)) << name;
  for (const char* name :
       {"dgx-1-v100", "dgx-2", "dgx-a100-40gb", "dgx-a100", "dgx-h100", "hgx-h200",
        "grand-teton-h100", "p4d", "p4de", "p5", "p5en", "dgx-b200", "gb200-nvl72",
        "azure-nd-h100-v5", "gcp-a3-highgpu", "pcie-8xrtx3090", "pcie-8xl40s", "pcie-8xv100"})
    EXPECT_TRUE(shipped().cluster(name)) << name;
}

TEST(Catalog, FiguresArePlausible) {
  for (const Gpu& gpu : shipped().gpus()) {
    EXPECT_FALSE(gpu.marketing.empty()) << gpu.name;
    // A GPU that is not offered for rent has no price; every price has a source.
    EXPECT_EQ(gpu.usd_per_hour > 0, !gpu.price_source.empty()) << gpu.name;
    // The bandwidth of the data sheet follows from the clock (two transfers) and the bus width.
    double from_bus = gpu.memory_clock_mhz * 1e6 * 2 * gpu.memory_bus_bits / 8 / 1e9;
    EXPECT_NEAR(from_bus / gpu.memory_gbps, 1, 0.04) << gpu.name;
    // f32: two operations per core and clock.
    int cores = gpu.architecture == "ampere" && gpu.capability_minor == 6 ? 128
                : gpu.architecture == "ada" || gpu.architecture == "hopper" ||
                        gpu.architecture == "blackwell" ||
                        (gpu.architecture == "pascal" && gpu.capability_minor == 1)
                    ? 128
                    : 64;
    EXPECT_NEAR(2e-6 * cores * gpu.sms * gpu.boost_clock_mhz / gpu.peak_tflops.at(DType::f32), 1,
                0.1)
        << gpu.name;
    // The sustained clock is derived from the power, except for boards for which it is known.
    EXPECT_TRUE(gpu.sustained_clock_mhz == 0 || gpu.sustained_clock_mhz > 0.5 * gpu.base_clock_mhz)
        << gpu.name;
    EXPECT_GT(gpu.tdp_watts, 0) << gpu.name;
  }
}

TEST(Catalog, EccIsSetPerGpu) {
  auto has_it = [](const char* name) { return shipped().cluster(name)->gpu.ecc; };
  EXPECT_TRUE(has_it("t4"));        // 70 W
  EXPECT_FALSE(has_it("rtx3090"));  // 350 W
  EXPECT_TRUE(has_it("h100-sxm"));
}

TEST(Catalog, SpecWithNodesAndGpu) {
  auto cluster = shipped().cluster("dgx-h100:4");
  ASSERT_TRUE(cluster);
  EXPECT_EQ(cluster->world_size(), 32);
  EXPECT_EQ(cluster->gpu.name, "h100-sxm");
  EXPECT_DOUBLE_EQ(cluster->nic.gbps, 50);
  EXPECT_DOUBLE_EQ(cluster->intra.gbps, 450);
  EXPECT_EQ(cluster->nvlink_domain, 8);
  auto one = shipped().cluster("rtx3090");
  ASSERT_TRUE(one);
  EXPECT_EQ(one->world_size(), 1);
  auto four = shipped().cluster("rtx3090:4");
  ASSERT_TRUE(four);
  EXPECT_EQ(four->gpus_per_node, 4);
  EXPECT_EQ(four->intra.name, "pcie");
}

TEST(Catalog, AliasesAndSpellingsAreFound) {
  for (auto [written, name] : std::initializer_list<std::pair<const char*, const char*>>{
           {"h100", "h100-sxm"},
           {"H100", "h100-sxm"},
           {"NVIDIA H100 80GB HBM3", "h100-sxm"},
           {"a100", "a100-80gb-sxm"},
           {"A100-SXM4-40GB", "a100-40gb-sxm"},
           {"Tesla T4", "t4"},
           {"RTX 4090", "rtx4090"},
           {"NVIDIA GeForce RTX 3090", "rtx3090"}}) {
    auto gpu = shipped().gpu(written);
    ASSERT_TRUE(gpu) << written;
    EXPECT_EQ(gpu->name, name) << written;
  }
  auto cluster = shipped().cluster("DGX H100:2");
  ASSERT_TRUE(cluster);
  EXPECT_EQ(cluster->name, "dgx-h100");
  EXPECT_EQ(cluster->nodes, 2);
  // Names are unique: otherwise one of two GPUs could not be selected.
  for (const Gpu& gpu : shipped().gpus()) {
    std::stringstream names(gpu.name + "," + gpu.also);
    for (std::string name; std::getline(names, name, ',');) {
      auto found = shipped().gpu(name);
      ASSERT_TRUE(found) << name;
      EXPECT_EQ(found->name, gpu.name) << name;
    }
  }
}

TEST(Catalog, UnknownNamesGetSuggestions) {
  EXPECT_TRUE(has(shipped().gpu("h10").error().message, "did you mean h100-"));
  EXPECT_TRUE(has(shipped().cluster("dgx-h10O").error().message, "did you mean dgx-h100"));
  EXPECT_TRUE(has(shipped().cluster("mi300x").error().message, "`maya clusters` and `maya gpus`"));
  EXPECT_TRUE(has(shipped().cluster("dgx-h100:0").error().message, "1 or more"));
  EXPECT_TRUE(has(shipped().cluster("dgx-h100:x").error().message, "number of nodes"));
  EXPECT_TRUE(has(shipped().cluster("nowhere.toml").error().message, "cannot read nowhere.toml"));
}

TEST(Catalog, OverridesReachEveryPart) {
  auto c = shipped().cluster("dgx-h100:2", {{"network.nic_gbps", "200"},
                                            {"host.speed", "1.3"},
                                            {"gpu.memory_gbps", "4000"},
                                            {"gpu.peak_tflops.bf16", "500"},
                                            {"network.oversubscription", "2"},
                                            {"network.nvlink_gbps", "900 GB/s"},
                                            {"network.model.time.start_us", "9"}});
  ASSERT_TRUE(c) << c.error().message;
  EXPECT_DOUBLE_EQ(c->nic.gbps, 25);
  EXPECT_DOUBLE_EQ(c->host.speed, 1.3);
  EXPECT_DOUBLE_EQ(c->gpu.memory_gbps, 4000);
  EXPECT_DOUBLE_EQ(c->gpu.peak_tflops.at(DType::bf16), 500);
  EXPECT_DOUBLE_EQ(c->intra.gbps, 900);
  EXPECT_DOUBLE_EQ(c->extra.at("time.start_us"), 9);
  auto swapped = shipped().cluster("dgx-h100:2", {{"gpu", "b200-sxm"}});
  ASSERT_TRUE(swapped);
  EXPECT_DOUBLE_EQ(swapped->intra.gbps, 900);
  auto bad = shipped().cluster("dgx-h100", {{"network.nic_gpbs", "200"}});
  EXPECT_TRUE(has(bad.error().message, "did you mean network.nic_gbps"));
  EXPECT_TRUE(
      has(shipped().cluster("dgx-h100", {{"gpu.sms", "-4"}}).error().message, "not negative"));
  EXPECT_TRUE(has(shipped().cluster("dgx-h100", {{"network.nic_gbps", "0"}}).error().message,
                  "no pair of nodes could reach"));
}

TEST(Catalog, ReadsAClusterFileOfTheUser) {
  auto cluster = shipped().cluster(written(R"(gpu = "h100-sxm"
host = "dgx-h100"
gpus_per_node = 8
nodes = 4
usd_per_gpu_hour = 2.1
[network]
nvswitch = true
nvls = true
nic_gbps = 400
nics_per_node = 4
fabric = "roce"
oversubscription = 2
gpus_per_leaf = 128
)"));
  ASSERT_TRUE(cluster) << cluster.error().message;
  EXPECT_EQ(cluster->world_size(), 32);
  EXPECT_EQ(cluster->oversubscription, 2);
  EXPECT_EQ(cluster->host.name, "dgx-h100");
  auto derived = shipped().cluster(written("base = \"dgx-a100\"\nnodes = 16\n"));
  EXPECT_TRUE(derived) << derived.error().message;
  auto tuned =
      shipped().cluster(written("base = \"dgx-a100\"\nnodes = 16\nnetwork.nics_per_node = 4\n"));
  ASSERT_TRUE(tuned) << tuned.error().message;
  EXPECT_EQ(tuned->nics_per_node, 4);
  EXPECT_TRUE(tuned->nvswitch);
}

constexpr const char* kTenNumbers = R"(capability_major = 8
capability_minor = 9
sms = 60
boost_clock_mhz = 2550
memory_bytes = "16 GiB"
memory_gbps = 672
l2_bytes = "48 MiB"
tdp_watts = 285
[peak_tflops]
f32 = 40.1
f16 = 80.2
)";

TEST(Catalog, ReadsAGpuFileWithTenFigures) {
  const std::string path = written(kTenNumbers);
  auto gpu = shipped().gpu(path);
  ASSERT_TRUE(gpu) << gpu.error().message;
  EXPECT_EQ(gpu->architecture, "ada");
  EXPECT_EQ(gpu->max_threads_per_sm, 1536);
  EXPECT_DOUBLE_EQ(gpu->peak_tflops.at(DType::bf16), 80.2);
  EXPECT_NEAR(gpu->peak_tflops.at(DType::f8e4m3), 160.4, 1);
  auto alone = shipped().cluster(path);
  ASSERT_TRUE(alone) << alone.error().message;
  EXPECT_EQ(alone->world_size(), 1);
  EXPECT_EQ(alone->gpu.sms, 60);
  auto swapped = shipped().cluster("pcie-8xrtx4090", {{"gpu", path}});
  ASSERT_TRUE(swapped) << swapped.error().message;
  EXPECT_EQ(swapped->gpu.sms, 60);
}

TEST(Catalog, ErrorNamesTheMissingKeyOfAGpuFile) {
  auto error_of = [](const std::string& text) {
    auto gpu = shipped().gpu(written(text));
    return gpu ? "accepted" : gpu.error().message;
  };
  std::string less = kTenNumbers;
  less.erase(less.find("memory_gbps"), std::string("memory_gbps = 672\n").size());
  EXPECT_TRUE(has(error_of(less), "'memory_gbps' is missing")) << error_of(less);
  EXPECT_TRUE(has(error_of("name = \"t4\"\n" + std::string(kTenNumbers)), "another name"));
  EXPECT_TRUE(has(error_of("gpu = \"t4\"\n"), "data sheet with"));
  EXPECT_TRUE(has(shipped().gpu("rtx4070").error().message, "TOML file"));
}

TEST(Catalog, ErrorsOfBadFilesNameLineKeyAndFix) {
  EXPECT_TRUE(has(message("gpus = \"h100-sxm\"\n"), "the key 'gpu' is missing"));
  auto unknown = message("gpu = \"h100-sxm\"\ngpus_per_nod = 8\n");
  EXPECT_TRUE(has(unknown, ":2: ") && has(unknown, "gpus_per_nod") &&
              has(unknown, "did you mean gpus_per_node"))
      << unknown;
  EXPECT_TRUE(
      has(message("gpu = \"h100-sxm\"\nnodes = -1\n"), ":2: nodes: expected a whole number"));
  EXPECT_TRUE(has(message("gpu = \"h100-sxm\"\nnodes = 1.5\n"), "whole number"));
  EXPECT_TRUE(has(message("gpu = \"h100-sxm\"\n[network]\nnic_gbps = \"400 furlongs\"\n"), "Gb/s"));
  EXPECT_TRUE(has(message("gpu = \"h100-sxm\"\n[network]\nnvswitch = 1\n"), "true or false"));
  EXPECT_TRUE(has(message("gpu = \"h10\"\n"), "did you mean h100-"));
  EXPECT_TRUE(has(message("gpu = 5\n"), "name in quotes"));
  EXPECT_TRUE(has(message("gpu = \"h100-sxm\"\nnodes = 2\n"), "network between them"));
  EXPECT_TRUE(has(message("gpu = \"h100-sxm\"\nnodes = [2]\n"), "found an array"));
  EXPECT_TRUE(has(message("gpu = \"h100-sxm\nnodes = 2\n"), "not TOML"));
  EXPECT_TRUE(has(message("gpu = \"t4\"\ngpus_per_node = 4\n[network]\nnvswitch = true\n"),
                  "has no NVLink"));
  EXPECT_TRUE(has(message("gpu = \"a100-80gb-sxm\"\n[network]\nfabric = \"ib\"\n"),
                  "unknown network.fabric"));
  EXPECT_TRUE(
      has(message("gpu = \"a100-80gb-sxm\"\n[network]\noversubscription = 0.5\n"), "at least 1"));
}

// Reading a damaged file returns a cluster or an error and never crashes.
TEST(Catalog, DamagedFilesDoNotCrash) {
  const std::string good =
      "gpu = \"h100-sxm\"\nnodes = 4\ngpus_per_node = 8\n[network]\nnvswitch = true\n"
      "nic_gbps = \"400 Gb/s\"\nnics_per_node = 8\nfabric = \"roce\"\noversubscription = 2.5\n";
  std::mt19937 random(5);
  const Known known{shipped().directory(), shipped().gpus(), {}, shipped().clusters()};
  for (int round = 0; round < 3000; ++round) {
    std::string text = good;
    for (unsigned edits = 1 + random() % 4; edits > 0; --edits) {
      std::size_t at = random() % text.size();
      switch (random() % 4) {
        case 0:
          text[at] = static_cast<char>(random() % 256);
          break;
        case 1:
          text.erase(at, random() % 8);
          break;
        case 2:
          text.insert(at, text.substr(random() % text.size(), random() % 12));
          break;
        case 3:
          text.insert(at, std::string(1 + random() % 30, '9'));
          break;
      }
      if (text.empty()) text = " ";
    }
    auto file = parse_toml(text, "damaged.toml");
    if (!file) {
      EXPECT_FALSE(file.error().message.empty());
      continue;
    }
    auto cluster = cluster_of(*file, known);
    EXPECT_TRUE(cluster || !cluster.error().message.empty());
  }
}

TEST(Flat, ParsesToTheSameCluster) {
  for (const char* spec : {"dgx-h100:4", "p4de:2", "t4"}) {
    auto cluster = shipped().cluster(spec);
    ASSERT_TRUE(cluster);
    std::string text = to_flat(*cluster);
    auto back = parse_flat(text);
    ASSERT_TRUE(back) << back.error().message;
    EXPECT_EQ(to_flat(*back), text);
    EXPECT_EQ(back->gpu.marketing, cluster->gpu.marketing);
    EXPECT_EQ(back->gpu.memory_bytes, cluster->gpu.memory_bytes);
    EXPECT_EQ(back->gpu.peak_tflops, cluster->gpu.peak_tflops);
    EXPECT_EQ(back->extra, cluster->extra);
    EXPECT_EQ(back->world_size(), cluster->world_size());
  }
  EXPECT_TRUE(has(parse_flat("nodes=2\nnodez=3\n").error().message, "line 2: unknown key"));
  EXPECT_TRUE(has(parse_flat("nodes\n").error().message, "key=value"));
  EXPECT_TRUE(has(parse_flat("nodes=two\n").error().message, "bad value"));
}

TEST(Draw, ShowsNodesLinksAndNetwork) {
  std::string text = draw(*shipped().cluster("dgx-h100:4"));
  EXPECT_TRUE(has(text, "4 nodes of 8 × h100-sxm = 32 GPUs"));
  EXPECT_TRUE(has(text, "NVSwitch, 450 GB/s"));
  EXPECT_TRUE(has(text, "8 × 400 Gb/s infiniband"));
  EXPECT_TRUE(has(draw(*shipped().cluster("pcie-8xrtx3090")), "PCIe, 31.5 GB/s"));
}

TEST(Directory, EnvironmentVariableHasPriority) {
  setenv("MAYA_CATALOG", "/nonexistent", 1);
  EXPECT_TRUE(has(Catalog::load().error().message, "MAYA_CATALOG is '/nonexistent'"));
  unsetenv("MAYA_CATALOG");
  EXPECT_TRUE(Catalog::load());
}

}  // namespace
}  // namespace maya::catalog
