// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>

#include <frugal/core/compose/about.hpp>
#include <frugal/core/compose/policy.hpp>
#include <frugal/core/measure/measured_parts.hpp>
#include <frugal/core/measure/measurement.hpp>
#include <frugal/core/run/counters.hpp>
#include <frugal/core/run/metric.hpp>
#include <frugal/core/run/metrics.hpp>
#include <frugal/core/run/phases.hpp>
#include <frugal/core/run/services.hpp>
#include <frugal/policy/kinds.hpp>
#include <frugal/policy/options.hpp>

namespace frugal {

/// Measures the training batches, at a cadence: "train_loss", the mean over the batches since the
/// last report, and any metrics of Validate as "train_accuracy" and so on.
///
/// Lever   none; compared with a validation it shows overfitting.
/// Cost    the operators of each metric on every batch's output; at its cadence one host sync per
///         metric, none in between.
/// State   the sums since the last report; a resumed run reports the same.
/// Errors  those of the metrics (MetricError), on the first micro-batch of a process. A metric that
///         fails later is NaN, and Report::warnings says why: it does not end a paid run.
///
/// The outputs are those of the training steps: with dropout, and with the weights of each step.
/// The results are in Log's next line and on Progress, the last ones in Report::train_metrics.
/// Options come in any order: `TrainMetrics<Accuracy>` reports every 100 steps.
template <class... Options>
struct TrainMetrics {
 private:
  using classes = list<detail::option::cadence, detail::option::metric>;
  static_assert(detail::options_known<classes, Options...>,
                "frugal: TrainMetrics<...>: unknown option. Options: a cadence such as Every<100>, "
                "and metrics such as Accuracy.");
  static_assert(detail::options_unique<list<detail::option::cadence>, Options...>,
                "frugal: TrainMetrics<...>: two cadences. Keep one, such as Every<100>.");
  using Cadence = detail::option_of<detail::option::cadence, Every<100>, Options...>;
  using chosen = detail::named_metrics_in<detail::options_of<detail::option::metric, Options...>>;
  using measured = typename chosen::type;

 public:
  using kind = kinds::train_metrics;
  using listens = list<on::fit_begin, on::step, on::epoch_end, on::undo>;
  using provides = list<service::measure>;

  static constexpr About about{Term::none, "the operators of each metric on each batch's output"};

  Cadence every{};
  [[no_unique_address]] typename chosen::values metrics{};  ///< each report begins with copies

  template <class Context>
  class State;
};

template <class... Options>
template <class Context>
class TrainMetrics<Options...>::State {
  using Parts = typename detail::measured_parts_of<measured>::type;
  using Measured = typename detail::measurement_of<measured>::type;
  // An executor may abort a window and retry it.
  static constexpr bool may_undo = detail::provided<service::execution, typename Context::policies>;
  // Processes that train together must all have the metric, or none.
  static constexpr bool shares = detail::provided<service::reduce, typename Context::policies>;
  // Their sums are put together after each window, so that a save has those of all.
  static constexpr bool divides = detail::provided<service::share, typename Context::policies>;

 public:
  using dispensable = void;  // a resumed run may lack its metrics, or have new ones

  explicit State(TrainMetrics const& settings)
      : every_(settings.every),
        fresh_(settings.metrics),
        measured_(settings.metrics),
        parts_(settings.metrics) {}

  void on_fit_begin(FitBegin& phase) {
    detail::begin_metrics(phase, "TrainMetrics", fresh_);
    if constexpr (may_undo) counters_ = &phase.counters();
  }
  template <class B>
  void trained_on(Loss const& loss, B const& batch, bool first_of_window) {
    if constexpr (may_undo) {
      if (first_of_window) before_ = {counters_->sample, measured_};
    }
    if constexpr (divides) {
      if (first_of_window) parts_.clear();
      parts_.begin(1).measured.add(loss, batch);
      return;
    }
    // The first micro-batch shows whether shapes and types fit, before anything was paid.
    measured_.add(loss, batch,
                  std::exchange(begun_, true) && !shares ? detail::MetricErrors::noted
                                                         : detail::MetricErrors::thrown);
  }
  void on_undo([[maybe_unused]] WindowRetry const& phase) {
    // Of a window that ran out of memory in its first forward pass nothing was measured: `before_` is of an
    // earlier one.
    if constexpr (may_undo) {
      if (before_.first == phase.counters().sample) measured_ = before_.second;
    }
  }

  /// The sums of all processes, in the order of the micro-batches. The first process has them all;
  /// another one lacks those of a metric of which it has seen nothing yet, and reports them with it.
  void on_joined(Phase const& phase) {
    if constexpr (divides) {
      require_sums();
      if (phase.processes().in_rounds) parts_.number();
      if (phase.is_first() && !measured_.empty()) parts_.put_first(std::move(measured_));
      measured_ = Measured(fresh_);
      ScalarSpan none;
      parts_.join([&](std::string const& text) { return phase.texts_of_all(text); }, measured_,
                  none);
      parts_.clear();
    }
  }

  void on_step(Step& phase) {
    if constexpr (!Cadence::per_epoch) {
      if (every_.due_at_step(phase.counters())) report(phase);
    }
  }
  void on_epoch_end(EpochEnd& phase) {
    if (every_.due_at_epoch_end(phase.counters())) report(phase);
  }

  template <class Archive>
  void persist(Archive& archive) {
    measured_.persist(archive);
    if constexpr (may_undo && Archive::loading) before_.first.reset();
    if constexpr (divides && Archive::loading) parts_.clear();
  }

 private:
  struct Nothing {
    Nothing() = default;
    explicit Nothing(auto const&) {}
  };

  [[no_unique_address]] Cadence every_;
  [[no_unique_address]] typename chosen::values fresh_;

  /// Metrics that keep what they have seen cannot be put together after each window.
  static void require_sums() {
    if constexpr (!Parts::can_join || Parts::any_gathers) {
      [[maybe_unused]] auto const sum = []<class T>(Quantity, T value) { return value; };
      Measured().reduce(sum);
    }
  }

  void report(Step& phase) {
    Measured measured = std::exchange(measured_, Measured(fresh_));
    if constexpr (divides) {
      detail::CountedWriter out;
      if (phase.is_first() && !measured.empty()) out.put(named(phase, measured));
      std::string const text = phase.from_first(out.take());
      if (!text.empty()) phase.report_train_metrics(detail::CountedReader(text).metrics());
      return;
    }
    if constexpr (shares) {
      measured.reduce(
          [&]<class T>(Quantity what, T value) { return phase.reduce(what, std::move(value)); });
    }
    if (!measured.empty()) phase.report_train_metrics(named(phase, measured));
  }

  static Metrics named(Step& phase, Measured& measured) {
    Metrics named;
    auto const warn = [&](std::string const& text) { phase.warn("TrainMetrics: " + text); };
    // Of processes that divide windows the first alone asks.
    constexpr auto errors =
        shares && !divides ? detail::MetricErrors::thrown : detail::MetricErrors::noted;
    named.add(measured.result(warn, errors), "train_");
    return named;
  }

  Measured measured_;
  // Samples before the window, and what had been measured then.
  [[no_unique_address]] std::conditional_t<
      may_undo, std::pair<std::optional<std::uint64_t>, Measured>, Nothing> before_;
  Counters const* counters_ = nullptr;  // of the run
  [[no_unique_address]] std::conditional_t<divides, Parts, Nothing> parts_;
  bool begun_ = false;  // in this process
};

}  // namespace frugal
