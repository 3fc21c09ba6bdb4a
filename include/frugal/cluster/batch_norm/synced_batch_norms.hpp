// SPDX-License-Identifier: Apache-2.0
// Shapes: W processes, C channels of a layer, B samples, ... whatever one sample has.
#pragma once

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/nn/module.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include <frugal/cluster/communicator.hpp>
#include <frugal/core/libtorch/batch_norms.hpp>
#include <frugal/core/libtorch/interception.hpp>
#include <frugal/error.hpp>

namespace frugal::detail {

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
  void end_passes() {
    if (layers_.empty()) return;
    at::Tensor const nothing = at::zeros({row_size()}, at::kDouble);
    for (;;) {
      Totals const totals = exchange(nothing);
      if (totals.pass == Pass::none) return;
      if (totals.pass != Pass::forward) continue;
      // Its own forward passes have counted those of this process.
      Layer const& layer = layers_[totals.layer];
      if (!layer.running_mean->defined()) continue;
      layer.tracked->add_(1);
      update(layer, statistics_of(totals), totals.momentum);
    }
  }
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
                                             at::Tensor const& other) {
    double const unit = unit_ == nullptr ? 1 : *unit_;
    Totals const totals = exchange(
        row(Pass::backward, layer, 0, 0, one.to(at::kDouble) * unit, other.to(at::kDouble) * unit));
    at::Tensor first = at::zeros_like(totals.values.front().first), second = first.clone();
    for (auto const& [a, b] : totals.values) first += a, second += b;
    return {first / unit, second / unit};
  }

 private:
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
                 at::Tensor const& other) const {
    at::Tensor made = at::zeros({row_size()}, at::kDouble);
    auto* const at = made.mutable_data_ptr<double>();
    at[0] = static_cast<double>(pass);
    at[1] = static_cast<double>(layer);
    at[2] = momentum;
    at[3] = count;
    made.narrow(0, head, one.numel()).copy_(one);
    made.narrow(0, head + most_channels_, other.numel()).copy_(other);
    return made;
  }

  Totals exchange(at::Tensor const& mine) {
    at::NoGradGuard const no_gradients;
    at::Tensor const rows = all_.gather(mine, "the statistics of BatchNorm");
    Totals totals;
    for (std::int64_t rank = 0; rank < all_.size(); ++rank) {
      at::Tensor const each = rows[rank];
      auto const* const at = each.const_data_ptr<double>();
      auto const pass = static_cast<Pass>(at[0]);
      auto const layer = static_cast<std::size_t>(at[1]);
      if (pass == Pass::none) continue;
      if (totals.pass == Pass::none) {
        totals.pass = pass;
        totals.layer = layer;
        totals.momentum = at[2];
      }
      if (pass != totals.pass || layer != totals.layer) refuse_order();
      std::int64_t const channels = layers_[layer].channels;
      totals.counts.push_back(at[3]);
      totals.values.emplace_back(each.narrow(0, head, channels),
                                 each.narrow(0, head + most_channels_, channels));
    }
    return totals;
  }
  /// In every process, because all see the same rows.
  [[noreturn]] static void refuse_order() {
    throw ModuleError(
        {.what = "processes are in different BatchNorm layers at the same time",
         .where = "SyncBatchNorm",
         .why = "the layers that a micro-batch uses depend on it, or its loss has the weight 0, so "
                "that it has no backward pass; the processes would exchange numbers of different "
                "layers",
         .fix = "Leave SyncBatchNorm out: then each micro-batch has its own statistics."});
  }

  static Statistics statistics_of(Totals const& totals) {
    Statistics all{.mean = at::zeros_like(totals.values.front().first),
                   .variance = at::zeros_like(totals.values.front().first)};
    for (std::size_t i = 0; i < totals.counts.size(); ++i) {
      all.mean += totals.values[i].first * totals.counts[i];
      all.count += totals.counts[i];
    }
    all.mean /= all.count;
    for (std::size_t i = 0; i < totals.counts.size(); ++i) {
      auto const& [mean, variance] = totals.values[i];
      all.variance += (variance + (mean - all.mean).square()) * totals.counts[i];
    }
    all.variance /= all.count;
    return all;
  }

  static void update(Layer const& layer, Statistics const& all, double momentum) {
    at::NoGradGuard const no_gradients;
    auto const move = [&](at::Tensor& running, at::Tensor const& now) {
      if (running.defined()) {
        running.copy_(running.cpu().to(at::kDouble) * (1 - momentum) + now * momentum);
      }
    };
    move(*layer.running_mean, all.mean);
    move(*layer.running_variance, all.variance * (all.count / (all.count - 1)));
  }

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

/// The gradients of a SyncedBatchNorm. They have none: theirs would have terms through the statistics
/// of all processes.
struct SyncedBatchNormGradient : torch::autograd::Function<SyncedBatchNormGradient>, OverChannels {
  using OverChannels::Context;

  /// dx; with a weight also dweight and dbias.
  static torch::autograd::variable_list forward(Context*, at::Tensor const& gradient,
                                                at::Tensor const& x,
                                                std::optional<at::Tensor> const& scale,
                                                at::Tensor const& mean, at::Tensor const& inverse,
                                                SyncedBatchNorms* layers, std::int64_t layer,
                                                double count) {
    at::Tensor const weight = scale.value_or(at::Tensor());
    at::Tensor const dy = exact(gradient);
    at::Tensor const centred = exact(x) - over(mean, x);
    at::Tensor const sum_C = dy.sum(others(x));
    at::Tensor const product_C = (dy * centred).sum(others(x));
    auto const [sums, products] =
        layers->backward(static_cast<std::size_t>(layer), sum_C.cpu(), product_C.cpu());
    at::Tensor const mean_dy = (sums / count).to(dy.options());
    at::Tensor const slope = (products / count).to(dy.options()) * inverse.square();
    at::Tensor dx = (dy - over(mean_dy, x) - centred * over(slope, x)) * over(inverse, x);
    if (!weight.defined()) return {dx.to(x.scalar_type())};
    dx = dx * over(exact(weight), x);
    return {dx.to(x.scalar_type()), (product_C * inverse).to(weight.scalar_type()),
            sum_C.to(weight.scalar_type())};
  }

  static torch::autograd::variable_list backward(Context*, torch::autograd::variable_list const&) {
    throw ModuleError(
        {.what = "the objective takes a gradient of a gradient of BatchNorm",
         .where = "SyncBatchNorm",
         .why = "the statistics of all processes have a part in it, which is not computed",
         .fix =
             "Leave SyncBatchNorm out, use another normalisation, or put the layer in evaluation "
             "mode."});
  }
};

/// BatchNorm of the values of all processes.
struct SyncedBatchNorm : torch::autograd::Function<SyncedBatchNorm>, OverChannels {
  using OverChannels::Context;

  static at::Tensor forward(Context* context, at::Tensor const& x,
                            std::optional<at::Tensor> const& scale,
                            std::optional<at::Tensor> const& shift, SyncedBatchNorms* layers,
                            std::int64_t layer, double momentum, double eps) {
    at::Tensor const weight = scale.value_or(at::Tensor()), bias = shift.value_or(at::Tensor());
    at::Tensor const values = exact(x);
    auto const [variance_C, mean_C] = at::var_mean(values, others(x), 0, false);
    auto const count = static_cast<double>(x.numel() / std::max<std::int64_t>(x.size(1), 1));
    SyncedBatchNorms::Statistics const all = layers->forward(
        static_cast<std::size_t>(layer), mean_C.cpu(), variance_C.cpu(), count, momentum);
    at::Tensor const mean = all.mean.to(values.options());
    at::Tensor const inverse = (all.variance + eps).rsqrt().to(values.options());
    context->save_for_backward({x, weight, mean, inverse});
    context->saved_data["layers"] = reinterpret_cast<std::int64_t>(layers);
    context->saved_data["layer"] = layer;
    context->saved_data["count"] = all.count;
    at::Tensor y = (values - over(mean, x)) * over(inverse, x);
    if (weight.defined()) y = y * over(exact(weight), x);
    if (bias.defined()) y = y + over(exact(bias), x);
    return y.to(x.scalar_type());
  }

  static torch::autograd::variable_list backward(Context* context,
                                                 torch::autograd::variable_list const& gradients) {
    auto const saved = context->get_saved_variables();
    at::Tensor const &x = saved[0], &weight = saved[1], &mean = saved[2], &inverse = saved[3];
    auto* const layers = reinterpret_cast<SyncedBatchNorms*>(context->saved_data["layers"].toInt());
    torch::autograd::variable_list all = SyncedBatchNormGradient::apply(
        gradients[0], x, weight.defined() ? std::optional(weight) : std::nullopt, mean, inverse,
        layers, context->saved_data["layer"].toInt(), context->saved_data["count"].toDouble());
    all.resize(7);
    return all;
  }
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
