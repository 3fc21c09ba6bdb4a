// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <torch/nn/module.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>

#include <cstddef>
#include <optional>
#include <string>
#include <unordered_set>
#include <vector>

#include <frugal/core/libtorch/parameters.hpp>
#include <frugal/core/state/state_reader.hpp>
#include <frugal/model/where.hpp>

namespace frugal::detail {

/// A mask's bits, eight to a byte: what a checkpoint has of it.
at::Tensor packed_bits(at::Tensor const& mask);
at::Tensor unpacked_bits(at::Tensor const& packed, at::IntArrayRef shape);

/// The weights of the layers that multiply by a matrix: linear and convolutional ones.
std::unordered_set<at::TensorImpl const*> matrices_of(torch::nn::Module& module);

/// Weights, and which of their elements are kept. Pruned ones are zeros in the weights themselves.
class MaskedWeights {
 public:
  /// Takes the parameters that match `where`, or the matrices of the module; keeps all elements.
  /// SettingsError if there is none; `who` names the policy.
  void select(torch::nn::Module& module, Parameters const& parameters,
              std::optional<NamePatterns> const& where, std::string const& who);

  /// No step may move what is pruned: a norm of the gradients is then that of what trains.
  void mask_gradients() const;
  /// Momentum and weight decay may have moved what is pruned. A product, so that a NaN stays seen.
  void mask_weights() const;

  /// The share of pruned elements.
  double sparsity() const;
  /// Whether every pruned element of the weights is zero.
  bool holds() const;

  template <class Archive>
  void persist(Archive& archive) {
    archive.scope("masks", [&](auto& inner) {
      for (std::size_t i = 0; i < names.size(); ++i) {
        at::Tensor bits;
        if constexpr (!Archive::loading) bits = packed_bits(masks[i]);
        inner(names[i], bits);
        if constexpr (Archive::loading) {
          auto const to = destination(archive).value_or(masks[i].device());
          at::Tensor const loaded = unpacked_bits(bits.to(to), weights[i].sizes());
          // Existing memory is filled: a captured step reads it.
          if (to == masks[i].device()) {
            masks[i].copy_(loaded);
          } else {
            masks[i] = loaded.contiguous();
          }
        }
      }
    });
  }

  std::vector<std::string> names;
  std::vector<at::Tensor> weights;
  std::vector<at::Tensor> masks;  ///< of bool: true is kept
};

}  // namespace frugal::detail

#ifndef FRUGAL_COMPILED
#include <frugal/model/prune/masked_weights.ipp>
#endif
