// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <frugal/base/terminal.hpp>
#include <frugal/core/compose/about.hpp>
#include <frugal/core/compose/policy.hpp>
#include <frugal/core/compose/watching.hpp>
#include <frugal/core/run/metrics.hpp>
#include <frugal/core/run/phases.hpp>
#include <frugal/core/run/run_limits.hpp>
#include <frugal/core/run/scalar_accumulator.hpp>
#include <frugal/policy/kinds.hpp>
#include <frugal/policy/options.hpp>
#include <frugal/policy/watched.hpp>
#include <frugal/report/progress/bar.hpp>

namespace frugal {

struct RunState;

namespace detail {

enum class ShownAt { step, epoch_end };

/// What Progress writes of a run, and when. Knows no recipe.
class ProgressPrinter {
 public:
  using clock = std::chrono::steady_clock;

  ProgressPrinter(std::FILE* out, bool plain, double line_seconds);

  bool writes() const { return out_ != nullptr; }
  bool redraws() const { return terminal_; }
  bool is_due(clock::time_point now) const { return out_ && now >= due_; }

  void begin(std::string_view metric, RunLimits const& horizon);

  bool validates() const { return line_.validation.has_value(); }
  void begin_validation(std::optional<std::uint64_t> batches) {
    line_.validation = watch::Share{0, batches};
  }
  void end_validation() { line_.validation.reset(); }
  void next_batch();

  /// Writes a line of the results, if there is no bar for them; returns that of the watched metric.
  std::optional<double> validated(std::uint64_t step, Metrics const& metrics);

  struct Shown {
    double loss;
    std::optional<double> best;  ///< of the watched metric
    std::vector<ScalarSpan::Mean> scalars;
    ShownAt at;
  };
  void show(RunState const& run, clock::time_point now, Shown const& shown);

  void end(std::uint64_t step, std::string const& stopped_by);

 private:
  /// An infinite time overflows the clock, which would draw at each step; NaN draws never.
  static double seconds_of(double wanted) { return wanted <= 1e9 ? std::max(wanted, 0.0) : 1e9; }

  void draw(clock::time_point now);

  /// A pipe whose reader has gone gets no other one: nothing is read for it from here on.
  void write(std::string const& line);

  /// By samples: windows that were skipped or passed over count as well.
  static std::optional<watch::Share> in_epoch(RunLimits const& horizon, std::uint64_t position,
                                              bool at_end);

  std::FILE* out_;
  bool terminal_;
  double interval_;
  clock::time_point due_{};
  watch::BarLine line_;  // the last one: a validation's bar is drawn below it
  Pace pace_;
  std::optional<watch::Display> display_;
};

}  // namespace detail

/// Shows how far a run is: on a terminal bars of the run, the epoch and the validation, with rate,
/// time left, loss, metric, memory and money; plain lines elsewhere.
///
/// Lever   none; the first place to see that a run is not worth its money.
/// Cost    per step and per batch of a validation one reading of the clock. When something is
///         drawn, four times a second on a terminal and every 10 s elsewhere, the loss is read,
///         with one host sync if it is on a device. A validation's bar reads nothing.
/// State   the best metric, which survives a resume.
/// Errors  none: a closed terminal does not end a run.
template <class... Options>
struct Progress {
 private:
  using classes = list<detail::option::watch>;
  static_assert(
      detail::options_known<classes, Options...>,
      "frugal: Progress<...>: unknown option. Options: a watched metric such as "
      "WatchLoss or WatchAccuracy. How often it draws is not an option: set line_seconds.");
  static_assert(detail::options_unique<classes, Options...>,
                "frugal: Progress<...>: two watched metrics. Keep one.");
  using Metric = detail::option_of<detail::option::watch, WatchLoss, Options...>;

 public:
  using kind = kinds::progress;
  using listens = list<on::fit_begin, around::forward, on::step, around::validate, on::validated,
                       on::epoch_end, on::fit_end>;
  using after = list<kinds::validate>;

  FRUGAL_DIAGNOSTIC(without_metric,
                    "frugal: Progress watches a metric that this recipe does not measure; the "
                    "compiler's note names it. Add the "
                    "metric to Validate, as in Validate<Accuracy>, or write Progress<>.");
  using watches = list<watched<Metric, without_metric>>;

  static constexpr About about{Term::none, "one reading of the clock per step"};
  using properties = list<property::capturable, property::adds_no_metrics>;

  std::FILE* out = stderr;
  bool plain = false;        ///< lines even on a terminal
  double line_seconds = 10;  ///< time between plain lines

  class State {
   public:
    explicit State(Progress const& settings)
        : printer_(settings.out, settings.plain, settings.line_seconds) {}
    State(State const&) = delete;
    State& operator=(State const&) = delete;

    void on_fit_begin(FitBegin& phase) {
      printer_.begin(Metric::name, phase.horizon());
      if (printer_.writes()) phase.follow(scalars_);
    }

    void on_step(Step& phase) {
      auto const now = detail::ProgressPrinter::clock::now();
      // Without a place to write to nothing is read either: the loss may be on a device.
      if (printer_.is_due(now)) show(phase, now, phase.last_loss(), detail::ShownAt::step);
    }

    template <class Next>
    Metrics around_validate(ValidationRun const& phase, Next&& next) {
      if (!printer_.redraws()) return next();
      struct Over {  // also if the validation is interrupted
        detail::ProgressPrinter& printer;
        ~Over() { printer.end_validation(); }
      } const over{printer_};
      printer_.begin_validation(phase.batches());
      return next();
    }

    template <class Next>
    Loss around_forward(Forward const& phase, Next&& next) {
      if (!phase.training && printer_.validates()) printer_.next_batch();
      return next();
    }

    void on_validated(Validated& phase) {
      if (auto const value = printer_.validated(phase.counters().step, phase.metrics)) {
        if (!best_ || Metric::improves(*value, *best_, 0)) best_ = *value;
      }
    }

    void on_epoch_end(EpochEnd& phase) {
      if (!printer_.writes()) return;
      show(phase, detail::ProgressPrinter::clock::now(), phase.mean_loss(),
           detail::ShownAt::epoch_end);
    }

    void on_fit_end(FitEnd& phase) { printer_.end(phase.counters().step, phase.stopped_by()); }

    using dispensable = void;

    template <class Archive>
    void persist(Archive& archive) {
      archive("best", best_);
    }

   private:
    template <class Phase>
    void show(Phase& phase, detail::ProgressPrinter::clock::time_point now, double loss,
              detail::ShownAt at) {
      printer_.show(phase.run_state(), now, {loss, best_, phase.scalars(scalars_), at});
    }

    detail::ProgressPrinter printer_;
    std::optional<double> best_;
    ScalarSpan scalars_;  // of the objective, since the last redraw
  };
};

}  // namespace frugal

#ifndef FRUGAL_COMPILED
#include <frugal/report/progress.ipp>
#endif
