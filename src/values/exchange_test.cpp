#include "values/exchange.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace maya::values {
namespace {

class ExchangeTest : public ::testing::Test {
 protected:
  ExchangeTest() { std::filesystem::remove_all(folder_); }
  ~ExchangeTest() override { std::filesystem::remove_all(folder_); }

  // Writes an entry as rank 1 would, into a log that it has begun.
  void write(std::uint64_t key, std::uint64_t bytes, const std::string& payload) {
    const std::uint32_t known = 1, magic = 0x4d455843;
    std::ofstream file(log_of(1), std::ios::binary | std::ios::app);
    file.write(reinterpret_cast<const char*>(&key), sizeof key);
    file.write(reinterpret_cast<const char*>(&bytes), sizeof bytes);
    file.write(reinterpret_cast<const char*>(&known), sizeof known);
    file.write(reinterpret_cast<const char*>(&magic), sizeof magic);
    file << payload;
  }

  std::string log_of(int rank) const {
    return folder_ + "/000000000000002a-" + std::to_string(rank);
  }
  std::uint64_t disk_of(int rank) const {
    struct stat info {};
    return stat(log_of(rank).c_str(), &info) == 0 ? static_cast<std::uint64_t>(info.st_blocks) * 512
                                                  : 0;
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
  { Exchange begun(folder_, 42, 1, 2); }
  write(1, 4, "abcd");
  write(2, ~std::uint64_t{0} - 23, "");  // the end of this entry would be its begin, for ever
  EXPECT_TRUE(own.await(1, 1, 0).arrived);
  EXPECT_FALSE(own.await(1, 2, 0).arrived);
  EXPECT_FALSE(own.await(1, 3, 0).arrived);
}

TEST_F(ExchangeTest, ZerosAreKnownAndTakeNoRoom) {
  Exchange own(folder_, 42, 0, 2), peer(folder_, 42, 1, 2);
  const std::vector<char> zeros(60000);
  for (std::uint64_t key = 1; key <= 100; ++key) peer.post(key, zeros.data(), zeros.size());
  const auto entry = own.await(1, 100, 5);
  EXPECT_TRUE(entry.known);
  EXPECT_EQ(entry.data, zeros);
  EXPECT_LT(std::filesystem::file_size(log_of(1)), 10000u);
}

TEST_F(ExchangeTest, WhatAllMembersHavePassedIsFreed) {
  Exchange own(folder_, 42, 0, 2), peer(folder_, 42, 1, 2);
  const std::vector<char> payload(60000, 'x');
  constexpr std::uint64_t last = 2000;  // 120 MB
  for (std::uint64_t key = 1; key <= last; ++key)
    for (Exchange* member : {&own, &peer}) {
      member->post(key, payload.data(), payload.size());
      member->pass(key);
    }
  EXPECT_LT(disk_of(0) + disk_of(1), std::uint64_t{60} << 20);
  // This member has not looked at anything so far.
  EXPECT_EQ(own.await(1, last, 5).data, payload);
  EXPECT_EQ(own.await(0, last, 5).data, payload);
}

TEST_F(ExchangeTest, AHeldEntryIsKeptWhileItsReaderIsBehind) {
  auto own = std::make_shared<Exchange>(folder_, 42, 0, 2);
  Exchange peer(folder_, 42, 1, 2);
  const std::vector<char> payload(60000, 'x');
  const std::string wanted(60000, 'w');
  constexpr std::uint64_t last = 2000;
  {
    const HeldEntry held(own, 300);
    for (std::uint64_t key = 1; key <= last; ++key) {
      peer.post(key, key == 300 ? wanted.data() : payload.data(), payload.size());
      peer.pass(key), own->pass(key);
    }
    const auto entry = own->await(1, 300, 5);
    EXPECT_EQ(std::string(entry.data.begin(), entry.data.end()), wanted);
    EXPECT_GE(disk_of(1), (last - 300) * payload.size());
  }
  for (std::uint64_t key = last + 1; key <= last + 500; ++key) {
    own->pass(key), peer.pass(key);
    peer.post(key, payload.data(), payload.size());
  }
  EXPECT_LT(disk_of(1), std::uint64_t{40} << 20);
}

TEST_F(ExchangeTest, MessagesAndWhatFollowsAreKept) {
  Exchange own(folder_, 42, 0, 2), peer(folder_, 42, 1, 2);
  const std::vector<char> payload(60000, 'x');
  peer.post(first_message_key | 5, "message", 7);
  for (std::uint64_t key = 1; key <= 1000; ++key) {
    peer.post(key, payload.data(), payload.size());
    peer.pass(key), own.pass(key);
  }
  const auto entry = own.await(1, first_message_key | 5, 5);
  EXPECT_EQ(std::string(entry.data.begin(), entry.data.end()), "message");
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
