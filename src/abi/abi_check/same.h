// The ways in which our declaration must equal NVIDIA's.
#pragma once

#include <cstddef>

#define OUR_VALUE(name) constexpr long long our_##name = static_cast<long long>(maya::abi::name);
#define SAME_VALUE(name) static_assert(our_##name == static_cast<long long>(name), #name);
#define SAME_SIZE(ours, theirs) static_assert(sizeof(maya::abi::ours) == sizeof(::theirs), #ours);
#define FITS(ours, theirs) static_assert(sizeof(maya::abi::ours) <= sizeof(::theirs), #ours);
#define SAME_OFFSET(ours, theirs, field) \
  static_assert(offsetof(maya::abi::ours, field) == offsetof(::theirs, field), #ours "." #field);
