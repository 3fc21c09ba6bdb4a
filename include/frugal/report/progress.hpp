// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <frugal/base/memory.hpp>
#include <frugal/base/number_texts.hpp>
#include <frugal/base/terminal.hpp>
#include <frugal/base/text_width.hpp>
#include <frugal/base/write_text.hpp>
#include <frugal/core/compose/about.hpp>
#include <frugal/core/compose/policy.hpp>
#include <frugal/core/compose/watching.hpp>
#include <frugal/core/libtorch/cuda_memory.hpp>
#include <frugal/core/run/metrics.hpp>
#include <frugal/core/run/phases.hpp>
#include <frugal/core/run/run_limits.hpp>
#include <frugal/core/run/run_state.hpp>
#include <frugal/core/run/scalar_accumulator.hpp>
#include <frugal/inline.hpp>
#include <frugal/policy/kinds.hpp>
#include <frugal/policy/options.hpp>
#include <frugal/policy/watched.hpp>
#include <frugal/report/progress/bar.hpp>
#include <frugal/report/progress/display.hpp>
#include <frugal/report/progress/pace.hpp>

namespace frugal {

namespace detail {

enum class ShownAt { step, epoch_end };

/// What Progress writes of a run, and when. Knows no recipe.
class ProgressPrinter {
 public:
  using clock = std::chrono::steady_clock;

  FRUGAL_INLINE ProgressPrinter(std::FILE* out, bool plain, double line_seconds)
      : out_(out),
        terminal_(!plain && watch::redraws(out)),
        interval_(terminal_ ? 0.25 : seconds_of(line_seconds)) {
    // Its destructor, also after an exception, leaves the cursor below the bars.
    if (terminal_) display_.emplace(out_, watch::wants_colours());
  }

  bool writes() const { return out_ != nullptr; }
  bool redraws() const { return terminal_; }
  bool is_due(clock::time_point now) const { return out_ && now >= due_; }

  FRUGAL_INLINE void begin(std::string_view metric, RunLimits const& horizon) {
    line_.metric = std::string(metric);
    line_.total_steps = horizon.total_steps;
    if (horizon.epochs != RunLimits::unlimited) line_.epochs = horizon.epochs;
    pace_.begin(clock::now());
  }

  bool validates() const { return line_.validation.has_value(); }
  void begin_validation(std::optional<std::uint64_t> batches) {
    line_.validation = watch::Share{0, batches};
  }
  void end_validation() { line_.validation.reset(); }
  FRUGAL_INLINE void next_batch() {
    ++line_.validation->done;
    if (clock::time_point const now = clock::now(); now >= due_) draw(now);
  }

  /// Writes a line of the results, if there is no bar for them; returns that of the watched metric.
  FRUGAL_INLINE std::optional<double> validated(std::uint64_t step, Metrics const& metrics) {
    std::optional<double> watched;
    for (auto const& [name, value] : metrics) {
      if (name == line_.metric && !std::isnan(value)) watched = value;
    }
    if (watched) line_.last = watched;
    if (terminal_ || !out_) return watched;
    std::string line = "validation at step " + std::to_string(step);
    for (auto const& [name, value] : metrics) {
      line += "  " + watch::printable(name) + " " + watch::short_number(value);
    }
    write(line);
    return watched;
  }

  struct Shown {
    double loss;
    std::optional<double> best;  ///< of the watched metric
    std::vector<ScalarSpan::Mean> scalars;
    ShownAt at;
  };
  FRUGAL_INLINE void show(RunState const& run, clock::time_point now, Shown const& shown) {
    Counters const& at = run.counters;
    bool const epoch_end = shown.at == ShownAt::epoch_end;
    // Known only now: a resumed run's counters are loaded after this policy's own beginning.
    if (!pace_.knows_first()) {
      pace_.first(at.step - (epoch_end ? 0 : 1), at.sample - (epoch_end ? 0 : at.window_samples));
    }
    pace_.update(now, at.step, at.sample, run.loop->waited_for_data());
    // At the end of an epoch the counter is one further; the bar still shows the ended epoch and
    // its mean.
    line_.epoch = at.epoch - (epoch_end ? 1 : 0);
    line_.step = at.step;
    line_.in_epoch = in_epoch(run.horizon, at.position, epoch_end);
    line_.samples_per_second = pace_.samples_per_second();
    line_.utilisation = run.speed ? run.speed->utilisation : std::nullopt;
    line_.data_wait = pace_.data_wait();
    if (!line_.data_wait && run.speed) line_.data_wait = run.speed->data_wait;
    line_.seconds_left = pace_.seconds_left(at.step, line_.total_steps);
    line_.loss = shown.loss;
    line_.mean = epoch_end;
    line_.best = shown.best;
    line_.more = shown.scalars;
    for (auto const& each : run.train_metrics.metrics) line_.more.push_back(each);
    line_.gauges = run.gauges.items();
    line_.memory_bytes = tensor_bytes(run.settings.device);
    if (!line_.memory_bytes) line_.memory_bytes = watch::resident_bytes();
    draw(now);
  }

  FRUGAL_INLINE void end(std::uint64_t step, std::string const& stopped_by) {
    if (!out_) return;
    if (display_) display_->end();
    std::string line = std::to_string(pace_.steps_since_first(step)) + " steps in " +
                       watch::duration_text(pace_.seconds_since_begin(clock::now()));
    if (!stopped_by.empty()) line += ", stopped by " + stopped_by;
    write(line);
  }

 private:
  /// An infinite time overflows the clock, which would draw at each step; NaN draws never.
  static double seconds_of(double wanted) { return wanted <= 1e9 ? std::max(wanted, 0.0) : 1e9; }

  FRUGAL_INLINE void draw(clock::time_point now) {
    due_ =
        now + std::chrono::duration_cast<clock::duration>(std::chrono::duration<double>(interval_));
    if (display_) {
      display_->draw(watch::bar_lines(line_, watch::terminal_size(out_).columns));
    } else {
      write(watch::line_text(line_));
    }
  }

  /// A pipe whose reader has gone gets no other one: nothing is read for it from here on.
  FRUGAL_INLINE void write(std::string const& line) {
    if (!watch::write_text(out_, line + "\n") && errno == EPIPE) out_ = nullptr;
  }

  /// By samples: windows that were skipped or passed over count as well.
  FRUGAL_INLINE static std::optional<watch::Share> in_epoch(RunLimits const& horizon,
                                                            std::uint64_t position, bool at_end) {
    if (!horizon.steps_per_epoch || horizon.samples_per_epoch.value_or(0) == 0) return {};
    double const share =
        static_cast<double>(position) / static_cast<double>(*horizon.samples_per_epoch);
    auto const steps = static_cast<double>(*horizon.steps_per_epoch);
    if (at_end || share >= 1)
      return watch::Share{*horizon.steps_per_epoch, horizon.steps_per_epoch};
    return watch::Share{static_cast<std::uint64_t>(std::llround(share * steps)),
                        horizon.steps_per_epoch};
  }

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
                    "frugal: Progress watches a metric that this recipe does not measure. Add the "
                    "metric to Validate, as in Validate<Accuracy>, or write Progress<>.");
  using watches = list<watched<Metric, without_metric>>;

  static constexpr About about{Term::none, "one reading of the clock per step"};
  static constexpr bool capturable = true;
  static constexpr bool adds_metrics = false;

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
