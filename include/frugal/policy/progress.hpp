// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <optional>
#include <string>
#include <type_traits>

#include <frugal/compose/about.hpp>
#include <frugal/compose/policy.hpp>
#include <frugal/compose/watching.hpp>
#include <frugal/policy/kinds.hpp>
#include <frugal/policy/options.hpp>
#include <frugal/policy/watched.hpp>
#include <frugal/run/phases.hpp>
#include <frugal/run/scalar_ledger.hpp>
#include <frugal/watch/bar.hpp>

namespace frugal {

/// Shows how far a run is: a bar with rate, time left, loss and best metric on a terminal,
/// plain lines elsewhere.
///
/// Lever   none; the first place to see that a run is not worth its money.
/// Cost    per step one reading of the clock; the loss is read, with one host sync if it is on
///         a device, when something is drawn: four times a second on a terminal, every 10 s else.
/// State   the best metric, which survives a resume.
/// Errors  none: a run does not fail because nobody can watch it.
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
  using listens = list<on::fit_begin, on::step, on::validated, on::epoch_end, on::fit_end>;
  using after = list<kinds::schedule, kinds::validate>;

  FRUGAL_SENTENCE(without_metric,
                  "frugal: Progress watches a metric that this recipe does not measure. Add the "
                  "metric to Validate, as in Validate<Accuracy>, or write Progress<>.");
  using watches = list<watched<Metric, without_metric>>;

  static constexpr About about{Term::none, "one reading of the clock per step"};

  std::FILE* out = stderr;
  bool plain = false;        ///< lines even on a terminal
  double line_seconds = 10;  ///< time between plain lines

  template <class Context>
  class State {
    using clock = std::chrono::steady_clock;

   public:
    explicit State(Progress const& settings)
        : out_(settings.out),
          terminal_(!settings.plain && settings.out && ::isatty(::fileno(settings.out)) == 1),
          interval_(terminal_ ? 0.25 : settings.line_seconds) {}

    ~State() {
      // Also after an exception: the error begins on a line of its own.
      if (drawn_ && out_) std::fputs("\n", out_);
    }
    State(State const&) = delete;
    State& operator=(State const&) = delete;

    void on_fit_begin(FitBegin<Context>& phase) {
      total_steps_ = phase.horizon().total_steps;
      if (phase.horizon().epochs != Horizon::unlimited) epochs_ = phase.horizon().epochs;
      if (out_) phase.follow(scalars_);
      begin_ = last_ = clock::now();
    }

    void on_step(Step<Context>& phase) {
      clock::time_point const now = clock::now();
      // Without a place to write to nothing is read either: the loss may be on a device.
      if (!out_ || now < due_) return;
      show(phase, now, phase.last_loss());
    }

    void on_validated(Validated<Context>& phase) {
      for (auto const& [name, value] : phase.metrics) {
        if (name != Metric::name || std::isnan(value)) continue;
        if (!best_ || Metric::improves(value, *best_, 0)) best_ = value;
      }
      if (terminal_ || !out_) return;
      std::string line = "validation at step " + std::to_string(phase.counters().step);
      for (auto const& [name, value] : phase.metrics) {
        line += "  " + name + " " + watch::short_number(value);
      }
      std::fprintf(out_, "%s\n", line.c_str());
    }

    void on_epoch_end(EpochEnd<Context>& phase) {
      if (out_) show(phase, clock::now(), phase.mean_loss());
    }

    void on_fit_end(FitEnd<Context>& phase) {
      if (!out_) return;
      std::chrono::duration<double> const spent = clock::now() - begin_;
      end_line();
      std::fprintf(
          out_, "%llu steps in %s%s%s\n",
          static_cast<unsigned long long>(first_step_ ? phase.counters().step - *first_step_ : 0),
          watch::duration_text(spent.count()).c_str(),
          phase.stopped_by().empty() ? "" : ", stopped by ", phase.stopped_by().c_str());
      std::fflush(out_);
    }

    using dispensable = void;

    template <class Archive>
    void persist(Archive& archive) {
      archive("best", best_);
    }

   private:
    template <class Phase>
    void show(Phase& phase, clock::time_point now, double loss) {
      due_ = now +
             std::chrono::duration_cast<clock::duration>(std::chrono::duration<double>(interval_));
      Counters const& at = phase.counters();
      // Known only now: a resumed run's counters are loaded after this policy's own beginning.
      if (!first_step_) {
        constexpr bool after_step = std::is_same_v<Phase, Step<Context>>;
        first_step_ = at.step - (after_step ? 1 : 0);
        last_sample_ = at.sample - (after_step ? at.window_samples : 0);
      }
      double const seconds = std::chrono::duration<double>(now - last_).count();
      if (seconds > 0 && at.sample > last_sample_) {
        double const rate = static_cast<double>(at.sample - last_sample_) / seconds;
        // An exponential mean keeps the rate readable and follows a change in a few redraws.
        rate_ = rate_ == 0 ? rate : 0.7 * rate_ + 0.3 * rate;
        seconds_per_step_ = std::chrono::duration<double>(now - begin_).count() /
                            static_cast<double>(std::max<std::uint64_t>(at.step - *first_step_, 1));
      }
      last_ = now;
      last_sample_ = at.sample;
      // At its end an epoch is counted already; what is shown is still that one, and its mean.
      constexpr bool epoch_end = std::is_same_v<Phase, EpochEnd<Context>>;
      watch::BarLine line{.epoch = at.epoch - (epoch_end ? 1 : 0),
                          .epochs = epochs_,
                          .step = at.step,
                          .total_steps = total_steps_,
                          .samples_per_second = rate_,
                          .utilisation = phase.speed() ? phase.speed()->utilisation : std::nullopt,
                          .seconds_left = seconds_left(at.step),
                          .loss = loss,
                          .mean = epoch_end,
                          .metric = std::string(Metric::name),
                          .best = best_,
                          .more = phase.scalars(scalars_)};
      for (auto const& each : phase.train_metrics().metrics) line.more.push_back(each);
      if (terminal_) {
        std::fprintf(out_, "\r\x1b[K%s", watch::bar_text(line, columns()).c_str());
        drawn_ = true;
      } else {
        std::fprintf(out_, "%s\n", watch::line_text(line).c_str());
      }
      std::fflush(out_);
    }

    std::optional<double> seconds_left(std::uint64_t step) const {
      if (!total_steps_ || seconds_per_step_ == 0) return {};
      return static_cast<double>(*total_steps_ - std::min(step, *total_steps_)) * seconds_per_step_;
    }

    std::size_t columns() const {
      winsize size{};
      if (::ioctl(::fileno(out_), TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
      return 80;
    }

    void end_line() {
      if (drawn_) std::fputs("\n", out_);
      drawn_ = false;
    }

    std::FILE* out_;
    bool terminal_;
    double interval_;
    std::optional<std::uint64_t> total_steps_;
    std::optional<std::uint64_t> epochs_;
    clock::time_point begin_{}, last_{}, due_{};
    std::optional<std::uint64_t> first_step_;  // the step before the first of this fit
    std::uint64_t last_sample_ = 0;
    double rate_ = 0;
    double seconds_per_step_ = 0;
    std::optional<double> best_;
    ScalarSpan scalars_;  // of the objective, since the last redraw
    bool drawn_ = false;
  };
};

}  // namespace frugal
