// SPDX-License-Identifier: Apache-2.0
// needs: torch
// expect: frugal: Accumulate<Auto> splits batches, and does not know all tensors of this batch type. Give it a member `void each_tensor(auto&& f) { f(a, b); }`, or its batch_traits `static B narrow(B const&, std::int64_t begin, std::int64_t count)`.
#include <frugal/policy/accumulate/split.hpp>
#include <frugal/policy/optimize.hpp>
#include <frugal/trainer.hpp>

#include <torch/nn/modules/linear.h>

using namespace frugal;

// It contains more than data and target, so its parts are undefined.
struct Masked {
  at::Tensor data, target, mask;
};

struct Squares {
  template <class B>
  at::Tensor operator()(torch::nn::Linear& net, B const& batch) const {
    return net(batch.data).square().mean();
  }
};

template <class Accumulation, class B>
void train() {
  Trainer trainer{torch::nn::Linear(1, 1), Squares{}, Settings{}, Optimize<SGD>{}, Accumulation{}};
  static_cast<void>(trainer.fit(std::vector<B>{}));
}

template void train<Accumulate<Auto>, Batch>();
template void train<Accumulate<2>, Masked>();
#ifdef FRUGAL_REJECT
template void train<Accumulate<Auto>, Masked>();
#endif
