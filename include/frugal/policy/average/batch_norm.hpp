// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <optional>
#include <utility>
#include <vector>

#include <frugal/core/libtorch/batch_norms.hpp>
#include <frugal/core/libtorch/layer_tensors.hpp>
#include <frugal/core/libtorch/module_hold.hpp>
#include <frugal/core/libtorch/parameters.hpp>
#include <frugal/core/libtorch/quietly.hpp>
#include <frugal/core/run/failure.hpp>
#include <frugal/core/run/forward_batch.hpp>
#include <frugal/core/source/batch.hpp>
#include <frugal/core/source/range.hpp>
#include <frugal/core/source/source.hpp>
#include <frugal/data/refused_source.hpp>

namespace frugal {

namespace detail {

/// For its lifetime, resets the statistics of the BatchNorm layers that update them, and accumulates
/// them as the plain mean over batches. After ModuleHold::train(): a layer that is frozen, or that is in
/// evaluation mode while the module is not, computes with those that it has.
class [[nodiscard]] FreshStatistics {
 public:
  explicit FreshStatistics(torch::nn::Module& module);
  FreshStatistics(FreshStatistics const&) = delete;
  FreshStatistics& operator=(FreshStatistics const&) = delete;
  ~FreshStatistics();
  /// Restores the previous statistics; may throw, because copying to a device may.
  void undo();
  /// Restores those of layers that no pass has called: nothing is known of their inputs.
  void undo_unseen();
  bool empty() const { return before_.empty(); }

 private:
  struct Before {
    torch::nn::Module* layer;
    at::Tensor mean, variance, batches;
    std::optional<double> momentum;
  };

  template <class Layer>
  static void restore(Layer& layer, Before const& each) {
    layer.running_mean.copy_(each.mean);
    layer.running_var.copy_(each.variance);
    layer.num_batches_tracked.copy_(each.batches);
  }
  template <class Use>
  void each_layer(Use const& use) {
    for (Before const& each : before_) {
      each_batch_norm(*each.layer, [&](auto& layer) { use(layer, each); });
    }
  }

  std::vector<Before> before_;
};

/// Applies the module to a batch's data.
struct ForwardData {
  template <class Module, HasData B>
  void operator()(Module& module, B const& batch) const {
    forward_batch(module, batch);
  }
};

}  // namespace detail

/// Recomputes the running statistics of every BatchNorm layer of a module for its current weights:
/// the mean over the batches of a source, in training mode and without gradients. Averaged weights
/// need this, because averaged statistics are not the statistics of the averaged weights. Frozen layers
/// (Freeze) keep theirs, and so do those that are in evaluation mode while the module is in training mode,
/// and those that no pass calls.
///
/// `pass(module, batch)` runs the module on a batch; an objective works too. Restores modes and
/// momenta; if something throws, the statistics too. EmptySourceError for a source without a batch.
/// Values as torch.optim.swa_utils.update_bn.
template <class Module, class Data, class Pass = detail::ForwardData>
void update_batch_norm(Module& module, Data&& data, Pass&& pass = {}) {
  auto&& source = as_source(std::forward<Data>(data));
  torch::nn::Module& base = base_module(module);
  at::NoGradGuard const no_gradients;
  detail::ModuleHold hold(base);
  hold.train();
  detail::FreshStatistics fresh(base);
  if (fresh.empty()) return;
  c10::Device const device = detail::device_of_tensors(base);
  bool any = false;
  try {
    source.seek(Cursor{});
    while (auto batch = source.next()) {
      batch_to(*batch, device);
      pass(module, std::as_const(*batch));
      any = true;
    }
    if (!any) detail::refuse_empty_source("batch-norm", 0);
    fresh.undo_unseen();
  } catch (...) {
    detail::quietly([&] { fresh.undo(); });
    throw;
  }
}

}  // namespace frugal

#ifndef FRUGAL_COMPILED
#include <frugal/policy/average/batch_norm.ipp>
#endif
