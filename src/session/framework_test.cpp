#include "session/framework.h"

#include <gtest/gtest.h>

namespace maya::session {
namespace {

TEST(Framework, VersionOfTorchIsReadFromItsPackage) {
  EXPECT_EQ(version_in("from typing import Optional\n__all__ = ['__version__', 'debug']\n"
                       "__version__ = '2.1.0+cu121'\ndebug = False\n"),
            "2.1.0+cu121");
  EXPECT_EQ(version_in("__version__ = \"2.15.0\"\n"), "2.15.0");
  EXPECT_EQ(version_in("debug = False\n"), "");
  EXPECT_EQ(version_in("__version__ = "), "");
}

TEST(Framework, WithoutTorchThereIsNone) { EXPECT_EQ(torch_version(), ""); }

}  // namespace
}  // namespace maya::session
