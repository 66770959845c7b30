// Tests the program as a process: exit codes, one line on stderr, JSON on stdout.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "predict/sample_run.h"

namespace maya::cli {
namespace {

namespace fs = std::filesystem;

struct Ended {
  int code{};
  std::string out, err;
};

class Program : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "maya-cli-XXXXXX").string();
    folder_ = mkdtemp(pattern.data());
    fs::create_directory(folder_ + "/run");
    predict::sample::write_run(folder_ + "/run", {});
  }
  void TearDown() override { fs::remove_all(folder_); }

  Ended maya(const std::string& words) const {
    const std::string out = folder_ + "/out", err = folder_ + "/err";
    const std::string command = "cd " + folder_ +
                                " && MAYA_CATALOG=" MAYA_SOURCE_DIR "/catalog " MAYA_PROGRAM " " +
                                words + " >" + out + " 2>" + err;
    const int status = std::system(command.c_str());
    return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, text(out), text(err)};
  }
  static std::string text(const std::string& path) {
    std::ostringstream all;
    all << std::ifstream(path, std::ios::binary).rdbuf();
    return all.str();
  }
  // Expects that the verb fails with this code and one line that contains `part`.
  void refuses(const std::string& words, int code, const std::string& part) const {
    const Ended ended = maya(words);
    EXPECT_EQ(ended.code, code) << words;
    EXPECT_EQ(std::count(ended.err.begin(), ended.err.end(), '\n'), 1) << words << "\n"
                                                                       << ended.err;
    EXPECT_EQ(ended.err.rfind("maya: ", 0), 0U) << ended.err;
    EXPECT_NE(ended.err.find(part), std::string::npos) << ended.err;
  }

  std::string folder_;
};

TEST_F(Program, HelpOfEveryVerbHasAnExample) {
  for (const char* verb :
       {"predict", "compare", "trace", "report", "estimate", "net", "gpus", "clusters"}) {
    const Ended ended = maya(std::string(verb) + " --help");
    EXPECT_EQ(ended.code, 0);
    EXPECT_NE(ended.out.find("Example"), std::string::npos) << verb;
    EXPECT_NE(ended.out.find("--json"), std::string::npos) << verb;
  }
}

TEST_F(Program, PredictsAndKeepsThePredictionOfTheRun) {
  const Ended json = maya("predict run --json");
  ASSERT_EQ(json.code, 0) << json.err;
  const auto prediction = nlohmann::json::parse(json.out);
  EXPECT_EQ(prediction.at("version"), 1);
  EXPECT_EQ(prediction.at("cluster"), "dgx-h100:1");
  EXPECT_GT(prediction.at("step").at("ms"), 0);
  EXPECT_EQ(text(folder_ + "/run/prediction.json"), json.out);

  const Ended what_if = maya("predict run --set communication=0 --out free.json");
  ASSERT_EQ(what_if.code, 0) << what_if.err;
  EXPECT_NE(what_if.out.find("what if communication=0"), std::string::npos);
  EXPECT_EQ(text(folder_ + "/run/prediction.json"), json.out);  // untouched
  const Ended both = maya("compare run free.json");
  EXPECT_EQ(both.code, 0) << both.err;
  EXPECT_NE(both.out.find("communication=0"), std::string::npos);
}

TEST_F(Program, WritesTraces) {
  for (const char* format : {"perfetto", "chrome", "chakra"})
    EXPECT_EQ(maya(std::string("trace run --format ") + format).code, 0) << format;
  for (const char* name :
       {"timeline.pftrace", "timeline.json", "chakra/chakra.3.et", "chakra/comm_groups.json"})
    EXPECT_TRUE(fs::exists(folder_ + "/run/" + name)) << name;
  const Ended csv = maya("trace run --format csv");
  EXPECT_EQ(csv.out.rfind("ranks,stream,step", 0), 0U);
  EXPECT_EQ(maya("report run").code, 0);
  EXPECT_TRUE(fs::exists(folder_ + "/run/report.html"));
}

TEST_F(Program, UsageErrorsExitWith2) {
  refuses("frobnicate", 2, "unknown verb 'frobnicate'");
  refuses("predict", 2, "RUN is required");
  refuses("predict run --set novalue", 2, "expected key=value");
  refuses("compare run", 2, "At least 2 required");
  refuses("trace run --format svg", 2, "svg");
  refuses("net dgx-h100 all_reduce 8XB", 2, "8XB");
}

TEST_F(Program, FailuresExitWith1) {
  refuses("predict nowhere", 1, "nowhere: no such run directory");
  refuses("predict run --cluster dgx-h10", 1, "dgx-h10");
  refuses("predict run --cluster a100-80gb-sxm", 1, "has 4 ranks but a100-80gb-sxm has 1 GPU");
  refuses("predict run --set network.nic_gpbs=3", 1, "nic_gpbs");
  refuses("predict run --set scale.gem=1", 1, "did you mean gemm?");
  refuses("clusters no-such-cluster", 1, "no-such-cluster");
  fs::resize_file(folder_ + "/run/rank-1.maya", 40);
  refuses("predict run", 1, "rank-1.maya");
}

TEST_F(Program, ListsTheCatalogue) {
  EXPECT_GE(nlohmann::json::parse(maya("gpus --json").out).size(), 20U);
  EXPECT_GE(nlohmann::json::parse(maya("clusters --json").out).size(), 10U);
  EXPECT_NE(maya("clusters dgx-h100:2").out.find("NVSwitch"), std::string::npos);
}

}  // namespace
}  // namespace maya::cli
