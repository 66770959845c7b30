// Who is in a communicator, as torch.distributed knows it.
//
// NCCL is never told which ranks of the job its members are, and where only some ranks run, those
// that do not cannot say so themselves. torch knows: the call that makes a group has the list of
// its ranks among its variables, and the module keeps one for each group. Both are read here,
// nothing is changed; a list counts only if it agrees with what NCCL was told. Empty where there is
// no Python, no torch, or no such list.
#pragma once

#include <vector>

namespace maya::nccl {

// The list that torch is making a group of now and that has `member` at `place`.
std::vector<int> group_being_made(int member, int place);

// The only list among torch's groups that has so many ranks, with `member` at `place`.
std::vector<int> group_of(int size, int member, int place);

}  // namespace maya::nccl
