// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <string>
#include <string_view>
#include <utility>

#include <frugal/core/compose/fixed_string.hpp>
#include <frugal/core/run/loss.hpp>
#include <frugal/core/run/metric.hpp>
#include <frugal/core/run/metrics.hpp>
#include <frugal/core/source/batch.hpp>
#include <frugal/metrics/name.hpp>

namespace frugal {

/// A metric of one of several tasks: `ForTask<"age", MAE>` is called "age_mae", and measures the output and the target
/// that the objective returns as `Loss::tasks` under that name. Each number and table of the metric gets the task's
/// name before its own.
///
/// Errors  MetricError if the objective returns no task of that name.
template <fixed_string Task, class Metric>
struct ForTask {
  static constexpr auto name = [] {
    if constexpr (NamedByType<Metric>)
      return detail::metric_name_of<Task, "_", detail::fixed_name<Metric>>;
    else
      return detail::NamedByMembers{};
  }();

  Metric metric{};  ///< `ForTask<"age", TopK<>>{.metric = {.k = 3}}`

  std::string own_name() const {
    return std::string(std::string_view(Task)) + "_" + detail::name_of(metric);
  }
  void each_option(auto&& visit)
    requires requires(Metric& of) { of.each_option(visit); }
  {
    metric.each_option(visit);
  }

  using of_task = void;  // for IgnoreIndex, which goes inside
  static constexpr bool whole_numbers = requires { requires bool(Metric::whole_numbers); };

  template <class B>
  void add(Loss const& loss, B const&) {
    TaskOutput const& task = loss.tasks.of(Task);
    metric.add(Loss{.value = loss.value, .weight = loss.weight, .output = task.output},
               Batch{.data = {}, .target = task.target});
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
    if constexpr (std::convertible_to<decltype(metric.result()), double>) {
      return metric.result();
    } else {
      Metrics named;
      named.add(metric.result(), std::string(std::string_view(Task)) + "_");
      return named;
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
