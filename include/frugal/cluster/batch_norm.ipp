// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/cluster/batch_norm.hpp>

#include <frugal/inline.hpp>

#include <cmath>

namespace frugal::detail {

FRUGAL_INLINE void require_only_batch_norms(ChangesBuffers const& module) {
  std::string const other = module.other_changed_buffer();
  if (other.empty()) return;
  throw ModuleError(
      {.what = "the step changes the buffer '" + other + "', which is no statistic of BatchNorm",
       .where = "Replicate",
       .why = "each process would have one of its own, and nothing says how they join",
       .fix = "Train in one process, or export the module without that buffer."});
}

FRUGAL_INLINE void BatchNormStatistics::begin(torch::nn::Module& module) {
  layers_.clear();
  rows_.clear();
  each_batch_norm(module, [this](auto& layer) {
    if (!layer.running_mean.defined()) return;
    layers_.push_back({.mean = layer.running_mean,
                       .variance = layer.running_var,
                       .tracked = layer.num_batches_tracked,
                       .momentum = layer.options.momentum()});
  });
  if (auto const* const changes = dynamic_cast<ChangesBuffers const*>(&module)) {
    if (all_.size() > 1) require_only_batch_norms(*changes);
    for (BatchNormBuffers const& each : changes->changed_batch_norms()) layers_.push_back(each);
  }
}

FRUGAL_INLINE BatchNormStatistics::Part::~Part() {
  at::NoGradGuard const no_gradients;
  for (std::size_t i = 0; i < before_.size(); ++i) {
    BatchNormBuffers const& layer = of_.layers_[i];
    layer.mean.copy_(before_[i].mean);
    layer.variance.copy_(before_[i].variance);
    layer.tracked.copy_(before_[i].tracked);
  }
}

FRUGAL_INLINE void BatchNormStatistics::Part::take() {
  if (before_.empty()) return;
  at::NoGradGuard const no_gradients;
  std::vector<at::Tensor> calls, means, variances;
  for (std::size_t i = 0; i < before_.size(); ++i) {
    BatchNormBuffers const& layer = of_.layers_[i];
    at::Tensor const now = layer.tracked.reshape({1}).to(at::kDouble);
    at::Tensor const then = before_[i].tracked.reshape({1}).to(at::kDouble);
    at::Tensor const more = now - then;
    calls.push_back(more);
    at::Tensor const kept = layer.momentum ? at::pow(at::full_like(more, 1 - *layer.momentum), more)
                                           : then / now.clamp_min(1);
    // Of a mean over all calls the part is the mean of the new ones.
    at::Tensor const scale = layer.momentum ? at::ones_like(more) : now / more.clamp_min(1);
    auto const part = [&](at::Tensor const& running, at::Tensor const& before) {
      return (running.to(at::kDouble) - kept * before.to(at::kDouble)) * scale;
    };
    means.push_back(part(layer.mean, before_[i].mean));
    variances.push_back(part(layer.variance, before_[i].variance));
  }
  calls.insert(calls.end(), means.begin(), means.end());
  calls.insert(calls.end(), variances.begin(), variances.end());
  of_.rows_.push_back(at::cat(calls));
}

FRUGAL_INLINE std::string BatchNormStatistics::text() const {
  std::string all;
  for (at::Tensor const& row : rows_) {
    at::Tensor const host = row.cpu();
    all.append(static_cast<char const*>(host.const_data_ptr()), host.nbytes());
  }
  return all;
}

FRUGAL_INLINE void BatchNormStatistics::join(std::vector<std::string> const& texts,
                                             bool in_rounds) {
  at::NoGradGuard const no_gradients;
  std::vector<Average> averages;
  std::int64_t size = static_cast<std::int64_t>(layers_.size());
  for (BatchNormBuffers const& each : layers_) {
    averages.push_back({.mean = each.mean.cpu().to(at::kDouble),
                        .variance = each.variance.cpu().to(at::kDouble),
                        .tracked = each.tracked.item<std::int64_t>()});
    size += 2 * each.mean.numel();
  }
  std::size_t const bytes = static_cast<std::size_t>(size) * sizeof(double);
  auto const add_row = [&](std::string const& text, std::size_t at) {
    at::Tensor const row_LCC = at::empty({size}, at::kDouble);
    std::memcpy(row_LCC.mutable_data_ptr(), text.data() + at, bytes);
    add(averages, row_LCC);
  };
  if (in_rounds) {
    for (std::size_t at = 0; at + bytes <= texts.front().size(); at += bytes) {
      for (std::string const& text : texts) {
        if (at + bytes <= text.size()) add_row(text, at);
      }
    }
  } else {
    for (std::string const& text : texts) {
      for (std::size_t at = 0; at + bytes <= text.size(); at += bytes) add_row(text, at);
    }
  }
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    layers_[i].mean.copy_(averages[i].mean);
    layers_[i].variance.copy_(averages[i].variance);
    layers_[i].tracked.fill_(averages[i].tracked);
  }
  rows_.clear();
}

FRUGAL_INLINE void BatchNormStatistics::add(std::vector<Average>& averages,
                                            at::Tensor const& row_LCC) const {
  auto at = static_cast<std::int64_t>(layers_.size());
  auto const next_C = [&](std::int64_t channels) {
    at::Tensor const part = row_LCC.narrow(0, at, channels);
    at += channels;
    return part;
  };
  auto const* const calls = static_cast<double const*>(row_LCC.const_data_ptr());
  auto const each = [&](at::Tensor Average::* which) {
    for (std::size_t i = 0; i < layers_.size(); ++i) {
      Average& average = averages[i];
      at::Tensor const part = next_C((average.*which).numel());
      if (calls[i] == 0) continue;  // not called, or not in training
      auto const before = static_cast<double>(average.tracked);
      double const kept = layers_[i].momentum ? std::pow(1 - *layers_[i].momentum, calls[i])
                                              : before / (before + calls[i]);
      double const added = layers_[i].momentum ? 1 : calls[i] / (before + calls[i]);
      average.*which = (average.*which) * kept + part * added;
    }
  };
  each(&Average::mean);
  each(&Average::variance);
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    averages[i].tracked += static_cast<std::int64_t>(calls[i]);
  }
}

FRUGAL_INLINE void SyncedBatchNorms::end_passes() {
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

FRUGAL_INLINE void SyncedBatchNorms::refuse_compiled() {
  throw ModuleError(
      {.what = "the module's BatchNorm layers are compiled code",
       .where = "SyncBatchNorm",
       .why = "it joins the statistics of processes in the layers' calls, and there are none",
       .fix = "Leave SyncBatchNorm out: each micro-batch then has its own statistics."});
}

FRUGAL_INLINE std::pair<at::Tensor, at::Tensor> SyncedBatchNorms::backward(
    std::size_t layer, at::Tensor const& one, at::Tensor const& other) {
  double const unit = unit_ == nullptr ? 1 : *unit_;
  Totals const totals = exchange(
      row(Pass::backward, layer, 0, 0, one.to(at::kDouble) * unit, other.to(at::kDouble) * unit));
  at::Tensor first = at::zeros_like(totals.values.front().first), second = first.clone();
  for (auto const& [a, b] : totals.values) first += a, second += b;
  return {first / unit, second / unit};
}

FRUGAL_INLINE at::Tensor SyncedBatchNorms::row(Pass pass, std::size_t layer, double momentum,
                                               double count, at::Tensor const& one,
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

FRUGAL_INLINE SyncedBatchNorms::Totals SyncedBatchNorms::exchange(at::Tensor const& mine) {
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

FRUGAL_INLINE void SyncedBatchNorms::refuse_order() {
  throw ModuleError(
      {.what = "processes are in different BatchNorm layers at the same time",
       .where = "SyncBatchNorm",
       .why = "the layers that a micro-batch uses depend on it, or its loss has the weight 0, so "
              "that it has no backward pass; the processes would exchange numbers of different "
              "layers",
       .fix = "Leave SyncBatchNorm out: then each micro-batch has its own statistics."});
}

FRUGAL_INLINE SyncedBatchNorms::Statistics SyncedBatchNorms::statistics_of(Totals const& totals) {
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

FRUGAL_INLINE void SyncedBatchNorms::update(Layer const& layer, Statistics const& all,
                                            double momentum) {
  at::NoGradGuard const no_gradients;
  auto const move = [&](at::Tensor& running, at::Tensor const& now) {
    if (running.defined()) {
      running.copy_(running.cpu().to(at::kDouble) * (1 - momentum) + now * momentum);
    }
  };
  move(*layer.running_mean, all.mean);
  move(*layer.running_variance, all.variance * (all.count / (all.count - 1)));
}

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
             "Leave SyncBatchNorm out, use another normalization, or put the layer in evaluation "
             "mode."});
  }
};

FRUGAL_INLINE at::Tensor SyncedBatchNorm::forward(Context* context, at::Tensor const& x,
                                                  std::optional<at::Tensor> const& scale,
                                                  std::optional<at::Tensor> const& shift,
                                                  SyncedBatchNorms* layers, std::int64_t layer,
                                                  double momentum, double eps) {
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

FRUGAL_INLINE torch::autograd::variable_list SyncedBatchNorm::backward(
    Context* context, torch::autograd::variable_list const& gradients) {
  auto const saved = context->get_saved_variables();
  at::Tensor const &x = saved[0], &weight = saved[1], &mean = saved[2], &inverse = saved[3];
  auto* const layers = reinterpret_cast<SyncedBatchNorms*>(context->saved_data["layers"].toInt());
  torch::autograd::variable_list all = SyncedBatchNormGradient::apply(
      gradients[0], x, weight.defined() ? std::optional(weight) : std::nullopt, mean, inverse,
      layers, context->saved_data["layer"].toInt(), context->saved_data["count"].toDouble());
  all.resize(7);
  return all;
}

}  // namespace frugal::detail
