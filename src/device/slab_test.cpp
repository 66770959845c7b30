#include "device/slab.h"

#include <gtest/gtest.h>

#include <string>

namespace maya::device {
namespace {

struct Thing {
  std::string name;
};

TEST(Slab, KnowsItsOwnAndNothingElse) {
  Slab<Thing, 8> slab;
  Thing* a = slab.create(Thing{"a"});
  EXPECT_EQ(slab.find(a)->name, "a");
  EXPECT_EQ(slab.find(nullptr), nullptr);
  EXPECT_EQ(slab.find(reinterpret_cast<char*>(a) + 1), nullptr);
  EXPECT_EQ(slab.find(reinterpret_cast<void*>(0xdeadbeef)), nullptr);
  int elsewhere = 0;
  EXPECT_EQ(slab.find(&elsewhere), nullptr);
}

TEST(Slab, ADestroyedHandleIsGone) {
  Slab<Thing, 8> slab;
  Thing* a = slab.create();
  EXPECT_TRUE(slab.destroy(a));
  EXPECT_EQ(slab.find(a), nullptr);
  EXPECT_FALSE(slab.destroy(a));
}

TEST(Slab, IsFullAtItsCapacityAndReusesSlots) {
  Slab<Thing, 2> slab;
  Thing* a = slab.create();
  ASSERT_NE(slab.create(), nullptr);
  EXPECT_EQ(slab.create(), nullptr);
  slab.destroy(a);
  EXPECT_NE(slab.create(), nullptr);
}

}  // namespace
}  // namespace maya::device
