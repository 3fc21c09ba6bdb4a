// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/base/number_texts.hpp>
#include <frugal/core/compose/policy.hpp>
#include <frugal/core/loop/fit.hpp>
#include <frugal/core/run/call_in_progress.hpp>
#include <frugal/core/run/run_snapshot.hpp>
#include <frugal/core/source/range.hpp>
#include <frugal/data/refused_source.hpp>
#include <frugal/error.hpp>
#include <frugal/trainer.hpp>

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <ostream>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace frugal {

/// One optimizer step of a range test.
struct RatePoint {
  double rate = 0;  ///< learning rate of the step
  double loss = 0;  ///< loss of its window, before the step
  double smoothed = 0;
};

/// The result of a learning-rate range test: the loss over a learning rate that grows by a constant
/// factor per step. Printing it draws the curve in plain characters.
struct [[nodiscard]] RateCurve {
  std::vector<RatePoint> points;
  bool diverged = false;  ///< stopped before the last rate because the loss had grown too far
  /// The rate at which the smoothed loss falls fastest; nothing if it never falls.
  std::optional<double> suggestion{};
};

namespace detail {

/// Exponential moving average of losses with bias correction (Kingma and Ba, 2015, section 3).
class Smoothing {
 public:
  explicit Smoothing(double keep) : keep_(keep) {}
  double add(double loss);

 private:
  double keep_;
  double mean_ = 0;
  double share_ = 1;
};

/// The point with the steepest descent of the smoothed loss, ignoring the first tenth of the
/// points, in which the smoothing has not settled. The slope is a least-squares fit over the
/// surrounding tenth of the points: that of two neighbours would mostly show the difference between
/// batches.
std::optional<double> steepest(std::vector<RatePoint> const& points);

/// Rows of text, highest loss first; a value above the range is drawn as '^' in the first row.
std::vector<std::string> drawn(std::vector<RatePoint> const& points, std::size_t rows,
                               std::size_t columns);

}  // namespace detail

inline std::ostream& operator<<(std::ostream& out, RateCurve const& curve) {
  constexpr std::size_t rows = 12;
  constexpr std::size_t columns = 60;
  std::string const margin(11, ' ');
  if (curve.points.empty()) return out << "no step was made\n";
  for (std::string const& row : detail::drawn(curve.points, rows, columns)) {
    out << row.substr(0, row.find_last_not_of(' ') + 1) << '\n';
  }
  std::string const first = watch::short_number(curve.points.front().rate);
  std::string const last = watch::short_number(curve.points.back().rate);
  std::string const between(columns - std::min(columns, first.size() + last.size()), ' ');
  out << std::string(10, ' ') << '+' << std::string(columns, '-') << '\n'
      << margin << first << between << last << '\n';
  if (!curve.suggestion) return out << margin << "the loss never falls\n";
  std::size_t column = 0;
  for (std::size_t i = 0; i < curve.points.size(); ++i) {
    if (curve.points[i].rate != *curve.suggestion) continue;
    column = i * (columns - 1) / (curve.points.size() - 1);
  }
  return out << margin << std::string(column, ' ') << "^ " << watch::short_number(*curve.suggestion)
             << ": the loss falls fastest\n";
}

/// Settings of a range test.
struct RateRange {
  double from = 1e-7;         ///< first learning rate
  double to = 10;             ///< last one, unless the loss diverges before
  std::uint64_t steps = 100;  ///< optimizer steps; the rate grows by a constant factor per step
  double smoothing = 0.9;     ///< fraction of the loss average that each step keeps
  double runs_away = 4;       ///< multiple of the lowest smoothed loss that ends the test

  double rate(std::uint64_t step) const;
};

namespace detail {

/// Sets the rate of each step and records its loss. Used only by the range test.
struct RangeTest {
  struct kind : optional_kind {
    static constexpr std::string_view name = "RangeTest";
  };
  using listens = list<on::fit_begin, on::window, on::loss, on::step, on::undo>;

  RateRange range{};
  double lr = 1;  ///< the optimizer multiplies it by the factor
  RateCurve* curve = nullptr;

  class State {
   public:
    using transient = void;

    explicit State(RangeTest const& settings)
        : range_(settings.range),
          lr_(settings.lr),
          curve_(*settings.curve),
          smoothing_(settings.range.smoothing) {}

    void on_fit_begin(FitBegin& phase) { phase.set_learning_rate_factor(range_.rate(0) / lr_); }

    // A window before it may have been skipped.
    void on_window(WindowBegin const&) { forget(); }

    void on_loss(LossReady& phase) {
      if (*phase.loss.weight == 0) return;  // a mean over nothing, which may be NaN
      at::Tensor const part = phase.loss.value.detach().to(at::kDouble).mul(*phase.loss.weight);
      sum_ = sum_.defined() ? sum_ + part : part;
      weight_ += *phase.loss.weight;
    }

    void on_undo(WindowRetry const&) { forget(); }

    flow on_step(Step& phase) {
      std::uint64_t const step = phase.counters().step;  // this step was the last one of these
      double const loss =
          phase.reduce(Quantity::loss, sum_.defined() ? sum_.template item<double>() : 0.0) /
          phase.reduce(Quantity::loss, weight_);
      double const smoothed = smoothing_.add(loss);
      if (curve_.points.empty() || smoothed < lowest_) lowest_ = smoothed;
      curve_.diverged = !std::isfinite(smoothed) ||
                        smoothed > lowest_ + (range_.runs_away - 1) * std::abs(lowest_);
      if (std::isfinite(smoothed)) {
        curve_.points.push_back({range_.rate(step - 1), loss, smoothed});
      }
      if (curve_.diverged) return flow::stop;
      phase.set_learning_rate_factor(range_.rate(step) / lr_);
      return flow::proceed;
    }

   private:
    void forget() {
      sum_ = at::Tensor();
      weight_ = 0;
    }

    RateRange range_;
    double lr_;
    RateCurve& curve_;
    Smoothing smoothing_;
    double lowest_ = 0;
    at::Tensor sum_;
    double weight_ = 0;
  };
};

/// Policies that make a step, or change the trained module; not one that moves it in the middle.
template <class P>
inline constexpr bool takes_part_in_range_test =
    contains<typename P::kind, list<kinds::precision, kinds::accumulate, kinds::clip,
                                    kinds::optimizer, kinds::skip_non_finite, kinds::importance>> ||
    (contains<on::module, typename P::listens> &&
     !std::same_as<typename P::kind, kinds::start_on>) ||
    is_provided_by<service::reduce, P>;

template <class Policies>
struct range_test;
template <class... Ps>
struct range_test<list<Ps...>> {
  using type =
      composed<slots, concat<std::conditional_t<takes_part_in_range_test<Ps>, list<Ps>, list<>>...,
                             list<RangeTest>>>;
};
template <class Policies>
using range_test_of = typename range_test<Policies>::type;

void require_range(RateRange const& range, double lr);

}  // namespace detail

/// The learning-rate range test: trains some steps at a growing learning rate, and reports the rate
/// at which the loss falls fastest. Afterwards everything is restored: weights, buffers, modes,
/// generators and the source's position. The test uses its own optimizer.
///
/// Lever   runs to convergence: finds in 100 steps the rate that a sweep over whole runs would.
/// Cost    the steps, and a copy of parameters and buffers.
/// Errors  SettingsError for an invalid range; those of a fit, with everything restored, except for
///         a loss that becomes NaN during the test, which ends the curve.
/// Source  Smith, "Cyclical learning rates for training neural networks" (2017), section 3.3.
///
/// The policies that make a step take part: precision, accumulate, clip, optimizer, SkipNonFinite,
/// Importance (from an empty table), those that replace parts of the module (on::module) and those that make processes agree
/// (service::reduce). Others do not: nothing is logged, saved or stopped, and Settings::stop is
/// ignored. A skipped window is no part of the curve. Rates of parameter groups keep their ratio to
/// the optimizer's own.
///
///     RateCurve const curve = find_learning_rate(trainer, train);
///     std::cout << curve;
template <class Module, class Objective, class... Ps, class Train>
RateCurve find_learning_rate(Trainer<Module, Objective, Ps...>& trainer, Train&& train,
                             RateRange const& range = {}) {
  using policies = typename Trainer<Module, Objective, Ps...>::policies;
  using optimizer = detail::slot_of<kinds::optimizer, policies>;
  static_assert(
      requires(optimizer const& each) {
        { each.lr } -> std::convertible_to<double>;
      },
      "frugal: find_learning_rate sweeps the optimizer's lr, and this one has none. Write "
      "Optimize<AdamW>, Adam, SGD or Adagrad.");
  static_assert(!detail::provided<service::share, policies>,
                "frugal: find_learning_rate trains in one process, and a policy of this recipe "
                "(Replicate) divides its windows among several. Search in a recipe without it.");
  using ordered = detail::range_test_of<policies>;
  using context = typename detail::context_of<Module, ordered>::type;

  double const lr = trainer.template policy<kinds::optimizer>().lr;
  detail::require_range(range, lr);
  RateCurve curve;
  typename detail::storage_of<ordered>::type values;
  auto assign = detail::assignment_to(values, ordered{});
  assign << detail::RangeTest{.range = range, .lr = lr, .curve = &curve};
  auto const& all = detail::TrainerAccess::values_of(trainer);
  [[maybe_unused]] auto const take = [&]<std::size_t I, class P>(std::type_identity<P>) {
    if constexpr (detail::takes_part_in_range_test<P>) assign << detail::get<I>(all);
  };
  [&]<std::size_t... Is>(std::index_sequence<Is...>) {
    (take.template operator()<Is>(std::type_identity<type_at<policies, Is>>{}), ...);
  }(std::make_index_sequence<policies::size>{});

  Settings settings = trainer.resolved_settings();
  settings.run_dir.clear();
  settings.epochs.reset();
  settings.steps = range.steps;
  settings.stop = {};  // an interrupted test has no result
  auto&& source = as_source(std::forward<Train>(train));
  using source_type = std::remove_reference_t<decltype(source)>;
  detail::CallInProgress const call({.name = "find_learning_rate",
                                     .module = &base_module(trainer.module()),
                                     .source = &source,
                                     .device = settings.device,
                                     .agrees = detail::provided<service::reduce, policies>});
  trainer.adapt();
  detail::Fit<context, Objective, source_type, void> fit(trainer.module(), trainer.objective(),
                                                         settings, values, source, nullptr);
  // Replaced modules stay replaced, as in a fit, and are what the test restores.
  fit.assemble();
  RunState run{.root = base_module(trainer.module()), .settings = settings};
  RunSnapshot before;
  before.take(run, Part::outside);
  detail::undone(before, run, [&] {
    try {
      static_cast<void>(fit.run());
    } catch (LossError const&) {
      if (curve.points.empty()) throw;  // the first loss does not depend on any rate
      curve.diverged = true;
    } catch (GradientError const&) {  // as many windows in a row were skipped as may be
      if (curve.points.empty()) throw;
      curve.diverged = true;
    }
  });
  source.seek(Cursor{settings.seed, 0, 0});
  curve.suggestion = detail::steepest(curve.points);
  return curve;
}

}  // namespace frugal

#ifndef FRUGAL_COMPILED
#include <frugal/report/find_learning_rate.ipp>
#endif
