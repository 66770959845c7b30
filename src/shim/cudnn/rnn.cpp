#include "shim/cudnn/rnn.h"

namespace maya::shim::cudnn {
namespace {

std::int64_t input_of(const RnnShape& rnn, int pseudo_layer) {
  bool first = pseudo_layer < rnn.directions();
  return first ? rnn.input : std::int64_t{rnn.state()} * rnn.directions();
}

std::int64_t matrices_of(const RnnShape& rnn, int pseudo_layer) {
  std::int64_t gates = rnn.gates(), hidden = rnn.hidden;
  return gates * hidden * (input_of(rnn, pseudo_layer) + rnn.state()) +
         (rnn.projected() ? std::int64_t{rnn.projection} * hidden : 0);
}

std::int64_t all_matrices(const RnnShape& rnn) {
  std::int64_t sum = 0;
  for (int layer = 0; layer < rnn.layers * rnn.directions(); ++layer)
    sum += matrices_of(rnn, layer);
  return sum;
}

// Biases of a pseudo-layer: none, one per gate, or one per gate for input and recurrence each.
std::int64_t bias_vectors(const RnnShape& rnn) {
  return rnn.bias == CUDNN_RNN_NO_BIAS       ? 0
         : rnn.bias == CUDNN_RNN_DOUBLE_BIAS ? 2 * rnn.gates()
                                             : rnn.gates();
}

}  // namespace

Piece matrix(const RnnShape& rnn, int pseudo_layer, int linear) {
  int gates = rnn.gates();
  if (pseudo_layer < 0 || pseudo_layer >= rnn.layers * rnn.directions() || linear < 0 ||
      linear > 2 * gates)
    return {};
  Piece piece;
  for (int layer = 0; layer < pseudo_layer; ++layer) piece.offset += matrices_of(rnn, layer);
  std::int64_t input = input_of(rnn, pseudo_layer), hidden = rnn.hidden;
  if (linear < gates) {
    piece.offset += linear * hidden * input;
    piece.rows = hidden, piece.cols = input;
  } else if (linear < 2 * gates) {
    piece.offset += gates * hidden * input + (linear - gates) * hidden * rnn.state();
    piece.rows = hidden, piece.cols = rnn.state();
  } else if (rnn.projected()) {
    piece.offset += gates * hidden * (input + rnn.state());
    piece.rows = rnn.projection, piece.cols = hidden;
  }
  return piece;
}

Piece bias(const RnnShape& rnn, int pseudo_layer, int linear) {
  int gates = rnn.gates();
  if (pseudo_layer < 0 || pseudo_layer >= rnn.layers * rnn.directions() || linear < 0 ||
      linear >= 2 * gates)
    return {};
  std::int64_t vectors = bias_vectors(rnn);
  int at = linear;
  if (rnn.bias == CUDNN_RNN_SINGLE_REC_BIAS) at -= gates;
  if (at < 0 || at >= vectors) return {};
  return {all_matrices(rnn) + (pseudo_layer * vectors + at) * rnn.hidden, rnn.hidden, 1};
}

std::int64_t weight_elements(const RnnShape& rnn) {
  return all_matrices(rnn) + bias_vectors(rnn) * rnn.hidden * rnn.layers * rnn.directions();
}

Rnn work_of(const RnnShape& rnn, std::int64_t length, std::int64_t batch, Direction direction) {
  Rnn work;
  work.seq = length, work.batch = batch, work.input = rnn.input, work.hidden = rnn.hidden;
  work.layers = rnn.layers, work.gates = rnn.gates(), work.directions = rnn.directions();
  work.dtype = dtype_of(rnn.type);
  // The default permits tensor cores for single precision; PyTorch asks for FMA where the program
  // does not allow TF32.
  if (work.dtype == DType::f32 && rnn.math != CUDNN_FMA_MATH) work.dtype = DType::tf32;
  work.direction = direction;
  return work;
}

// Gate pre-activations of one layer.
std::size_t workspace_bytes(const RnnShape& rnn, std::int64_t length, std::int64_t batch) {
  std::int64_t elements = length * batch * rnn.hidden * rnn.gates() * rnn.directions();
  return static_cast<std::size_t>(bytes_of(dtype_of(rnn.type), elements));
}

// Gates, cell state and output of every layer, for the backward pass.
std::size_t reserve_bytes(const RnnShape& rnn, std::int64_t length, std::int64_t batch) {
  std::int64_t kept = rnn.gates() + (rnn.cell == CUDNN_LSTM ? 2 : 1);
  std::int64_t elements = length * batch * rnn.hidden * kept * rnn.directions() * rnn.layers;
  return static_cast<std::size_t>(bytes_of(dtype_of(rnn.type), elements));
}

}  // namespace maya::shim::cudnn
