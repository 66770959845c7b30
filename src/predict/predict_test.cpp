#include "predict/predict.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "predict/run_directory.h"
#include "predict/scaled.h"
#include "predict/settings.h"

namespace maya::predict {
namespace {

namespace fs = std::filesystem;

class Folder {
 public:
  Folder() {
    std::string pattern = (fs::temp_directory_path() / "maya-predict-XXXXXX").string();
    path = mkdtemp(pattern.data());
  }
  ~Folder() { fs::remove_all(path); }
  void write(const std::string& name, const std::string& text) const {
    std::ofstream(path + "/" + name, std::ios::binary) << text;
  }
  std::string path;
};

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(Settings, SplitsWhatIsOursFromWhatIsTheClusters) {
  const auto settings = parse_settings({{"communication", "0"},
                                        {"scale.gemm", "0.5"},
                                        {"scale.all_reduce", "2"},
                                        {"tokens_per_step", "4096"},
                                        {"network.nic_gbps", "200"}});
  ASSERT_TRUE(settings) << settings.error().message;
  EXPECT_EQ(settings->communication, 0);
  EXPECT_EQ(settings->factor(maya::Work(Gemm{})), 0.5);
  EXPECT_EQ(settings->factor(maya::Work(Attention{})), 1);
  EXPECT_EQ(settings->factor(maya::Work(Collective{})), 2);  // all_reduce is the default kind
  ASSERT_TRUE(settings->work);
  EXPECT_EQ(settings->work->unit, "tokens");
  EXPECT_EQ(settings->cluster, (Pairs{{"network.nic_gbps", "200"}}));
}

TEST(Settings, SaysWhatIsWrong) {
  EXPECT_TRUE(contains(parse_settings({{"scale.gem", "0.5"}}).error().message, "did you mean gemm"));
  EXPECT_TRUE(contains(parse_settings({{"communication", "-1"}}).error().message, "communication=-1"));
  EXPECT_TRUE(contains(parse_settings({{"scale.gemm", "fast"}}).error().message, "expected a number"));
  EXPECT_FALSE(split_setting("novalue"));
  EXPECT_FALSE(split_setting("=3"));
  EXPECT_FALSE(split_setting("key="));
  EXPECT_EQ(split_setting("a=b=c")->second, "b=c");
}

TEST(RunDirectory, SaysWhatIsWrong) {
  EXPECT_TRUE(contains(read_run("/nowhere/at/all").error().message, "no such run directory"));
  const Folder folder;
  EXPECT_TRUE(contains(read_run(folder.path).error().message, "no recording (rank-N.maya)"));
  folder.write("rank-0.maya", "this is no recording at all, but it has some bytes in it");
  EXPECT_TRUE(contains(read_run(folder.path).error().message, "rank-0.maya"));
  folder.write("run.toml", "version = 1\ncluster = \n");
  EXPECT_TRUE(contains(read_run(folder.path).error().message, "run.toml:2"));
  folder.write("run.toml", "version = 7\n");
  EXPECT_TRUE(contains(read_run(folder.path).error().message, "version 7 is newer"));
}

TEST(WriteFile, NamesTheFileItCannotWrite) {
  const Status status = write_file("/nowhere/at/all.json", "x");
  ASSERT_FALSE(status);
  EXPECT_TRUE(contains(status.error().message, "/nowhere/at/all.json"));
}

}  // namespace
}  // namespace maya::predict
