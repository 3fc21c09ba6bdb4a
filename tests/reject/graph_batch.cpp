// SPDX-License-Identifier: Apache-2.0
// needs: torch
// expect: frugal: CudaGraph copies batches into tensors that stay in place, and the batch_traits of this batch type do not list its tensors. Write batch_traits<B>::each_tensor(batch, f).
#include <frugal/policy/cuda_graph.hpp>
#include <frugal/policy/optimize.hpp>
#include <frugal/trainer.hpp>

#include <torch/nn/modules/linear.h>

#include <cstdint>
#include <vector>

struct Row {
  at::Tensor values;
};
template <>
struct frugal::batch_traits<Row> {
  static std::int64_t samples(Row const& row) { return row.values.size(0); }
  static std::int64_t tokens(Row const& row) { return row.values.size(0); }
  static void to(Row&, at::Device) {}
};
struct Sum {
  at::Tensor operator()(torch::nn::Linear& net, Row const& row) const {
    return net->forward(row.values).sum();
  }
};

void train(frugal::Trainer<torch::nn::Linear, Sum, frugal::Optimize<frugal::AdamW>>& trainer,
           std::vector<Row> const& rows) {
  static_cast<void>(trainer.fit(rows));
}
#ifdef FRUGAL_REJECT
void train(frugal::Trainer<torch::nn::Linear, Sum, frugal::Optimize<frugal::AdamW>,
                           frugal::CudaGraph<frugal::WholeStep>>& trainer,
           std::vector<Row> const& rows) {
  static_cast<void>(trainer.fit(rows));
}
#endif
