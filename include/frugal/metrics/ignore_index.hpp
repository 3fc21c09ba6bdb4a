// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include <frugal/core/run/objective.hpp>
#include <frugal/core/source/batch.hpp>
#include <frugal/metrics/decisions.hpp>

namespace frugal {

/// A metric of labels that leaves out those of another value than -100: `IgnoreIndex<255,
/// F1Score<Macro>>`. Its name and result are the metric's. What the metric gets has the target
/// alone of a batch, integers as int64.
///
/// If the label is a class, it may still be predicted. IoU and Dice leave that class out of their mean, and it is NaN
/// in their table, as in torchmetrics' JaccardIndex. F1Score<Macro> and its like count it with 0, as torchmetrics does.
template <std::int64_t Label, class Metric>
class IgnoreIndex {
  static_assert(
      !requires { typename Metric::of_boxes; },
      "frugal: IgnoreIndex<Label, Metric> is for metrics of labels: in a target of boxes it would "
      "change coordinates. Leave it out; rows of label -100 are padding.");
  static_assert(
      !requires { typename Metric::of_values; },
      "frugal: IgnoreIndex<Label, Metric> is for metrics of labels: MAE, MSE and R2 have none, and "
      "would count -100 as a value. Write a metric that leaves values out.");
  static_assert(
      !requires { typename Metric::of_task; },
      "frugal: IgnoreIndex<Label, ForTask<...>> would ignore labels of the batch, which the task "
      "does not read. Write ForTask<\"name\", IgnoreIndex<Label, Metric>>.");

 public:
  static constexpr std::string_view name = Metric::name;
  static constexpr bool whole_numbers = requires { requires bool(Metric::whole_numbers); };

  template <class B>
  void add(Loss const& loss, B const& batch) {
    at::Tensor target = detail::target_of(batch);
    // A label of one byte cannot be -100.
    if (!target.is_floating_point()) target = target.to(at::kLong);
    metric_.add(loss,
                Batch{.data = {}, .target = target.masked_fill(target.eq(Label), ignored_label)});
  }
  template <class Sum>
  void reduce(Sum&& sum)
    requires requires(Metric& metric) { metric.reduce(sum); }
  {
    metric_.reduce(std::forward<Sum>(sum));
  }
  template <class Rows>
  void gather(Rows&& rows)
    requires requires(Metric& metric) { metric.gather(rows); }
  {
    metric_.gather(std::forward<Rows>(rows));
  }
  auto result() const {
    if constexpr (requires { metric_.result_without(Label); }) {
      return metric_.result_without(Label);
    } else {
      return metric_.result();
    }
  }
  std::string warning() const {
    if constexpr (requires { std::string(metric_.warning()); }) return metric_.warning();
    return {};
  }
  template <class Archive>
  void persist(Archive& archive)
    requires requires(Metric& metric) { metric.persist(archive); }
  {
    metric_.persist(archive);
  }

 private:
  Metric metric_;
};

}  // namespace frugal
