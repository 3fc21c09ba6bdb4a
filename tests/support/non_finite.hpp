// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/frugal.hpp>

#include "support/running.hpp"

#include <memory>

/// Objectives whose loss is finite and whose gradient is not, in batches that are marked.
namespace frugal_test::support {

inline constexpr float mark = 1000;

/// N samples; `count` of them, from `first` on, are marked.
inline frugal::Batch marked(std::int64_t n, std::int64_t first, std::int64_t count) {
  frugal::Batch all = samples(n);
  all.data = all.data.clone();
  all.data.narrow(0, first, count).fill_(mark);
  return all;
}

/// The same without these samples.
inline frugal::Batch without(frugal::Batch const& all, std::int64_t first, std::int64_t count) {
  auto const cut = [&](at::Tensor const& tensor) {
    return at::cat({tensor.narrow(0, 0, first),
                    tensor.narrow(0, first + count, tensor.size(0) - first - count)});
  };
  return {cut(all.data), cut(all.target)};
}

/// 0 if the data has a mark, else 1; no host sync.
inline at::Tensor unmarked(at::Tensor const& data) { return (mark - data.abs().max()).clamp(0, 1); }

/// Cross-entropy. With a mark the gradient of every parameter is NaN: that of sqrt at 0 is
/// infinite, and it is multiplied by 0. The loss does not change.
struct Rooted {
  template <class Module>
  frugal::Loss operator()(Module& module, frugal::Batch const& batch) const {
    at::Tensor const logits = frugal::forward(module, batch.data.clamp(-10, 10));
    at::Tensor const root = (logits.sum() * 0 + unmarked(batch.data)).sqrt() * 0;
    return {.value = at::cross_entropy_loss(logits, batch.target) + root};
  }
};

/// Cross-entropy, and with a mark a gradient of 1e25 for the bias of the last layer: finite in
/// FP32, whose largest square is 3e38.
struct Huge {
  template <class Module>
  frugal::Loss operator()(Module& module, frugal::Batch const& batch) const {
    at::Tensor const logits = frugal::forward(module, batch.data.clamp(-10, 10));
    at::Tensor const slope = logits.mean() * (1 - unmarked(batch.data)) * 1e25;
    return {.value = at::cross_entropy_loss(logits, batch.target) + slope - slope.detach()};
  }
};

/// A table of rows, of which a batch reads some: row 7 only in a batch that has nothing else. There
/// its gradient is NaN, and no other batch ever reads it again.
struct Rows : torch::nn::Module {
  Rows() : table(register_module("table", torch::nn::Embedding(8, 3))) {
    torch::NoGradGuard const no_gradients;
    table->weight.copy_(support::table({8, 3}, 17, 0));
  }
  torch::nn::Embedding table;
};
struct RareRow {
  frugal::Loss operator()(std::shared_ptr<Rows>& module, frugal::Batch const& batch) const {
    at::Tensor const rows = module->table(batch.data);
    at::Tensor const common = (7 - batch.data.max()).clamp(0, 1).to(at::kFloat);
    return {.value = rows.square().mean() + (rows.sum() * 0 + common).sqrt() * 0};
  }
};
/// 40 samples in windows of 4; window `rare`, from 0, reads row 7.
inline frugal::Batch rows_of(std::int64_t rare) {
  at::Tensor const rows = at::arange(40, at::kLong).remainder(7);
  if (rare >= 0) rows.narrow(0, 4 * rare, 4).fill_(7);
  return {rows, at::zeros({40}, at::kLong)};
}

}  // namespace frugal_test::support
