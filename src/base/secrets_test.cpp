#include "base/secrets.h"

#include <gtest/gtest.h>

namespace maya::base {
namespace {

std::string words(std::vector<std::string> command) {
  std::string line;
  for (const std::string& word : without_secrets(command)) line += (line.empty() ? "" : " ") + word;
  return line;
}

TEST(Secrets, ValuesOfOptionsAreMasked) {
  EXPECT_EQ(words({"train.py", "--token=hunter2", "--lr=0.1"}), "train.py --token=*** --lr=0.1");
  EXPECT_EQ(words({"train.py", "--api-key", "abc", "--batch", "8"}),
            "train.py --api-key *** --batch 8");
  EXPECT_EQ(words({"env", "HF_TOKEN=x", "NVIDIA_API_KEY=y", "A=1", "python"}),
            "env HF_TOKEN=*** NVIDIA_API_KEY=*** A=1 python");
  EXPECT_EQ(words({"--wandb-key", "1234"}), "--wandb-key ***");
  EXPECT_EQ(words({"--db.password=x", "--clientSecret=y", "--basic-auth", "u:p"}),
            "--db.password=*** --clientSecret=*** --basic-auth ***");
}

TEST(Secrets, CommandsInsideAWordAreSearched) {
  EXPECT_EQ(words({"bash", "-c", "WANDB_API_KEY=abc python t.py --token 12 && echo done"}),
            "bash -c WANDB_API_KEY=*** python t.py --token *** && echo done");
  EXPECT_EQ(words({"python", "-c", "login(token=\"abc\", user='me')"}),
            "python -c login(token=\"***\", user='me')");
  EXPECT_EQ(words({"--config", "{\"api_key\": \"abc\", \"n\": 3}"}),
            "--config {\"api_key\": \"***\", \"n\": 3}");
  EXPECT_EQ(words({"curl", "-H", "Authorization: Bearer abc.def"}),
            "curl -H Authorization: Bearer ***");
}

TEST(Secrets, PasswordsInUrlsAreMasked) {
  EXPECT_EQ(words({"--db", "postgres://me:hunter2@host:5432/runs"}),
            "--db postgres://me:***@host:5432/runs");
}

TEST(Secrets, StringsThatLookRandomAreMasked) {
  EXPECT_EQ(words({"login", "hf_aBcDeFgHiJ1kLmNoPqRs"}), "login ***");
  EXPECT_EQ(words({"x", "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"}),
            "x ***");
}

TEST(Secrets, OrdinaryCommandsAreNotChanged) {
  for (const char* text :
       {"torchrun --nproc-per-node 8 train.py --hidden 4096 --num-key-value-heads 8",
        "train.py --pad-token-id 128001 --tokens-per-batch 4096 --max-tokens=2048 --key-dim=64",
        "train.py --tokenizer meta-llama/Llama-3.1-8B --out /data/runs/2026-11-16_gpt3_6b7_bf16",
        "python -m torch.distributed.run --rdzv-endpoint localhost:29500 a.py",
        "train.py --use-auth-token=true --monitor loss --author me"})
    EXPECT_EQ(without_secrets(std::string_view(text)), text);
}

TEST(Secrets, MaskingTwiceChangesNothing) {
  const std::string once = without_secrets(std::string_view("a --token=x b://u:p@h"));
  EXPECT_EQ(without_secrets(std::string_view(once)), once);
}

}  // namespace
}  // namespace maya::base
