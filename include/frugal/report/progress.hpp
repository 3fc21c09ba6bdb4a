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
#include <type_traits>

#include <frugal/base/memory.hpp>
#include <frugal/base/number_texts.hpp>
#include <frugal/base/terminal.hpp>
#include <frugal/base/text_width.hpp>
#include <frugal/base/write_text.hpp>
#include <frugal/core/compose/about.hpp>
#include <frugal/core/compose/policy.hpp>
#include <frugal/core/compose/watching.hpp>
#include <frugal/core/libtorch/cuda_memory.hpp>
#include <frugal/core/run/phases.hpp>
#include <frugal/core/run/scalar_accumulator.hpp>
#include <frugal/policy/kinds.hpp>
#include <frugal/policy/options.hpp>
#include <frugal/policy/watched.hpp>
#include <frugal/report/progress/bar.hpp>
#include <frugal/report/progress/display.hpp>
#include <frugal/report/progress/pace.hpp>

namespace frugal {

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

  template <class Context>
  class State {
    using clock = std::chrono::steady_clock;

   public:
    explicit State(Progress const& settings)
        : out_(settings.out),
          terminal_(!settings.plain && watch::redraws(settings.out)),
          interval_(terminal_ ? 0.25 : seconds_of(settings.line_seconds)) {
      // Its destructor, also after an exception, leaves the cursor below the bars.
      if (terminal_) display_.emplace(out_, watch::wants_colours());
    }
    State(State const&) = delete;
    State& operator=(State const&) = delete;

    void on_fit_begin(FitBegin<Context>& phase) {
      RunLimits const& horizon = phase.horizon();
      line_.metric = std::string(Metric::name);
      line_.total_steps = horizon.total_steps;
      if (horizon.epochs != RunLimits::unlimited) line_.epochs = horizon.epochs;
      if (out_) phase.follow(scalars_);
      pace_.begin(clock::now());
    }

    void on_step(Step<Context>& phase) {
      clock::time_point const now = clock::now();
      // Without a place to write to nothing is read either: the loss may be on a device.
      if (!out_ || now < due_) return;
      show(phase, now, phase.last_loss());
    }

    template <class Next>
    Metrics around_validate(ValidationRun<Context> const& phase, Next&& next) {
      if (!terminal_) return next();
      line_.validation = watch::Share{0, phase.batches()};
      struct Over {  // also if the validation is interrupted
        std::optional<watch::Share>& validation;
        ~Over() { validation.reset(); }
      } const over{line_.validation};
      return next();
    }

    template <class Next>
    Loss around_forward(Forward<Context> const& phase, Next&& next) {
      if (phase.training || !line_.validation) return next();
      ++line_.validation->done;
      if (clock::time_point const now = clock::now(); now >= due_) draw(now);
      return next();
    }

    void on_validated(Validated<Context>& phase) {
      for (auto const& [name, value] : phase.metrics) {
        if (name != Metric::name || std::isnan(value)) continue;
        line_.last = value;
        if (!best_ || Metric::improves(value, *best_, 0)) best_ = value;
      }
      if (terminal_ || !out_) return;
      std::string line = "validation at step " + std::to_string(phase.counters().step);
      for (auto const& [name, value] : phase.metrics) {
        line += "  " + watch::printable(name) + " " + watch::short_number(value);
      }
      write(line);
    }

    void on_epoch_end(EpochEnd<Context>& phase) {
      if (out_) show(phase, clock::now(), phase.mean_loss());
    }

    void on_fit_end(FitEnd<Context>& phase) {
      if (!out_) return;
      if (display_) display_->end();
      std::string line = std::to_string(pace_.steps_since_first(phase.counters().step)) +
                         " steps in " +
                         watch::duration_text(pace_.seconds_since_begin(clock::now()));
      if (!phase.stopped_by().empty()) line += ", stopped by " + phase.stopped_by();
      write(line);
    }

    using dispensable = void;

    template <class Archive>
    void persist(Archive& archive) {
      archive("best", best_);
    }

   private:
    /// An infinite time overflows the clock, which would draw at each step; NaN draws never.
    static double seconds_of(double wanted) { return wanted <= 1e9 ? std::max(wanted, 0.0) : 1e9; }

    template <class Phase>
    void show(Phase& phase, clock::time_point now, double loss) {
      Counters const& at = phase.counters();
      // Known only now: a resumed run's counters are loaded after this policy's own beginning.
      if (!pace_.knows_first()) {
        constexpr bool after_step = std::is_same_v<Phase, Step<Context>>;
        pace_.first(at.step - (after_step ? 1 : 0),
                    at.sample - (after_step ? at.window_samples : 0));
      }
      pace_.update(now, at.step, at.sample, phase.waited_for_data());
      // At the end of an epoch the counter is one further; the bar still shows the ended epoch and
      // its mean.
      constexpr bool epoch_end = std::is_same_v<Phase, EpochEnd<Context>>;
      line_.epoch = at.epoch - (epoch_end ? 1 : 0);
      line_.step = at.step;
      line_.in_epoch = in_epoch(phase.horizon(), at.position, epoch_end);
      line_.samples_per_second = pace_.samples_per_second();
      line_.utilisation = phase.speed() ? phase.speed()->utilisation : std::nullopt;
      line_.data_wait = pace_.data_wait();
      if (!line_.data_wait && phase.speed()) line_.data_wait = phase.speed()->data_wait;
      line_.seconds_left = pace_.seconds_left(at.step, line_.total_steps);
      line_.loss = loss;
      line_.mean = epoch_end;
      line_.best = best_;
      line_.more = phase.scalars(scalars_);
      for (auto const& each : phase.train_metrics().metrics) line_.more.push_back(each);
      line_.gauges = phase.gauges().items();
      line_.memory_bytes = detail::tensor_bytes(phase.settings().device);
      if (!line_.memory_bytes) line_.memory_bytes = watch::resident_bytes();
      draw(now);
    }

    void draw(clock::time_point now) {
      due_ = now +
             std::chrono::duration_cast<clock::duration>(std::chrono::duration<double>(interval_));
      if (display_) {
        display_->draw(watch::bar_lines(line_, watch::terminal_size(out_).columns));
      } else {
        write(watch::line_text(line_));
      }
    }

    /// A pipe whose reader has gone gets no other one: nothing is read for it from here on.
    void write(std::string const& line) {
      if (!watch::write_text(out_, line + "\n") && errno == EPIPE) out_ = nullptr;
    }

    /// By samples: windows that were skipped or passed over count as well.
    static std::optional<watch::Share> in_epoch(RunLimits const& horizon, std::uint64_t position,
                                                bool at_end) {
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
    detail::Pace pace_;
    std::optional<double> best_;
    ScalarSpan scalars_;  // of the objective, since the last redraw
    std::optional<watch::Display> display_;
  };
};

}  // namespace frugal
