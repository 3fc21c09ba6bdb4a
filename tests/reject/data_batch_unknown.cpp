// SPDX-License-Identifier: Apache-2.0
// needs: torch
// expect: frugal: the loop does not know the tensors of this batch type. Give it a member `void each_tensor(auto&& f) { f(a, b); }` that names them, or specialise frugal::batch_traits for it.
#include <frugal/policy/optimize.hpp>
#include <frugal/trainer.hpp>

#include <torch/nn/modules/linear.h>

#include <vector>

using namespace frugal;

struct Rows {
  at::Tensor values;
#ifdef FRUGAL_REJECT
  // Names no tensor.
#else
  void each_tensor(auto&& f) { f(values); }
#endif
};

struct Squares {
  at::Tensor operator()(torch::nn::Linear& net, Rows const& rows) const {
    return net(rows.values).square().mean();
  }
};

void train(std::vector<Rows> const& rows) {
  Trainer trainer{torch::nn::Linear(1, 1), Squares{}, Settings{}, Optimize<SGD>{}};
  static_cast<void>(trainer.fit(rows));
}
