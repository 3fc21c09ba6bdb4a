// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/policy/average.hpp>

#include <frugal/error.hpp>
#include <frugal/inline.hpp>

namespace frugal::detail {

FRUGAL_INLINE void refuse_cadence_in_graph() {
  throw SettingsError(
      {.what = "the average's cadence was set to another number than its type has",
       .where = "Average::rule.every",
       .why = "CudaGraph captures Every<1> within the step, which is the same in all steps",
       .fix = "Write the cadence into the type, as in Ema<0.999, Every<10>>."});
}

FRUGAL_INLINE FreshStatistics::FreshStatistics(torch::nn::Module& module) {
  if (has_compiled_batch_norms(module)) {
    throw ModuleError(
        {.what = "the module's BatchNorm layers are compiled code",
         .where = "update_batch_norm",
         .why = "its momentum is part of the code, so no mean over all batches can be had",
         .fix = "Load the weights into the module that was exported, and update its statistics "
                "there (torch.optim.swa_utils.update_bn)."});
  }
  each_batch_norm(module, [&](auto& layer) {
    if (!layer.running_mean.defined() || !layer.is_training()) return;
    before_.push_back({&layer, layer.running_mean.clone(), layer.running_var.clone(),
                       layer.num_batches_tracked.clone(), layer.options.momentum()});
  });
  each_layer([](auto& layer, Before const&) {
    layer.reset_running_stats();
    layer.options.momentum(std::nullopt);
  });
}

FRUGAL_INLINE FreshStatistics::~FreshStatistics() {
  each_layer([](auto& layer, Before const& each) { layer.options.momentum(each.momentum); });
}

FRUGAL_INLINE void FreshStatistics::undo() {
  each_layer([](auto& layer, Before const& each) { restore(layer, each); });
}

FRUGAL_INLINE void FreshStatistics::undo_unseen() {
  each_layer([](auto& layer, Before const& each) {
    if (layer.num_batches_tracked.template item<std::int64_t>() == 0) restore(layer, each);
  });
}

}  // namespace frugal::detail
