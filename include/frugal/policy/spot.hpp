// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <concepts>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <optional>
#include <string>
#include <type_traits>

#include <frugal/base/number_text.hpp>
#include <frugal/core/compose/about.hpp>
#include <frugal/core/compose/policy.hpp>
#include <frugal/core/run/phases.hpp>
#include <frugal/core/run/report.hpp>
#include <frugal/core/run/services.hpp>
#include <frugal/policy/kinds.hpp>
#include <frugal/policy/spot/signals.hpp>

namespace frugal {

/// Saves on a preemption signal: SIGTERM, and SIGUSR1 in a SLURM job.
struct SigtermSave {};

/// Seconds between the notice and the end of the machine.
template <int Seconds>
struct Grace {
  static_assert(Seconds >= 1,
                "frugal: Grace<0> leaves no time to save. Write the seconds between the notice and "
                "the end of the machine: Grace<30> on GCP and Azure, Grace<120> on AWS.");
  static constexpr int seconds = Seconds;
};

/// Action of Spot after the run is saved.
enum class Preempted {
  Return,  ///< fit returns, and main returns Report::exit_code(), which is 75: run it again
  Exit,    ///< ends the process with that code at once, without destructors
};

namespace detail {

template <class T>
inline constexpr bool is_grace = false;
template <int Seconds>
inline constexpr bool is_grace<Grace<Seconds>> = true;

/// A source of notices in addition to the signal: `Watch` is constructed when fit begins, and
/// `pending()` reads a flag. See policy/notices.hpp.
template <class T>
concept NoticeOption = requires { typename T::Watch; } && requires(typename T::Watch const& watch) {
  { watch.pending() } -> std::convertible_to<bool>;
  { watch.text() } -> std::convertible_to<std::string>;
  { watch.warning() } -> std::convertible_to<std::string>;
};

struct NoSignals {
  explicit NoSignals(bool /*dry*/) {}
  static bool requested() { return false; }
  static std::string name() { return {}; }
  static void keep() {}
  static void next_ends() {}
};

struct NoNotices {
  struct Watch {
    explicit Watch(NoNotices const&) {}
    static bool pending() { return false; }
    static std::string text() { return {}; }
    static std::string warning() { return {}; }
    static void saved() {}
  };
};

template <class... Os>
struct notices_in {
  using type = NoNotices;
};
template <class O, class... Os>
struct notices_in<O, Os...> {
  using type =
      typename std::conditional_t<NoticeOption<O>, std::type_identity<O>, notices_in<Os...>>::type;
};

template <class... Os>
struct grace_in {
  static constexpr int seconds = 30;
};
template <class O, class... Os>
struct grace_in<O, Os...> : grace_in<Os...> {};
template <int Seconds, class... Os>
struct grace_in<Grace<Seconds>, Os...> {
  static constexpr int seconds = Seconds;
};

}  // namespace detail

/// Handles a preemption: finishes the step, saves the run, and returns from fit. Main returns
/// Report::exit_code(), which is then 75, so that the job scheduler starts the program again. The
/// code is 74 if the run could not be saved and Checkpoint continues anyway (OnFailure::Continue).
///
/// Lever   price per hour: spot machines cost 60-90% less and vanish at short notice.
/// Cost    reading a flag in each step, and before each batch of a validation or dry run.
/// State   none. Signal handlers are installed for the duration of fit (or dry_run) and restored after
///         it; after a preemption, one that ends the process replaces the default action. evaluate,
///         predict and find_learning_rate install nothing.
/// Errors  what Checkpoint throws when the save fails.
/// Source  sysexits.h, EX_TEMPFAIL: "temporary failure; user is invited to retry".
///
/// A notice during a validation aborts it; the resumed run repeats it. A second signal during the
/// save has no effect; one after fit ends the process at once, with that code.
template <class... Options>
struct Spot {
  static_assert((true && ... &&
                 (std::same_as<Options, SigtermSave> || detail::is_grace<Options> ||
                  detail::NoticeOption<Options>)),
                "frugal: Spot<...>: unknown option. Options: SigtermSave, Grace<seconds>, "
                "Notices<provider>.");
  static_assert(
      (0 + ... + int{std::same_as<Options, SigtermSave>}) <= 1 &&
          (0 + ... + int{detail::is_grace<Options>}) <= 1 &&
          (0 + ... + int{detail::NoticeOption<Options>}) <= 1,
      "frugal: Spot<...>: the same option twice. Keep one SigtermSave, one Grace<seconds> and one "
      "Notices<provider>.");
  FRUGAL_DIAGNOSTIC(without_checkpoint,
                    "frugal: Spot needs Checkpoint: there is nothing to save to. Add "
                    "Checkpoint<Every<500>>.");

  using kind = kinds::spot;
  using listens =
      list<on::fit_begin, query::stop_requested, on::preempt, on::epoch_end, on::fit_end>;
  using provides = list<service::before_fit, service::after_fit>;
  using needs = list<need<kinds::checkpoint, without_checkpoint>>;
  using notices_type = typename detail::notices_in<Options...>::type;

  static constexpr bool hears_signals = (false || ... || std::same_as<Options, SigtermSave>);
  static_assert(hears_signals || !std::same_as<notices_type, detail::NoNotices>,
                "frugal: this Spot has no source of preemption notices. Write Spot<SigtermSave>, "
                "Spot<Notices<Aws>> or Spot<SigtermSave, Notices<Aws>>.");

  static constexpr About about{Term::price_per_hour, "a look at a flag in each step"};

  /// Seconds between the notice and the end of the machine.
  int grace = detail::grace_in<Options...>::seconds;
  Preempted on_preemption = Preempted::Return;
  [[no_unique_address]] notices_type notices{};

  /// Prints one line on stderr and, with Preempted::Exit, ends the process without destructors:
  /// threads of data sources may be running.
  void after_fit(Report const& report) const {
    // A search goes on with another trial.
    if (!report.preempted || report.preempted_by == kinds::search_watch::name) return;
    if constexpr (hears_signals) detail::PreemptionSignals::set_code(report.exit_code());
    bool const exits = on_preemption == Preempted::Exit;
    if (exits) {
      std::cout.flush();
      for (std::string const& text : report.warnings) std::cerr << "warning: " << text << '\n';
    }
    // Checkpoint has reported the Ctrl-C.
    if (!report.interrupted) std::cerr << last_words(report, exits) << std::flush;
    if (!exits) return;
    std::fflush(nullptr);
    std::_Exit(report.exit_code());
  }

  static std::string last_words(Report const& report, bool exits) {
    std::string line = "frugal: preempted ";
    line += report.steps == 0 ? "before the first step" : "at step " + std::to_string(report.steps);
    std::string const code = std::to_string(report.exit_code());
    if (!report.unsaved.empty()) {
      return line + ", and that is not saved: " + report.unsaved + "; exit code " + code +
             " is an error of input and output\n";
    }
    return line + (exits
                       ? "; exit code " + code + " asks to be run again\n"
                       : "; return Report::exit_code() (" + code + ") from main to be run again\n");
  }

  class State {
   public:
    using transient = void;

    explicit State(Spot const& settings)
        : grace_(settings.grace),
          on_preemption_(settings.on_preemption),
          notices_(settings.notices) {}

    /// Not in the constructor: an evaluation has States too, and would swallow the signal.
    void before_fit(bool dry) {
      signals_.emplace(dry);
      watch_.emplace(notices_);
    }

    void on_fit_begin(FitBegin& phase) {
      detail::counted(grace_, "Spot::grace");
      compare_with_grace(phase);
    }
    void on_epoch_end(EpochEnd& phase) { compare_with_grace(phase); }
    void on_fit_end(FitEnd& phase) {
      if (std::string const warning = watch_->warning(); !warning.empty()) phase.warn(warning);
    }

    /// Whether there is a preemption signal or notice.
    bool stop_requested(Phase const&) const { return preemption_pending(); }

    void on_preempt(Preemption& phase) {
      if (phase.has_begun) {
        if (!phase.interrupted()) {
          phase.record({"preempted", {{"by", by(phase)}, {"save_seconds", phase.seconds_of_save}}});
        }
        if (phase.saved) watch_->saved();
      }
      // A second signal must not change the exit code.
      if (on_preemption_ == Preempted::Exit) signals_->keep();
      if (on_preemption_ == Preempted::Return && preemption_pending()) signals_->next_ends();
    }

   private:
    bool preemption_pending() const {
      return signals_ && (signals_->requested() || watch_->pending());
    }

    std::string by(Preemption const& phase) const {
      if (signals_->requested()) return signals_->name();
      return watch_->pending() ? watch_->text() : phase.requested_by();
    }

    void compare_with_grace(CheckpointPhase& phase) {
      double const seconds = phase.save_seconds();
      if (warned_ || seconds <= grace_) return;
      warned_ = true;
      phase.warn("a checkpoint takes " + detail::fixed(seconds, 1) + " s and the machine gives " +
                 std::to_string(grace_) +
                 " s notice: save less (WeightsIn<BF16>), to a faster disk, or more often, so that "
                 "less is lost");
    }

    int grace_;
    Preempted on_preemption_;
    bool warned_ = false;
    [[no_unique_address]] notices_type notices_;
    // Both from the beginning of a fit or dry run to its end.
    std::optional<std::conditional_t<hears_signals, detail::PreemptionSignals, detail::NoSignals>>
        signals_;
    std::optional<typename notices_type::Watch> watch_;
  };
};

}  // namespace frugal
