// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <cstddef>
#include <string_view>
#include <type_traits>

#include <frugal/core/compose/diagnostic.hpp>
#include <frugal/core/compose/list.hpp>
#include <frugal/core/run/log_keys.hpp>

namespace frugal {

/// A metric: a default-constructible, copyable type with
///
///     static constexpr std::string_view name   as it is watched, logged and asked for
///     add(loss, batch)           of each batch, without gradients. It may keep tensors, but
///                                must not read them: that would wait for the device
///     result()                   a number, or Metrics of several and of tables; called once, after
///                                the last batch. It may wait
///     reduce(sum)                where processes train together, before result(): `sum(x)` is x, a
///                                number or a tensor, added up over all of them
///     gather(rows)               instead, of a metric that keeps what it has seen: `rows(x)` is tensor
///                                x of all of them, put together along its first dimension
///     whole_numbers              `static constexpr bool`, true if its sums are counts, which are
///                                exact in any order
///     persist(archive)           where training is measured (TrainMetrics): its state
///
/// Copies continue independently: add() changes no tensor in place that a copy may hold.
template <class M>
concept NamedMetric = requires {
  { M::name } -> std::convertible_to<std::string_view>;
};

namespace detail {

FRUGAL_DIAGNOSTIC(
    nameless_metric,
    "frugal: a metric of this recipe has no name. The compiler's note names its type: "
    "write `static constexpr std::string_view name = \"...\";` in it.");
FRUGAL_DIAGNOSTIC(
    metric_without_result,
    "frugal: a metric of this recipe has no result(). The compiler's note names its type: write "
    "`double result() const` in it, the value over all batches that add() was given.");
FRUGAL_DIAGNOSTIC(
    one_metric_name,
    "frugal: two metrics of this recipe have one name, or one is called \"loss\", which "
    "is always measured. The compiler's note names them: give one another name.");
FRUGAL_DIAGNOSTIC(metric_is_no_log_key,
                  "frugal: a metric of this recipe has the name of another value in a log's line, "
                  "such as \"step\" or \"seconds\" (all are in frugal/core/run/log_keys.hpp). The "
                  "compiler's note names its type: give it another name.");

template <class... Ms>
consteval bool have_own_names() {
  std::string_view const names[] = {"loss", Ms::name...};
  for (std::size_t i = 0; i <= sizeof...(Ms); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      if (names[i] == names[j]) return false;
    }
  }
  return true;
}

/// `type` is list<Ms...> if all names differ; otherwise there is a sentence, and it is empty.
template <class... Ms>
struct metrics_named {
  static constexpr bool named = (true && ... && NamedMetric<Ms>);
  static constexpr bool apart = [] {
    if constexpr (named) return have_own_names<Ms...>();
    return true;
  }();
  template <class M>
  static constexpr bool unreserved = [] {
    if constexpr (NamedMetric<M>)
      return M::name == std::string_view("loss") || !is_log_key(M::name);
    return true;
  }();
  template <class M>
  static constexpr bool has_result = requires(M const& metric) { metric.result(); };
  static constexpr bool said =
      (true && ... && nameless_metric::require<NamedMetric<Ms>, Ms>()) &&
      (true && ... && metric_without_result::require<has_result<Ms>, Ms>()) &&
      (true && ... && metric_is_no_log_key::require<unreserved<Ms>, Ms>()) &&
      one_metric_name::require<apart, Ms...>();
  using type = std::conditional_t<said, list<Ms...>, list<>>;
};
template <class List>
struct named_metrics_in;
template <class... Ms>
struct named_metrics_in<list<Ms...>> : metrics_named<Ms...> {};

}  // namespace detail
}  // namespace frugal
