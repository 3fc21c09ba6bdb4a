// SPDX-License-Identifier: Apache-2.0
// Shapes: of the running statistics C is all channels of a module's BatchNorm layers, L these layers. Of a
// layer W is processes, C its channels, B samples, ... whatever one sample has.
#pragma once

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/nn/module.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <frugal/cluster/agreement/same_run.hpp>
#include <frugal/cluster/communicator.hpp>
#include <frugal/core/libtorch/batch_norms.hpp>
#include <frugal/core/libtorch/interception.hpp>
#include <frugal/error.hpp>

namespace frugal::detail {

/// The running statistics of BatchNorm layers, where processes divide a window: those that one
/// process has after all of its micro-batches, in their order. A forward pass in training uses the
/// statistics of its micro-batch alone, and reads no running ones, so these may wait for the end of
/// the window.
///
/// An average over calls is linear in what it was before: running = kept * before + part. The part of a
/// micro-batch is what that leaves, with what was before the window, the same in every process. A layer
/// that the forward pass puts in evaluation mode uses the averages, and leaves no part.
class BatchNormStatistics {
 public:
  explicit BatchNormStatistics(Communicator& all) : all_(all) {}

  void begin(torch::nn::Module& module);
  void begin_window() { rows_.clear(); }

  /// During its lifetime a micro-batch is trained. Afterwards the averages are as before.
  class [[nodiscard]] Part {
   public:
    Part(BatchNormStatistics& of, double const&) : of_(of) {
      at::NoGradGuard const no_gradients;
      for (BatchNormBuffers const& each : of_.layers_) {
        before_.push_back({each.mean.clone(), each.variance.clone(), each.tracked.clone()});
      }
    }
    Part(Part const&) = delete;
    Part& operator=(Part const&) = delete;
    ~Part();
    /// The micro-batch is trained: keeps its part, on its device.
    void take();

   private:
    struct Before {
      at::Tensor mean, variance, tracked;
    };
    BatchNormStatistics& of_;
    std::vector<Before> before_;
  };

  /// This process has trained its micro-batches of the window.
  void end_passes() {}
  /// Ends the window, with the parts of all processes: one process after another, or `in_rounds` the
  /// first of each, then the second.
  void join(bool in_rounds) {
    if (layers_.empty()) return;
    join(gather_texts(all_, text(), "the statistics of BatchNorm"), in_rounds);
  }

 private:
  std::string text() const;
  void join(std::vector<std::string> const& texts, bool in_rounds);

  struct Average {
    at::Tensor mean, variance;  ///< double, in host memory
    std::int64_t tracked = 0;
  };

  void add(std::vector<Average>& averages, at::Tensor const& row_LCC) const;

  Communicator& all_;
  std::vector<BatchNormBuffers> layers_;
  std::vector<at::Tensor> rows_;  ///< [L + C + C]: calls, means, variances of a micro-batch
};

/// What processes exchange in the layers. Each exchange is of one layer and one pass, of all
/// processes: one that has no micro-batch takes part with nothing, until no process has one.
class SyncedBatchNorms {
 public:
  enum class Pass { none, forward, backward };

  explicit SyncedBatchNorms(Communicator& all) : all_(all) {}
  SyncedBatchNorms(SyncedBatchNorms const&) = delete;
  SyncedBatchNorms& operator=(SyncedBatchNorms const&) = delete;
  ~SyncedBatchNorms() { release(); }

  /// ModuleError for a layer that has neither a weight nor running statistics, by which its calls are
  /// found.
  void begin(torch::nn::Module& module) {
    release();
    if (has_compiled_batch_norms(module)) refuse_compiled();
    each_batch_norm(module, [this](auto& layer) { add(layer); });
  }
  /// Of the messages of a layer.
  std::int64_t message_bytes() const {
    return layers_.empty() ? 0 : row_size() * static_cast<std::int64_t>(sizeof(double));
  }
  void begin_window() {}

  /// During its lifetime a micro-batch is trained, whose gradients are still to be multiplied by
  /// `unit`.
  class [[nodiscard]] Part {
   public:
    Part(SyncedBatchNorms& of, double const& unit) { of.unit_ = &unit; }
    void take() {}
  };

  /// This process has trained its micro-batches of the window: takes part in the exchanges of the
  /// others.
  void end_passes();
  void join(bool) {}

  struct Statistics {
    at::Tensor mean, variance;  ///< [C] double, in host memory
    double count = 0;           ///< values a channel
  };
  /// Those of all processes' values, of `mean` and `variance` [C] over `count` values here.
  Statistics forward(std::size_t layer, at::Tensor const& mean, at::Tensor const& variance,
                     double count, double momentum) {
    Statistics const all =
        statistics_of(exchange(row(Pass::forward, layer, momentum, count, mean, variance)));
    update(layers_[layer], all, momentum);
    return all;
  }
  /// The sums over all processes of two sums [C] of gradients here, in this process's unit.
  std::pair<at::Tensor, at::Tensor> backward(std::size_t layer, at::Tensor const& one,
                                             at::Tensor const& other);

 private:
  [[noreturn]] static void refuse_compiled();
  class Hook;

  struct Layer {
    at::Tensor key;  ///< by which its calls are found
    at::Tensor* running_mean = nullptr;
    at::Tensor* running_variance = nullptr;
    at::Tensor* tracked = nullptr;
    std::int64_t channels = 0;
    std::shared_ptr<LayerHook> hook{};
  };
  struct Totals {
    Pass pass = Pass::none;
    std::size_t layer = 0;
    double momentum = 0;
    std::vector<double> counts{};  ///< of the processes that have a micro-batch, in their order
    std::vector<std::pair<at::Tensor, at::Tensor>> values{};  ///< [C] of each
  };
  static constexpr std::int64_t head = 4;  ///< pass, layer, momentum, count

  template <class L>
  void add(L& layer);
  void release() {
    for (Layer const& each : layers_) frugal::release(each.key, *each.hook);
    layers_.clear();
    most_channels_ = 0;
  }

  std::int64_t row_size() const { return head + 2 * most_channels_; }
  at::Tensor row(Pass pass, std::size_t layer, double momentum, double count, at::Tensor const& one,
                 at::Tensor const& other) const;
  Totals exchange(at::Tensor const& mine);
  /// In every process, because all see the same rows.
  [[noreturn]] static void refuse_order();
  static Statistics statistics_of(Totals const& totals);
  static void update(Layer const& layer, Statistics const& all, double momentum);

  Communicator& all_;
  std::vector<Layer> layers_;
  std::int64_t most_channels_ = 0;
  double const* unit_ = nullptr;
};

/// What SyncedBatchNorm and its gradient compute with.
struct OverChannels {
  using Context = torch::autograd::AutogradContext;

  /// [C] as it is broadcast over x.
  static at::Tensor over(at::Tensor const& each_C, at::Tensor const& x) {
    std::vector<std::int64_t> shape(static_cast<std::size_t>(x.dim()), 1);
    shape[1] = -1;
    return each_C.view(shape);
  }
  static std::vector<std::int64_t> others(at::Tensor const& x) {
    std::vector<std::int64_t> dims{0};
    for (std::int64_t d = 2; d < x.dim(); ++d) dims.push_back(d);
    return dims;
  }
  static at::Tensor exact(at::Tensor const& x) {
    return x.to(at::promote_types(x.scalar_type(), at::kFloat));
  }
};

/// BatchNorm of the values of all processes.
struct SyncedBatchNorm : torch::autograd::Function<SyncedBatchNorm>, OverChannels {
  using OverChannels::Context;

  static at::Tensor forward(Context* context, at::Tensor const& x,
                            std::optional<at::Tensor> const& scale,
                            std::optional<at::Tensor> const& shift, SyncedBatchNorms* layers,
                            std::int64_t layer, double momentum, double eps);
  static torch::autograd::variable_list backward(Context* context,
                                                 torch::autograd::variable_list const& gradients);
};

class SyncedBatchNorms::Hook final : public LayerHook {
 public:
  Hook(SyncedBatchNorms& layers, std::size_t layer) : layers_(layers), layer_(layer) {}
  Place place() const override { return Place::compute; }
  at::Tensor call(LayerCall const& call, LayerRest const& rest) override {
    if (call.op != LayerCall::Operator::batch_norm || !call.training) return rest(call);
    auto const optional = [](at::Tensor const& tensor) {
      return tensor.defined() ? std::optional(tensor) : std::nullopt;
    };
    return SyncedBatchNorm::apply(call.input, optional(call.weight), optional(call.bias), &layers_,
                                  static_cast<std::int64_t>(layer_), call.momentum, call.eps);
  }

 private:
  SyncedBatchNorms& layers_;
  std::size_t layer_;
};

template <class L>
void SyncedBatchNorms::add(L& layer) {
  at::Tensor const key = layer.weight.defined() ? layer.weight : layer.running_mean;
  if (!key.defined()) {
    throw ModuleError({.what = "a BatchNorm layer has neither weights nor running statistics",
                       .where = "SyncBatchNorm",
                       .why = "a layer's calls are found by its tensors",
                       .fix = "Make it with affine(true) or track_running_stats(true)."});
  }
  auto hook = std::make_shared<Hook>(*this, layers_.size());
  layers_.push_back({.key = key,
                     .running_mean = &layer.running_mean,
                     .running_variance = &layer.running_var,
                     .tracked = &layer.num_batches_tracked,
                     .channels = key.numel(),
                     .hook = hook});
  most_channels_ = std::max(most_channels_, key.numel());
  intercept(key, std::move(hook));
}

}  // namespace frugal::detail

#ifndef FRUGAL_COMPILED
#include <frugal/cluster/batch_norm.ipp>
#endif
