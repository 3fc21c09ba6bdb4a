// SPDX-License-Identifier: Apache-2.0
// Shapes: B samples, F features, C classes.
#pragma once

#include <ATen/ATen.h>
#include <torch/nn/modules/linear.h>
#include <frugal/core/compose/policy.hpp>
#include <frugal/core/run/counters.hpp>
#include <frugal/core/run/phases.hpp>
#include <frugal/core/source/batch.hpp>
#include <frugal/core/source/source.hpp>
#include <frugal/policy/kinds.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

// Policies, modules and sources for tests of training.
namespace frugal_test::loop {

using namespace frugal;

/// A small network with the kinds of layers that matter to a loop: a normalization that counts
/// batches, and weights.
struct Net : torch::nn::Module {
  explicit Net(std::uint64_t seed = 1, at::ScalarType type = at::kDouble) {
    at::manual_seed(seed);
    first = register_module("first", torch::nn::Linear(4, 8));
    second = register_module("second", torch::nn::Linear(8, 3));
    to(type);
  }
  at::Tensor forward(at::Tensor const& data_BF) {
    return second->forward(at::tanh(first->forward(data_BF)));
  }
  torch::nn::Linear first{nullptr}, second{nullptr};
};

inline Batch batch_of_size(std::int64_t samples, std::uint64_t seed,
                           at::ScalarType type = at::kDouble) {
  at::manual_seed(seed);
  return {at::randn({samples, 4}, type), at::randint(3, {samples}, at::kLong)};
}
inline std::vector<Batch> batches_of_sizes(std::vector<std::int64_t> const& sizes,
                                           at::ScalarType type = at::kDouble) {
  std::vector<Batch> batches;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    batches.push_back(batch_of_size(sizes[i], 100 + i, type));
  }
  return batches;
}

inline std::vector<at::Tensor> copy_of(torch::nn::Module const& module) {
  std::vector<at::Tensor> all;
  for (at::Tensor const& tensor : module.parameters()) all.push_back(tensor.detach().clone());
  return all;
}
inline bool same(std::vector<at::Tensor> const& a, std::vector<at::Tensor> const& b) {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (!a[i].equal(b[i])) return false;
  }
  return true;
}

/// A source without a size, which records its seeks.
struct Stream {
  std::vector<Batch> batches{};
  std::vector<Cursor> sought{};
  std::size_t at = 0;

  void seek(Cursor const& cursor) {
    sought.push_back(cursor);
    at = 0;
    for (std::uint64_t seen = 0; seen < cursor.position && at < batches.size(); ++at) {
      seen += static_cast<std::uint64_t>(batches[at].data.size(0));
    }
  }
  std::optional<Batch> next() {
    if (at == batches.size()) return std::nullopt;
    return batches[at++];
  }
};

/// Runs `f` and returns the frugal error of type E that it throws; nothing if it does not throw.
template <class E, class F>
std::optional<E> thrown_by(F&& f) {
  try {
    f();
  } catch (E const& error) {
    return error;
  }
  return std::nullopt;
}

inline bool says(std::string const& text, std::string const& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace frugal_test::loop
