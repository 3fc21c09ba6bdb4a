// SPDX-License-Identifier: Apache-2.0
// Shapes: B samples, C classes.
#pragma once

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <torch/nn/module.h>

#include <cstdint>
#include <memory>
#include <string_view>
#include <tuple>
#include <vector>

#include <frugal/compose/list.hpp>
#include <frugal/data/batch.hpp>
#include <frugal/data/source.hpp>
#include <frugal/error.hpp>
#include <frugal/libtorch/modes.hpp>
#include <frugal/run/failure.hpp>
#include <frugal/run/ledger.hpp>
#include <frugal/run/metrics.hpp>
#include <frugal/run/objective.hpp>
#include <frugal/run/services.hpp>

namespace frugal {

/// Share of samples whose largest logit is at their label.
///
/// The metric protocol: `name`, and `add(loss, batch)` which may keep tensors but must not read
/// them; `result()` is called once, when the validation is over, and may wait for the device. Where
/// processes train together, `reduce(sum)` comes before it: `sum(x)` is x added up over all of
/// them.
struct Accuracy {
  static constexpr std::string_view name = "accuracy";

  /// Logits [B, C, ...] and labels [B, ...].
  template <class B>
  void add(Loss const& loss, B const& batch) {
    if (!loss.output.defined()) {
      throw MetricError({.what = "accuracy needs the module's output",
                         .where = "Validate<..., Accuracy>",
                         .why = "the objective returned a bare loss",
                         .fix = "Return frugal::Loss{.value = ..., .output = logits} from it."});
    }
    at::Tensor const right = loss.output.argmax(1).eq(batch.target).sum();
    if (right.is_cpu()) {
      on_host_ += *static_cast<std::int64_t const*>(right.const_data_ptr());
    } else {
      right_ = right_.defined() ? right_.add_(right) : right;
    }
    labels_ += static_cast<double>(batch.target.numel());
  }
  /// The labels of all processes.
  template <class Sum>
  void reduce(Sum&& sum) {
    double const here = count_right();
    right_ = at::Tensor();
    on_host_ = static_cast<std::int64_t>(sum(here));
    labels_ = sum(labels_);
  }
  double result() const { return labels_ == 0 ? 0.0 : count_right() / labels_; }

 private:
  double count_right() const {
    auto right = static_cast<double>(on_host_);
    if (right_.defined()) right += right_.item<double>();
    return right;
  }

  std::int64_t on_host_ = 0;
  at::Tensor right_;
  double labels_ = 0;
};

namespace detail {

/// The weighted mean loss of a validation, and the metrics beside it; one wait at the end.
template <class... Ms>
class Measurement {
 public:
  template <class B>
  void add(Loss const& loss, B const& batch) {
    if (loss.value.is_cpu()) {
      // A number: no operator adds it up.
      on_host_ += host_scalar(loss.value) * *loss.weight;
    } else {
      // Not in place: of a double loss `to` gives the loss itself, which the metrics see next.
      at::Tensor const part = loss.value.detach().to(at::kDouble).mul(*loss.weight);
      sum_ = sum_.defined() ? sum_.add_(part) : part;
    }
    any_ = true;
    weight_ += *loss.weight;
    std::apply([&](auto&... metric) { (metric.add(loss, batch), ...); }, metrics_);
  }

  bool empty() const { return !any_; }

  /// Of this process' validation, that of all.
  template <class Join>
  void reduce(Join&& join) {
    on_host_ = join(Quantity::loss, sum());
    sum_ = at::Tensor();
    weight_ = join(Quantity::loss, weight_);
    [[maybe_unused]] auto const add_up = [&](double counted) {
      return join(Quantity::metric, counted);
    };
    std::apply([&](auto&... metric) { (reduce_one(metric, add_up), ...); }, metrics_);
  }

  Metrics result() const {
    Metrics found;
    found.set("loss", sum() / weight_);
    std::apply([&](auto const&... metric) { (found.set(metric.name, metric.result()), ...); },
               metrics_);
    return found;
  }

 private:
  double sum() const { return sum_.defined() ? on_host_ + sum_.item<double>() : on_host_; }

  template <class Metric, class Sum>
  static void reduce_one(Metric& metric, Sum const& sum) {
    static_assert(
        requires { metric.reduce(sum); },
        "frugal: a policy of this recipe makes processes agree, and a metric of Validate cannot be "
        "added up over them. Write `template <class Sum> void reduce(Sum&& sum)` in it, with "
        "`counted = sum(counted)` for each number that it has counted.");
    metric.reduce(sum);
  }

  double on_host_ = 0;
  at::Tensor sum_;
  double weight_ = 0;
  bool any_ = false;
  std::tuple<Ms...> metrics_;
};

template <class List>
struct measurement_of;
template <class... Ms>
struct measurement_of<list<Ms...>> {
  using type = Measurement<Ms...>;
};

/// One pass over a source without gradients, always in the order of epoch 0.
/// `forward(batch)` returns a batch's Loss.
template <class MetricList, class Valid, class Run, class Forward>
Metrics measure(Valid& source, Run& run, Forward&& forward) {
  at::NoGradGuard const no_gradients;
  EvaluationMode const mode(base_module(run.module));
  typename measurement_of<MetricList>::type measurement;
  source.seek(Cursor{run.settings.seed, 0, 0});
  while (auto batch = source.next()) {
    batch_to(*batch, run.device);
    measurement.add(forward(*batch), *batch);
  }
  if (measurement.empty()) refuse_empty_source("validation", run.counters.epoch);
  if constexpr (requires { typename Run::Engine; }) {
    if constexpr (Run::Engine::template provides<service::reduce>) {
      measurement.reduce([&](Quantity what, double value) { return run.reduce(what, value); });
    }
  }
  return measurement.result();
}

}  // namespace detail
}  // namespace frugal
