#include "session/meetings.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <thread>

namespace maya::session {
namespace {

constexpr std::uint64_t id = 7, key = 1;
constexpr double patient = 60;

class MeetingsTest : public testing::Test {
 protected:
  MeetingsTest() {
    compute.id = 1, network.id = 2;
    char name[] = "/tmp/maya-meetings-XXXXXX";
    folder = mkdtemp(name);
    mine = std::make_shared<values::Exchange>(folder, id, 0, 2);
    theirs = std::make_shared<values::Exchange>(folder, id, 1, 2);
    mine->post(key, nullptr, 0);
    meetings.queued(network, mine, 2, key);
  }
  ~MeetingsTest() override { std::filesystem::remove_all(folder); }

  // Whether attending returns only after the other member has come.
  bool waits() {
    std::atomic<bool> came{false};
    std::thread other([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      came = true;
      theirs->post(key, nullptr, 0);
    });
    meetings.attend(patient);
    const bool waited = came;
    other.join();
    return waited;
  }

  std::string folder;
  Progress progress;
  Meetings meetings{progress};
  Stream compute, network;
  Event event;
  std::shared_ptr<values::Exchange> mine, theirs;
};

TEST_F(MeetingsTest, AHostThatWaitsForTheStreamMeetsTheOthers) {
  progress.reached(network);
  EXPECT_TRUE(waits());
  EXPECT_FALSE(meetings.attend(patient)) << "met already";
}

TEST_F(MeetingsTest, AStreamThatWaitsForTheNetworkPassesTheMeetingOn) {
  progress.recorded(event, network);
  progress.waits(compute, event);
  progress.reached(compute);
  EXPECT_TRUE(waits());
}

TEST_F(MeetingsTest, NobodyWaitsForWhatTheHostHasNotWaitedFor) {
  progress.reached(compute);
  EXPECT_FALSE(waits());
  progress.reached(network);
  EXPECT_TRUE(meetings.attend(patient));  // the other one has come: returns at once
}

TEST_F(MeetingsTest, AnEventFromBeforeTheMeetingDoesNotCoverIt) {
  Progress other;
  Meetings later{other};
  other.recorded(event, network);
  later.queued(network, mine, 2, key);
  other.reached(event);
  EXPECT_FALSE(later.attend(patient));
  other.reached_all();
  theirs->post(key, nullptr, 0);
  EXPECT_TRUE(later.attend(patient));
}

TEST_F(MeetingsTest, AMemberThatNeverComesIsGivenUp) {
  progress.reached(network);
  EXPECT_TRUE(meetings.attend(0.01));
}

}  // namespace
}  // namespace maya::session
