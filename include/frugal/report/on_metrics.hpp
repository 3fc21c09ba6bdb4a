// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <functional>
#include <type_traits>

#include <frugal/core/compose/about.hpp>
#include <frugal/core/compose/policy.hpp>
#include <frugal/error.hpp>
#include <frugal/policy/kinds.hpp>
#include <frugal/policy/options.hpp>
#include <frugal/report/sink/state.hpp>

namespace frugal::kinds {

struct on_metrics : repeatable_kind {
  static constexpr std::string_view name = "OnMetrics";
  static constexpr std::string_view page = "report/on_metrics.md";
  static constexpr bool once_per_run = true;
  static constexpr Stage stage = Stage::publish;
};

}  // namespace frugal::kinds

namespace frugal {

namespace detail {

template <class F>
class CallSink {
 public:
  static constexpr bool forgets = true;

  template <class Policy>
  explicit CallSink(Policy const& policy) : call_(&policy.call) {}

  void open(FitBegin&) const {
    if constexpr (requires { static_cast<bool>(*call_); }) {
      if (static_cast<bool>(*call_)) return;
      throw SettingsError({.what = "OnMetrics has nothing to call",
                           .where = "OnMetrics::call",
                           .why = "the function is empty",
                           .fix = "Set it, as in OnMetrics<>{.call = [](auto const& record) "
                                  "{ ... }}."});
    }
  }
  void write(MetricRecord const& record) const { std::invoke(*call_, record); }

 private:
  F const* call_;
};

}  // namespace detail

/// Calls a function with each record of the run: its begin, each due step, each validation, epoch,
/// event, and its end.
///
/// Lever   none: for a tracking service or a display that frugal does not know.
/// Cost    at its cadence one call and, with the losses on a device, one host sync; between times
///         one comparison of a counter. The function runs on the training thread.
/// State   the means since the last record.
/// Errors  SettingsError for an empty std::function. An exception of the function does not end the
///         run: the first is a warning, and the others are counted (`outcome`).
///
/// `call` must be callable through a const reference, and may be copied.
template <class F = std::function<void(MetricRecord const&)>, class Cadence = Every<100>>
struct OnMetrics {
  static_assert(std::invocable<F const&, MetricRecord const&>,
                "frugal: OnMetrics<F, Cadence>: F is called with a MetricRecord const&. Write "
                "OnMetrics<> for a std::function, or OnMetrics<F, Every<10>>.");
  static_assert(detail::option::cadence::has<Cadence>,
                "frugal: OnMetrics<F, Cadence>: the second option is a cadence, such as Every<100> "
                "or Every<1, Epoch>.");

  using kind = kinds::on_metrics;
  using listens = detail::sink_listens;

  static constexpr About about{Term::none, "one call at its cadence"};

  F call{};
  Cadence every{};
  Outcome<SinkOutcome> outcome{};  ///< set by fit: what arrived, and what was lost

  using State = detail::SinkState<Cadence, detail::CallSink<F>>;
};

}  // namespace frugal
