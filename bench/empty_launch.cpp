// The baseline: an empty launch function in another shared library.
#include <cstddef>
struct Dim {
  unsigned x, y, z;
};
extern "C" int empty_launch(const void*, Dim, Dim, void**, std::size_t, void*) { return 0; }
