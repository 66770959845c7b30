#include "values/exchange.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>

namespace maya::values {
namespace {

class ExchangeTest : public ::testing::Test {
 protected:
  ExchangeTest() { std::filesystem::remove_all(folder_); }
  ~ExchangeTest() override { std::filesystem::remove_all(folder_); }

  // Writes an entry as rank 1 would.
  void write(std::uint64_t key, std::uint64_t bytes, const std::string& payload) {
    const std::uint32_t known = 1, magic = 0x4d455843;
    std::ofstream file(folder_ + "/000000000000002a-1", std::ios::binary | std::ios::app);
    file.write(reinterpret_cast<const char*>(&key), sizeof key);
    file.write(reinterpret_cast<const char*>(&bytes), sizeof bytes);
    file.write(reinterpret_cast<const char*>(&known), sizeof known);
    file.write(reinterpret_cast<const char*>(&magic), sizeof magic);
    file << payload;
  }

  std::string folder_ = ::testing::TempDir() + "maya-exchange-test-" + std::to_string(getpid());
};

TEST_F(ExchangeTest, EntriesOfAPeerAreRead) {
  Exchange own(folder_, 42, 0, 2), peer(folder_, 42, 1, 2);
  peer.post(7, "abcd", 4);
  const auto entry = own.await(1, 7, 5);
  EXPECT_TRUE(entry.arrived && entry.known);
  EXPECT_EQ(std::string(entry.data.begin(), entry.data.end()), "abcd");
}

TEST_F(ExchangeTest, ImplausibleLengthsAreNotFollowed) {
  Exchange own(folder_, 42, 0, 2);
  write(1, 4, "abcd");
  write(2, ~std::uint64_t{0} - 23, "");  // the end of this entry would be its begin, for ever
  EXPECT_TRUE(own.await(1, 1, 0).arrived);
  EXPECT_FALSE(own.await(1, 2, 0).arrived);
  EXPECT_FALSE(own.await(1, 3, 0).arrived);
}

TEST_F(ExchangeTest, LinkInPlaceOfTheLogIsNotFollowed) {
  std::filesystem::create_directory(folder_);
  const std::string victim = folder_ + "/victim";
  std::ofstream(victim) << "theirs";
  std::filesystem::create_symlink(victim, folder_ + "/000000000000002a-0");
  Exchange own(folder_, 42, 0, 2);
  own.post(1, "abcdefgh", 8);
  EXPECT_FALSE(own.usable());
  EXPECT_EQ(std::filesystem::file_size(victim), 6u);
}

}  // namespace
}  // namespace maya::values
