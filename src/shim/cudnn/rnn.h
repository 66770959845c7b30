// Recurrent networks: the descriptor and where its weights lie in the weight space.
//
// The weight space holds, layer after layer (a pseudo-layer per direction), the input matrices of
// all gates, the recurrent matrices of all gates and the projection; then, in the same order, the
// biases. Frameworks rely on the gates of a kind being contiguous.
#pragma once

#include "maya/op.h"
#include "shim/cudnn/tensor.h"

namespace maya::shim::cudnn {

struct RnnShape {
  static constexpr session::HandleKind kind = session::handle_kind("cudnn RnnShape");
  int cell{CUDNN_LSTM}, bias{CUDNN_RNN_DOUBLE_BIAS}, direction{}, input_mode{}, type{}, precision{},
      math{};
  int input{}, hidden{}, projection{}, layers{1};
  unsigned flags{};

  int gates() const { return cell == CUDNN_LSTM ? 4 : cell == CUDNN_GRU ? 3 : 1; }
  int directions() const { return direction == CUDNN_BIDIRECTIONAL ? 2 : 1; }
  int state() const { return projection ? projection : hidden; }
  bool projected() const { return projection && projection != hidden; }
};

struct RnnData {
  static constexpr session::HandleKind kind = session::handle_kind("cudnn RnnData");
  int type{}, layout{}, max_length{}, batch{}, vector{};
};

// A piece of the weight space in elements; rows 0: there is none.
struct Piece {
  std::int64_t offset{}, rows{}, cols{};
};
Piece matrix(const RnnShape& rnn, int pseudo_layer, int linear);
Piece bias(const RnnShape& rnn, int pseudo_layer, int linear);
std::int64_t weight_elements(const RnnShape& rnn);

Rnn work_of(const RnnShape& rnn, std::int64_t length, std::int64_t batch, Direction direction);
std::size_t workspace_bytes(const RnnShape& rnn, std::int64_t length, std::int64_t batch);
std::size_t reserve_bytes(const RnnShape& rnn, std::int64_t length, std::int64_t batch);

}  // namespace maya::shim::cudnn
