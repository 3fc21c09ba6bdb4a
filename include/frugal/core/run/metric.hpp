// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <cstddef>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>

#include <frugal/core/compose/diagnostic.hpp>
#include <frugal/core/compose/list.hpp>
#include <frugal/core/run/log_keys.hpp>

namespace frugal {

/// A metric: a default-constructible, copyable type with
///
///     static constexpr std::string_view name   as it is watched, logged and asked for
///     std::string own_name() const   instead, of a metric whose members are in its name
///     each_option(visit)         of a metric with members that may be set: `visit("k", k, "its effect")` for each. Each
///                                measurement begins with a copy of the policy's value, which has them; without
///                                each_option and own_name it begins with a default-made metric
///     add(loss, batch)           of each batch, without gradients. It may keep tensors, but
///                                must not read them: that would wait for the device
///     result()                   a number, or Metrics of several and of tables; called once, after
///                                the last batch. It may wait. No member is in the names of several
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
concept NamedByType = requires {
  { M::name } -> std::convertible_to<std::string_view>;
};
template <class M>
concept NamedMetric = NamedByType<M> || requires(M const& metric) {
  { metric.own_name() } -> std::convertible_to<std::string>;
};

namespace detail {

template <class M>
std::string name_of(M const& metric) {
  if constexpr (NamedByType<M>) {
    return std::string(std::string_view(M::name));
  } else {
    return metric.own_name();
  }
}

/// As the `name` of a metric that measures by another one, whose members name it: own_name() has it.
struct NamedByMembers {};

/// In a policy, in place of a metric whose members cannot be set: each measurement default-makes one. Copies would share
/// the tensors that a default-made metric has, and that add() may change in place.
template <class M>
struct without_each_option {
  static constexpr std::string_view name = M::name;
  operator M() const { return M(); }  // NOLINT(google-explicit-constructor)
};

struct VisitNothing {
  void operator()(auto&&...) const {}
};
template <class M>
concept SetByMembers = !NamedByType<M> || requires(M& metric, VisitNothing const& visit) {
  metric.each_option(visit);
};
/// The type of a metric in the policy that names it. Each measurement makes its own metric from that value.
template <class M>
using fresh_metric = std::conditional_t<SetByMembers<M>, M, without_each_option<M>>;

/// Processes that train together have the same numbers in their metrics, and a resumed run says which have changed.
/// MetricError for names that the compiler does not know, and that have a fault. `phase` is a FitBegin.
template <class Phase, class... Ms>
void begin_metrics(Phase& phase, std::string const& policy, std::tuple<Ms...> metrics) {
  if constexpr ((false || ... || !NamedByType<Ms>)) {
    std::apply([&](auto const&... metric) { require_metric_names(policy, {name_of(metric)...}); },
               metrics);
  }
  [[maybe_unused]] int number = 0;
  [[maybe_unused]] auto const compare = [&](auto& metric) {
    std::string const which = policy + "::metrics[" + std::to_string(number++) + "].";
    auto const visit = [&](std::string_view member, auto const& value, auto const&...) {
      if constexpr (std::is_arithmetic_v<std::remove_cvref_t<decltype(value)>>) {
        phase.compare_in_processes(which + std::string(member), static_cast<double>(value));
      }
    };
    if constexpr (requires { metric.each_option(visit); }) metric.each_option(visit);
  };
  std::apply([&](auto&... metric) { (compare(metric), ...); }, metrics);
}

FRUGAL_DIAGNOSTIC(
    nameless_metric,
    "frugal: a metric of this recipe has no name. The compiler's note names its type: "
    "write `static constexpr std::string_view name = \"...\";` in it, or `std::string own_name() "
    "const` if a member is in its name.");
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

template <class M>
consteval std::string_view constant_name() {
  if constexpr (NamedByType<M>) {
    return M::name;
  } else {
    return {};
  }
}

template <class... Ms>
consteval bool have_own_names() {
  // Those of members are compared with the others when a fit begins, and when it measures.
  std::string_view const names[] = {"loss", constant_name<Ms>()...};
  for (std::size_t i = 0; i <= sizeof...(Ms); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      if (!names[i].empty() && names[i] == names[j]) return false;
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
    if constexpr (NamedByType<M>)
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
  /// With the values of their members.
  using values = std::conditional_t<said, std::tuple<fresh_metric<Ms>...>, std::tuple<>>;
};
template <class List>
struct named_metrics_in;
template <class... Ms>
struct named_metrics_in<list<Ms...>> : metrics_named<Ms...> {};

}  // namespace detail
}  // namespace frugal
