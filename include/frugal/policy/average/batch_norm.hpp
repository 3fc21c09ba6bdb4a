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
#include <frugal/core/libtorch/statistics_layers.hpp>
#include <frugal/core/loop/measure.hpp>
#include <frugal/core/run/failure.hpp>
#include <frugal/core/run/forward_batch.hpp>
#include <frugal/data/batch.hpp>
#include <frugal/data/range.hpp>
#include <frugal/data/refused_source.hpp>
#include <frugal/data/source.hpp>
#include <frugal/inline.hpp>

namespace frugal {

namespace detail {

/// Calls `use(layer)` for every BatchNorm layer of a module that tracks statistics and is not frozen.
template <class Use>
void each_tracking_batch_norm(torch::nn::Module& module, Use&& use) {
  each_batch_norm(module, [&](auto& layer) {
    if (layer.running_mean.defined() && !is_frozen(statistics_of(layer))) use(layer);
  });
}

/// For its lifetime, resets the statistics of BatchNorm layers and accumulates them as the plain
/// mean over batches.
class [[nodiscard]] FreshStatistics {
 public:
  FRUGAL_INLINE explicit FreshStatistics(torch::nn::Module& module) : module_(module) {
    each_tracking_batch_norm(module_, [&](auto& layer) {
      before_.push_back({layer.running_mean.clone(), layer.running_var.clone(),
                         layer.num_batches_tracked.clone(), layer.options.momentum()});
    });
    each_tracking_batch_norm(module_, [](auto& layer) {
      layer.reset_running_stats();
      layer.options.momentum(std::nullopt);
    });
  }
  FreshStatistics(FreshStatistics const&) = delete;
  FreshStatistics& operator=(FreshStatistics const&) = delete;
  FRUGAL_INLINE ~FreshStatistics() {
    auto each = before_.begin();
    each_tracking_batch_norm(module_,
                             [&](auto& layer) { layer.options.momentum(each++->momentum); });
  }
  /// Restores the previous statistics; may throw, because copying to a device may.
  FRUGAL_INLINE void undo() {
    auto each = before_.begin();
    each_tracking_batch_norm(module_, [&](auto& layer) {
      layer.running_mean.copy_(each->mean);
      layer.running_var.copy_(each->variance);
      layer.num_batches_tracked.copy_(each->batches);
      ++each;
    });
  }
  bool empty() const { return before_.empty(); }

 private:
  struct Before {
    at::Tensor mean, variance, batches;
    std::optional<double> momentum;
  };

  torch::nn::Module& module_;
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

/// Recomputes the running statistics of every BatchNorm layer of a module for its current weights, but
/// for frozen ones (Freeze), which keep theirs:
/// the mean over the batches of a source, in training mode and without gradients. Averaged weights
/// need this, because averaged statistics are not the statistics of the averaged weights.
///
/// `pass(module, batch)` runs the module on a batch; an objective works too. Restores modes and
/// momenta; if something throws, the statistics too. EmptySourceError for a source without a batch.
/// Values as torch.optim.swa_utils.update_bn.
template <class Module, class Data, class Pass = detail::ForwardData>
void update_batch_norm(Module& module, Data&& data, Pass&& pass = {}) {
  auto&& source = as_source(std::forward<Data>(data));
  torch::nn::Module& base = base_module(module);
  at::NoGradGuard const no_gradients;
  detail::FreshStatistics fresh(base);
  if (fresh.empty()) return;
  detail::ModuleHold hold(base);
  hold.train();
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
  } catch (...) {
    detail::quietly([&] { fresh.undo(); });
    throw;
  }
}

}  // namespace frugal
