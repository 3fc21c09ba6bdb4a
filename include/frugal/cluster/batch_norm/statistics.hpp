// SPDX-License-Identifier: Apache-2.0
// Shapes: C all channels of the BatchNorm layers of a module, L these layers.
#pragma once

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <torch/nn/module.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <frugal/cluster/agreement/same_run.hpp>
#include <frugal/cluster/communicator.hpp>
#include <frugal/core/libtorch/batch_norms.hpp>

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

  void begin(torch::nn::Module& module) {
    layers_.clear();
    rows_.clear();
    each_batch_norm(module, [this](auto& layer) {
      if (!layer.running_mean.defined()) return;
      layers_.push_back({.mean = &layer.running_mean,
                         .variance = &layer.running_var,
                         .tracked = &layer.num_batches_tracked,
                         .momentum = layer.options.momentum()});
    });
  }
  void begin_window() { rows_.clear(); }

  /// During its lifetime a micro-batch is trained. Afterwards the averages are as before.
  class [[nodiscard]] Part {
   public:
    Part(BatchNormStatistics& of, double const&) : of_(of) {
      at::NoGradGuard const no_gradients;
      for (Layer const& each : of_.layers_) {
        before_.push_back({each.mean->clone(), each.variance->clone(), each.tracked->clone()});
      }
    }
    Part(Part const&) = delete;
    Part& operator=(Part const&) = delete;
    ~Part() {
      at::NoGradGuard const no_gradients;
      for (std::size_t i = 0; i < before_.size(); ++i) {
        Layer const& layer = of_.layers_[i];
        layer.mean->copy_(before_[i].mean);
        layer.variance->copy_(before_[i].variance);
        layer.tracked->copy_(before_[i].tracked);
      }
    }
    /// The micro-batch is trained: keeps its part, on its device.
    void take() {
      if (before_.empty()) return;
      at::NoGradGuard const no_gradients;
      std::vector<at::Tensor> calls, means, variances;
      for (std::size_t i = 0; i < before_.size(); ++i) {
        Layer const& layer = of_.layers_[i];
        at::Tensor const now = layer.tracked->reshape({1}).to(at::kDouble);
        at::Tensor const then = before_[i].tracked.reshape({1}).to(at::kDouble);
        at::Tensor const more = now - then;
        calls.push_back(more);
        at::Tensor const kept = layer.momentum
                                    ? at::pow(at::full_like(more, 1 - *layer.momentum), more)
                                    : then / now.clamp_min(1);
        // Of a mean over all calls the part is the mean of the new ones.
        at::Tensor const scale = layer.momentum ? at::ones_like(more) : now / more.clamp_min(1);
        auto const part = [&](at::Tensor const& running, at::Tensor const& before) {
          return (running.to(at::kDouble) - kept * before.to(at::kDouble)) * scale;
        };
        means.push_back(part(*layer.mean, before_[i].mean));
        variances.push_back(part(*layer.variance, before_[i].variance));
      }
      calls.insert(calls.end(), means.begin(), means.end());
      calls.insert(calls.end(), variances.begin(), variances.end());
      of_.rows_.push_back(at::cat(calls));
    }

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
  std::string text() const {
    std::string all;
    for (at::Tensor const& row : rows_) {
      at::Tensor const host = row.cpu();
      all.append(static_cast<char const*>(host.const_data_ptr()), host.nbytes());
    }
    return all;
  }
  void join(std::vector<std::string> const& texts, bool in_rounds) {
    at::NoGradGuard const no_gradients;
    std::vector<Average> averages;
    std::int64_t size = static_cast<std::int64_t>(layers_.size());
    for (Layer const& each : layers_) {
      averages.push_back({.mean = each.mean->cpu().to(at::kDouble),
                          .variance = each.variance->cpu().to(at::kDouble),
                          .tracked = each.tracked->item<std::int64_t>()});
      size += 2 * each.mean->numel();
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
      layers_[i].mean->copy_(averages[i].mean);
      layers_[i].variance->copy_(averages[i].variance);
      layers_[i].tracked->fill_(averages[i].tracked);
    }
    rows_.clear();
  }

  struct Layer {
    at::Tensor* mean;
    at::Tensor* variance;
    at::Tensor* tracked;               ///< calls in training
    std::optional<double> momentum{};  ///< nothing: the mean of all calls
  };
  struct Average {
    at::Tensor mean, variance;  ///< double, in host memory
    std::int64_t tracked = 0;
  };

  void add(std::vector<Average>& averages, at::Tensor const& row_LCC) const {
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

  Communicator& all_;
  std::vector<Layer> layers_;
  std::vector<at::Tensor> rows_;  ///< [L + C + C]: calls, means, variances of a micro-batch
};

}  // namespace frugal::detail
