// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include <frugal/core/run/metric.hpp>
#include <frugal/core/run/objective.hpp>
#include <frugal/core/source/batch.hpp>
#include <frugal/metrics/decisions.hpp>

namespace frugal {

/// A metric of labels that leaves out those of another value than -100: `IgnoreIndex<255,
/// F1Score<Macro>>`. Its name and result are the metric's. What the metric gets has the target
/// alone of a batch, integers as int64. The label and the metric are members:
/// `IgnoreIndex<255, TopK<>>{.label = n, .metric = {.k = 3}}`.
///
/// If the label is a class, it may still be predicted. IoU and Dice leave that class out of their mean, and it is NaN
/// in their table, as in torchmetrics' JaccardIndex. F1Score<Macro> and its like count it with 0, as torchmetrics does.
template <std::int64_t Label, class Metric>
struct IgnoreIndex {
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

  static constexpr auto name = [] {
    if constexpr (NamedByType<Metric>)
      return std::string_view(Metric::name);
    else
      return detail::NamedByMembers{};
  }();

  std::int64_t label = Label;
  Metric metric{};

  std::string own_name() const { return detail::name_of(metric); }
  void each_option(auto&& visit) {
    visit("label", label, "labels of this value are left out");
    if constexpr (requires { metric.each_option(visit); }) metric.each_option(visit);
  }

  static constexpr bool whole_numbers = requires { requires bool(Metric::whole_numbers); };

  template <class B>
  void add(Loss const& loss, B const& batch) {
    at::Tensor target = detail::target_of(batch);
    // A label of one byte cannot be -100.
    if (!target.is_floating_point()) target = target.to(at::kLong);
    metric.add(loss,
               Batch{.data = {}, .target = target.masked_fill(target.eq(label), ignored_label)});
  }
  template <class Sum>
  void reduce(Sum&& sum)
    requires requires(Metric& of) { of.reduce(sum); }
  {
    metric.reduce(std::forward<Sum>(sum));
  }
  template <class Rows>
  void gather(Rows&& rows)
    requires requires(Metric& of) { of.gather(rows); }
  {
    metric.gather(std::forward<Rows>(rows));
  }
  auto result() const {
    if constexpr (requires { metric.result_without(label); }) {
      return metric.result_without(label);
    } else {
      return metric.result();
    }
  }
  std::string warning() const {
    if constexpr (requires { std::string(metric.warning()); }) return metric.warning();
    return {};
  }
  template <class Archive>
  void persist(Archive& archive)
    requires requires(Metric& of) { of.persist(archive); }
  {
    metric.persist(archive);
  }
};

}  // namespace frugal
