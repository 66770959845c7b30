// The weight space of a recurrent network, which PyTorch walks and copies into.
#include "shim/cudnn/rnn.h"

#include <gtest/gtest.h>

namespace maya::shim::cudnn {
namespace {

RnnShape shape(int cell, int layers, int direction, int projection = 0) {
  RnnShape rnn;
  rnn.cell = cell, rnn.layers = layers, rnn.direction = direction, rnn.projection = projection;
  rnn.input = 16, rnn.hidden = 32;
  return rnn;
}

// Every piece lies behind the one before: no gaps, no overlaps, and together they are the whole
// space.
void expect_partition(const RnnShape& rnn) {
  std::int64_t next = 0;
  int pseudo = rnn.layers * rnn.directions();
  for (int layer = 0; layer < pseudo; ++layer)
    for (int linear = 0; linear <= 2 * rnn.gates(); ++linear) {
      Piece piece = matrix(rnn, layer, linear);
      if (!piece.rows) continue;
      EXPECT_EQ(piece.offset, next);
      next += piece.rows * piece.cols;
    }
  for (int layer = 0; layer < pseudo; ++layer)
    for (int linear = 0; linear < 2 * rnn.gates(); ++linear) {
      Piece piece = bias(rnn, layer, linear);
      if (!piece.rows) continue;
      EXPECT_EQ(piece.offset, next);
      next += piece.rows;
    }
  EXPECT_EQ(next, weight_elements(rnn));
}

TEST(RnnWeights, PiecesPartitionTheSpace) {
  for (int cell : {CUDNN_LSTM, CUDNN_GRU, CUDNN_RNN_TANH})
    for (int direction : {CUDNN_UNIDIRECTIONAL, CUDNN_BIDIRECTIONAL})
      expect_partition(shape(cell, 3, direction));
  expect_partition(shape(CUDNN_LSTM, 2, CUDNN_BIDIRECTIONAL, 8));
  RnnShape plain = shape(CUDNN_LSTM, 2, CUDNN_UNIDIRECTIONAL);
  plain.bias = CUDNN_RNN_NO_BIAS;
  expect_partition(plain);
}

TEST(RnnWeights, LstmHasTheSizeOfItsFormula) {
  // 4 gates of (input + hidden) and two biases.
  EXPECT_EQ(weight_elements(shape(CUDNN_LSTM, 1, CUDNN_UNIDIRECTIONAL)),
            4 * 32 * (16 + 32) + 2 * 4 * 32);
}

TEST(RnnWeights, NothingBeyondTheLastLayer) {
  RnnShape rnn = shape(CUDNN_GRU, 1, CUDNN_UNIDIRECTIONAL);
  EXPECT_EQ(matrix(rnn, 1, 0).rows, 0);
  EXPECT_EQ(matrix(rnn, 0, 6).rows, 0);  // no projection
  EXPECT_EQ(bias(rnn, 0, 6).rows, 0);
}

TEST(RnnWork, SinglePrecisionUsesTensorCoresUnlessTheProgramForbidsIt) {
  RnnShape rnn = shape(CUDNN_LSTM, 1, CUDNN_UNIDIRECTIONAL);
  rnn.type = CUDNN_DATA_FLOAT;
  EXPECT_EQ(work_of(rnn, 10, 4, Direction::forward).dtype, DType::tf32);
  rnn.math = CUDNN_FMA_MATH;
  EXPECT_EQ(work_of(rnn, 10, 4, Direction::forward).dtype, DType::f32);
  rnn.type = CUDNN_DATA_HALF;
  EXPECT_EQ(work_of(rnn, 10, 4, Direction::forward).dtype, DType::f16);
}

}  // namespace
}  // namespace maya::shim::cudnn
