// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <frugal/core/compose/about.hpp>
#include <frugal/core/compose/composition.hpp>
#include <frugal/core/compose/outcome.hpp>
#include <frugal/core/compose/policy.hpp>
#include <frugal/core/run/durations.hpp>
#include <frugal/core/run/event.hpp>
#include <frugal/core/run/phases.hpp>
#include <frugal/core/run/settings.hpp>
#include <frugal/policy/kinds.hpp>
#include <frugal/policy/options.hpp>
#include <frugal/policy/run_folder.hpp>
#include <frugal/report/profile/window_profile.hpp>
#include <frugal/report/profile/windows.hpp>

/// What Profile says: to explain, to the log, and as recommendations.
namespace frugal::detail {

std::string finding_of(WindowProfile const& window);

Event event_of(WindowProfile const& window);

std::string verdict_of(WindowProfile const& window);

std::string no_window_text(std::uint64_t step, std::uint64_t warm_up);

}  // namespace frugal::detail

namespace frugal {

/// An option of Profile: its ranges are NVTX ranges too, for Nsight.
struct Nvtx {};

namespace detail::option {

/// How long a window of Profile is: Seconds<3>, Steps<20>.
struct window_length {
  template <class O>
  static constexpr bool has = is_wall_time<O> || is_step_count<O>;
};
struct nvtx {
  template <class O>
  static constexpr bool has = std::same_as<O, Nvtx>;
};

}  // namespace detail::option

namespace detail {

template <class Length>
constexpr std::chrono::duration<double> window_seconds() {
  if constexpr (is_wall_time<Length>) {
    return std::chrono::duration<double>(Length::seconds);
  } else {
    return std::chrono::duration<double>(std::numeric_limits<double>::infinity());
  }
}

/// Steps<N> is exact; a window of some seconds ends earlier if its trace would become too large to
/// open.
template <class Length>
constexpr std::uint64_t window_steps() {
  if constexpr (is_step_count<Length>) {
    return Length::count;
  } else {
    return 100;
  }
}

}  // namespace detail

/// Profiles a few seconds of each epoch with Kineto, and says where the time goes and what to do.
///
/// Lever   none: it names the lever. Input-bound, compute-bound, launch-bound or host-bound.
/// Cost    between windows one comparison in each hook that it listens to. A window costs what its
///         `overhead_seconds` say. On a device a window begins and ends with a sync.
/// State   the epochs that have had their window, so that a resumed run does not repeat one.
/// Errors  SettingsError for a window without steps or warm-up. What fails later is reported once,
///         and ends the profiling, not the run.
template <class... Options>
struct Profile {
 private:
  using classes =
      list<detail::option::window_length, detail::option::cadence, detail::option::nvtx>;
  static_assert(detail::options_known<classes, Options...>,
                "frugal: Profile<...>: unknown option. Options: the length of a window such as "
                "Seconds<3> or Steps<20>, a cadence such as PerEpoch or Every<1000>, and Nvtx.");
  static_assert(detail::options_unique<classes, Options...>,
                "frugal: Profile<...>: two options of one kind. Keep one length, one cadence and "
                "one Nvtx.");
  using Length = detail::option_of<detail::option::window_length, Seconds<3>, Options...>;
  using Cadence = detail::option_of<detail::option::cadence, PerEpoch, Options...>;
  static constexpr bool nvtx = (false || ... || std::is_same_v<Options, Nvtx>);

 public:
  using kind = kinds::profile;
  // works_on_parts: it looks at times alone.
  using properties =
      list<property::works_on_parts, property::capturable, property::adds_no_metrics>;
  using listens =
      list<on::fit_begin, on::ready, on::epoch_begin, on::window, around::forward, on::loss,
           on::backward, on::gradients, on::step, around::validate, on::fit_end>;

  static constexpr About about{Term::none, "nothing outside its windows"};

  Cadence every{};             ///< of the windows
  std::uint64_t warm_up = 10;  ///< steps before a window; the second half is timed, to compare
  std::chrono::duration<double> length = detail::window_seconds<Length>();  ///< of a window
  std::uint64_t steps = detail::window_steps<Length>();  ///< most steps in a window
  std::size_t traces = 5;  ///< trace files of a fit; later windows are only analysed
  bool memory = true;      ///< also record allocations
  /// A device that works a smaller share of the time is profiled once; 0: as any other one.
  double least_busy = 0.2;
  Outcome<std::vector<WindowProfile>> outcome{};  ///< set by fit: all its windows

  /// The windows of the last fit.
  std::vector<WindowProfile> const& windows() const {
    static std::vector<WindowProfile> const none;
    return outcome.get() == nullptr ? none : *outcome.get();
  }
  /// For explain: the last window.
  std::string finding() const {
    return windows().empty() ? "" : detail::finding_of(windows().back());
  }

  class State;
};

template <class... Options>
class Profile<Options...>::State {
  using Clock = std::chrono::steady_clock;
  static constexpr std::uint64_t never = std::numeric_limits<std::uint64_t>::max();

 public:
  using dispensable = void;  // a resumed run may lack it, or have it for the first time

  State(Profile const& settings, RecipeFacts const& facts)
      : every_(settings.every),
        graph_(facts.captures_steps),
        warm_up_(settings.warm_up),
        steps_(settings.steps),
        least_busy_(settings.least_busy),
        outcome_(&settings.outcome),
        windows_({.length = settings.length,
                  .steps = settings.steps,
                  .traces = settings.traces,
                  .memory = settings.memory,
                  .nvtx = nvtx,
                  .graph = facts.captures_steps}) {}

  void on_fit_begin(FitBegin& phase) {
    outcome_->clear();
    if (!phase.settings().run_dir.empty()) detail::lock_run_folder_if_possible(phase.run_state());
    if (warm_up_ >= 2 && steps_ >= 1) return;
    throw SettingsError({.what = "warm_up is " + std::to_string(warm_up_) + ", and steps is " +
                                 std::to_string(steps_),
                         .where = "Profile",
                         .why = "a window has at least one step, and is compared with at least one "
                                "step before it",
                         .fix = "Set warm_up to 2 or more, and steps to 1 or more."});
  }
  void on_ready(Ready& phase) {
    begin_ = phase.counters().step;
    windows_.begin(phase.run_state());
    // A resumed run that is in an epoch's middle does not begin it.
    if (phase.counters().position != 0) plan_epoch(phase);
  }
  void on_epoch_begin(EpochBegin& phase) { plan_epoch(phase); }

  void on_window(WindowBegin&) { enter(graph_ ? watch::range::step : watch::range::data); }
  template <class Next>
  Loss around_forward(Forward const& phase, Next&& next) {
    if (phase.training) enter(watch::range::forward);
    return next();
  }
  void on_loss(LossReady&) { enter(watch::range::backward); }
  // After the last micro-batch of a window no data is read, and the range is empty.
  void on_backward(Backward const&) { enter(watch::range::data); }
  void on_gradients(Gradients&) { enter(watch::range::optimizer); }

  void on_step(Step& phase) {
    if constexpr (!Cadence::per_epoch) {
      if (every_.due_at_step(phase.counters())) plan(phase.counters().step);
    }
    if (phase.counters().step < next_) [[likely]]
      return;
    advance(phase);
  }

  template <class Next>
  Metrics around_validate(ValidationRun const&, Next&& next) {
    auto const begin = Clock::now();
    detail::StepRanges::Nested const range(windows_.ranges(), watch::range::validation);
    Metrics metrics = next();
    elsewhere_ += Clock::now() - begin;
    return metrics;
  }

  void on_fit_end(FitEnd& phase) {
    // A preempted run has little time left.
    if (!phase.preempted()) {
      if (windows_.open() && profiled_ > 0) finish(phase, std::nullopt);
      advise_if_none(phase);
    }
    windows_.discard();
    outcome_->set(windows_.found());
  }

  template <class Archive>
  void persist(Archive& archive) {
    std::uint64_t until = until_;
    archive("until", until);
    // A Rollback goes back in the run, not in what has been profiled.
    if constexpr (Archive::loading) until_ = std::max(until_, until);
  }

 private:
  void enter(std::string_view part) {
    if (windows_.open()) [[unlikely]]
      windows_.ranges().enter(part);
  }

  void plan_epoch(Phase const& phase) {
    if constexpr (Cadence::per_epoch) {
      Counters const& now = phase.counters();
      if (now.epoch < until_) return;
      // The epoch at whose end the cadence is due is the one to profile.
      if (every_.due_at_epoch_end({.epoch = now.epoch + 1})) plan(now.step);
    }
  }
  void plan(std::uint64_t step) {
    if (windows_.over() || next_ != never) return;
    marked_ = false;
    next_ = step + warm_up_ / 2;
  }

  void advance(Step& phase) {
    if (windows_.open()) {
      ++profiled_;
      if (windows_.is_full()) return finish(phase, phase.waited_for_data());
      enter(watch::range::policies);
    } else if (!marked_) {
      marked_ = true;
      mark_ = {Clock::now(), phase.counters().step};
      elsewhere_ = {};
      next_ = mark_.step + warm_up_ - warm_up_ / 2;
    } else {
      std::chrono::duration<double> const spent = Clock::now() - mark_.time - elsewhere_;
      double const step_seconds =
          spent.count() / static_cast<double>(phase.counters().step - mark_.step);
      profiled_ = 0;
      epoch_ = phase.counters().epoch;
      windows_.start(phase.run_state(), step_seconds, phase.waited_for_data());
      next_ = windows_.open() ? 0 : never;
    }
  }

  void finish(CheckpointPhase& phase, std::optional<double> waited) {
    next_ = never;
    until_ = std::max(until_, epoch_ + 1);
    WindowProfile const* const found = windows_.finish(phase.run_state(), waited);
    if (found == nullptr) return;
    phase.set_gauge("device_idle", found->device_idle);
    warn(phase, *found);
    phase.record(detail::event_of(*found));
  }

  /// A run that has nothing to show says why; not the last steps of a run that had its windows.
  void advise_if_none(CheckpointPhase& phase) {
    bool const any = until_ != 0 || !windows_.found().empty();
    std::uint64_t const step = phase.counters().step;
    if (any || windows_.over() || step == begin_) return;
    phase.warn(detail::no_window_text(step, warm_up_));
  }

  void warn(CheckpointPhase& phase, WindowProfile const& found) {
    std::string const verdict = detail::verdict_of(found);
    if (watch::hardly_works(found, least_busy_)) {
      windows_.stop();
      phase.warn(verdict + "The device works " + watch::percent(1 - found.device_idle) +
                 " of the time, so there are no further windows: its hot spots matter later. " +
                 found.advice);
      return;
    }
    bool& known = advised_[static_cast<std::size_t>(found.bound)];
    if (found.bound != watch::Bound::compute && !std::exchange(known, true)) {
      phase.warn(verdict + found.advice);
    }
  }

  struct Mark {
    Clock::time_point time;
    std::uint64_t step = 0;
  };

  [[no_unique_address]] Cadence every_;
  bool graph_;  ///< steps are replayed
  std::uint64_t warm_up_;
  std::uint64_t steps_;
  double least_busy_;
  Outcome<std::vector<WindowProfile>> const* outcome_;
  detail::ProfileWindows windows_;
  std::uint64_t next_ = never;  ///< step at which to act; 0 in a window
  std::uint64_t until_ = 0;     ///< epochs before this one have had their window
  std::uint64_t begin_ = 0;     ///< the step at which this process began
  std::uint64_t epoch_ = 0;     ///< of the window
  std::uint64_t profiled_ = 0;  ///< steps of the window so far
  bool marked_ = false;
  Mark mark_;
  Clock::duration elsewhere_{};  ///< validations since the mark
  std::array<bool, 4> advised_{};
};

}  // namespace frugal

#ifndef FRUGAL_COMPILED
#include <frugal/report/profile.ipp>
#endif
