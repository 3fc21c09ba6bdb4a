// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <frugal/base/number_text.hpp>
#include <frugal/core/compose/about.hpp>
#include <frugal/core/compose/policy.hpp>
#include <frugal/core/libtorch/parameters.hpp>
#include <frugal/core/run/phases.hpp>
#include <frugal/core/run/run.hpp>
#include <frugal/core/run/run_snapshot.hpp>
#include <frugal/core/run/services.hpp>
#include <frugal/core/run/window_phases.hpp>
#include <frugal/error.hpp>
#include <frugal/policy/finite_state.hpp>
#include <frugal/policy/kinds.hpp>
#include <frugal/policy/options.hpp>

namespace frugal::detail {

/// Running means of losses and of their absolute values, with a decay of 2% per loss, and the loss
/// above which there is a jump.
class LossMean {
 public:
  void add(double loss);

  double value() const { return value_; }
  /// Whether a loss exceeds `times` the mean. A multiple of a negative mean says nothing, so the
  /// distance from the mean counts, in mean absolute values. It is the same if no loss is negative.
  /// Never before there are enough losses to distinguish a jump from their variation.
  bool jumps(double loss, double times) const {
    return count_ >= 20 && loss > value_ + (times - 1) * magnitude_;
  }

  template <class Archive>
  void persist(Archive& archive) {
    archive("mean", value_);
    archive("losses", count_);
    archive("magnitude", magnitude_);
  }

 private:
  double value_ = 0;
  double magnitude_ = 0;
  std::uint64_t count_ = 0;
};

/// The windows that Rollback passes over, by epoch and position, and the search for one that is not
/// known: after a return each step is looked at, up to the one at which the fault was seen. The
/// window of the fault is passed over meanwhile, as a suspect.
class BadWindows {
 public:
  bool has(std::uint64_t epoch, std::uint64_t position) const;

  void add(std::uint64_t epoch, std::uint64_t position) { places_.push_back({epoch, position}); }

  bool searching() const { return until_ != nothing; }
  /// `at`: where the fault was seen; it is the suspect, if its position is known. `until`: step.
  void search(LossError::Window const& at, std::uint64_t until);
  /// It was this window, and the suspect is innocent.
  void found(LossError::Window const& at);
  /// Nothing was wrong after this step. At the last one the suspect is the only window left.
  void cleared(std::uint64_t step);

  template <class Archive>
  void persist(Archive& archive) {
    std::vector<std::uint64_t> flat;
    for (Place const& place : places_) flat.insert(flat.end(), {place.epoch, place.position});
    archive("skips", flat);
    if (Archive::loading) {
      places_.clear();
      for (std::size_t i = 0; i + 1 < flat.size(); i += 2) add(flat[i], flat[i + 1]);
    }
    persist_search(archive);
  }

 private:
  static constexpr std::uint64_t nothing = std::numeric_limits<std::uint64_t>::max();

  struct Place {
    std::uint64_t epoch, position;
    bool operator==(Place const&) const = default;
  };
  static constexpr Place nobody{nothing, nothing};

  // Written only during a search.
  template <class Archive>
  void persist_search(Archive& archive) {
    if constexpr (Archive::loading) {
      until_ = nothing;
      suspect_ = nobody;
      if (!archive.holds("search_until")) return;
    } else {
      if (!searching()) return;
    }
    archive("search_until", until_);
    archive.scope("suspect", [&](auto& inner) {
      inner("epoch", suspect_.epoch);
      inner("position", suspect_.position);
    });
  }

  std::vector<Place> places_;
  std::uint64_t until_ = nothing;  ///< step, in a search
  Place suspect_ = nobody;
};

}  // namespace frugal::detail

namespace frugal {

/// Restores the run's last good state when a loss is NaN or infinite, or jumps, or when weights or
/// the optimizer's moments are not finite: skips the window that did it, lowers the learning rate,
/// and continues training.
///
/// Lever   runs to convergence: one bad batch at night does not end the run.
/// Cost    a copy of the state in host memory, and before it a reading of the weights and moments,
///         at its cadence. A loss in host memory is checked at once; one on a device at the
///         cadence, before the copy: one host sync.
/// State   the skipped windows, the number of rollbacks, the mean of the losses, and which window
///         it looks for. With Checkpoint also the good state, unless that is what is being saved.
/// Errors  the NonFiniteLossError, LossJumpError, NonFiniteGradientError or NonFiniteWeightsError
///         itself, after `at_most` rollbacks; SettingsError for invalid settings.
///
/// A gradient may be NaN although the loss is finite: then the bad loss is that of a later window,
/// if there is any. So if the weights are not finite, the run goes back and looks at them after
/// each step, until the window that makes them so is found.
/// Source  Chowdhery et al., "PaLM" (2022), section 5.1, did this by hand at loss spikes: restart
///         from an earlier checkpoint and skip the batches.
template <class... Options>
struct Rollback {
 private:
  using classes = list<detail::option::cadence>;
  static_assert(detail::options_known<classes, Options...>,
                "frugal: Rollback<...>: unknown option. Options: a cadence in steps, "
                "micro-batches, samples or tokens, such as Every<100>.");
  static_assert(detail::options_unique<classes, Options...>,
                "frugal: Rollback<...>: two cadences. Keep one, such as Every<100>.");
  using Cadence = detail::option_of<detail::option::cadence, Every<100>, Options...>;
  static_assert(!Cadence::per_epoch,
                "frugal: Rollback copies its state between steps, not at epoch ends. Write "
                "Rollback<Every<100>>, or another cadence in steps, micro-batches, samples or "
                "tokens.");

 public:
  using kind = kinds::rollback;
  using listens = list<on::fit_begin, on::ready, on::window, on::loss, on::step, on::undo>;
  using provides = list<service::recover>;

  static constexpr About about{Term::runs_to_convergence, "at its cadence a copy of the state"};
  using properties = list<property::capturable>;

  Cadence every{};
  /// A loss is a jump if it exceeds this multiple of the mean of those before it; 0: never. Of
  /// losses that may be negative: if it exceeds their mean by `jump` - 1 times the mean of their
  /// absolute values, which is the same if all are positive.
  double jump = 0;
  double slow_down = 0.5;  ///< factor of the learning rate at each rollback
  int at_most = 3;         ///< rollbacks; the next bad loss is thrown

  class State;
};

template <class... Options>
class Rollback<Options...>::State {
 public:
  State(Rollback const& settings, RecipeFacts const& facts)
      : settings_(settings), divides_(facts.divides), looks_late_(facts.captures_steps) {}

  void on_fit_begin(FitBegin& phase) {
    finite_.begin(base_module(phase.module()));
    bool const sane_jump = settings_.jump == 0 || settings_.jump > 1;
    if (sane_jump && settings_.slow_down > 0 && settings_.slow_down <= 1 &&
        settings_.at_most >= 1) {
      return;
    }
    throw SettingsError({.what = "the settings of Rollback are out of range",
                         .where = "Rollback",
                         .why = "jump must be 0 or above 1, slow_down in (0, 1], at_most 1 or more",
                         .fix = "Start from the defaults."});
  }

  void on_loss(LossReady& phase) {
    // Processes look together, when all have the losses of all: see on_joined().
    if (divides_ || looks_late_ || settings_.jump == 0 || !phase.loss.value.is_cpu()) return;
    if (*phase.loss.weight == 0) return;  // a mean over nothing
    // The sample count changes with every window, so another count means another window.
    if (std::exchange(window_, phase.counters().sample) != phase.counters().sample) {
      mean_before_ = mean_;
    }
    look(detail::host_scalar(phase.loss.value), phase.counters().micro_batch);
  }

  /// Of a window that processes divide: its losses are those of all, in the window's order, so all find
  /// the same jump.
  void on_joined(SharedWindow const& phase) {
    if (settings_.jump == 0) return;
    std::uint64_t micro_batch = phase.counters().micro_batch - phase.records.size();
    for (MicroBatchRecord const& each : phase.records) {
      if (each.weight != 0) look(detail::host_scalar(each.loss), micro_batch);
      ++micro_batch;
    }
  }

  void on_undo(WindowRetry const& phase) {
    if (window_ == phase.counters().sample) mean_ = mean_before_;
  }

  void on_step(Step& phase) {
    step_ = phase.counters().step;
    if (bad_.searching()) [[unlikely]] {
      require_finite(phase, at_);
      bad_.cleared(step_);
    }
    if (!settings_.every.due_at_step(phase.counters())) return;
    // Keep only a state that is known to be good: this throws pending bad losses of the device.
    // Several processes agree on one number, and throw at the next window.
    double const loss = phase.reduce(Quantity::loss, phase.last_loss());
    if (std::isnan(loss)) return;
    // On the CPU each loss was checked at once; the run may not be on its device yet.
    if (!divides_ && settings_.jump != 0 &&
        (looks_late_ || !phase.parameters().tensors.front().is_cpu())) {
      look(loss, phase.counters().micro_batch);
    }
    keep(phase);
  }

  void on_ready(Ready& phase) {
    step_ = phase.counters().step;
    if (kept_step_ == nothing) keep(phase);
  }

  void on_window(WindowBegin& phase) {
    Counters const& now = phase.counters();
    // A move to another device loads everything persisted: keep the state from before the move.
    if (kept_step_ == nothing) keep(phase);
    at_ = {now.epoch, now.position, now.step};
    if (bad_.has(now.epoch, now.position)) phase.skip();
  }

  /// Restores the last good state. False after too many rollbacks.
  bool recover(CheckpointPhase& phase, LossError const& error) {
    if (kept_step_ == nothing || good_.empty()) return false;
    LossError::Window const where = agreed_window(phase, error.window);
    bool const known = where.position != LossError::Window::elsewhere;
    bool of_weights = dynamic_cast<NonFiniteWeightsError const*>(&error) != nullptr;
    if (divides_) of_weights = agreed(phase, of_weights);
    // The return that looked for this window has been counted.
    bool const found = bad_.searching() && of_weights && known;
    if (!found && returns_++ == settings_.at_most) return false;
    if (found) {
      bad_.found(where);
    } else if (!bad_.searching() && (of_weights ? !known : has_bad_weights(phase))) {
      bad_.search(where, std::max(where.step, phase.counters().step));
    } else if (known) {
      bad_.add(where.epoch, where.position);
    }
    double const scale = phase.learning_rate_scale() * (found ? 1 : settings_.slow_down);
    busy_ = true;
    phase.restore(good_);
    busy_ = false;
    step_ = kept_step_;
    mean_ = kept_mean_;
    window_ = nothing;
    phase.set_learning_rate_scale(scale);
    phase.record({"rollback",
                  {{"from_step", error.window.step},
                   {"loss", error.loss},
                   {"learning_rate_scale", scale},
                   {"returns", static_cast<std::uint64_t>(returns_)}}});
    phase.warn(text_of(error, known, scale));
    return true;
  }

  template <class Archive>
  void persist(Archive& archive) {
    if (busy_) return;  // the policy's own knowledge is not part of the state it restores
    archive("returns", returns_);
    mean_.persist(archive);
    bad_.persist(archive);
    persist_good(archive);
  }

 private:
  static constexpr std::uint64_t nothing = std::numeric_limits<std::uint64_t>::max();

  void look(double loss, std::uint64_t micro_batch) {
    if (!std::isfinite(loss)) return;  // a policy skips its window
    if (mean_.jumps(loss, settings_.jump)) {
      throw LossJumpError(
          {.what = "the loss jumped to " + detail::general(loss, 6),
           .where = "epoch " + std::to_string(at_.epoch) + ", step " + std::to_string(at_.step) +
                    ", micro-batch " + std::to_string(micro_batch),
           .why = "the mean of the losses before it is " + detail::general(mean_.value(), 6),
           .fix = "Check the samples of that window, lower the learning rate, or raise "
                  "Rollback::jump."},
          at_, loss);
    }
    mean_.add(loss);
  }

  /// Looks at parts of the run without a copy. `live_` has them until it is released.
  std::optional<std::string> first_bad(CheckpointPhase& phase, Part parts) {
    if (holds(parts, Part::states)) phase.read_losses();  // may throw
    busy_ = true;
    phase.take(live_, parts, CopyTarget::live);
    busy_ = false;
    return finite_.first_bad(live_.module, live_.run);
  }
  /// Several processes agree.
  static bool agreed(CheckpointPhase& phase, bool bad) {
    return phase.reduce(Quantity::overflow, bad ? 1.0 : 0.0) != 0;
  }
  /// The window that all pass over. A policy may have refused a loss in one process alone: the others know
  /// only that there is one, and would train the window, and be one ahead from then on.
  static LossError::Window agreed_window(CheckpointPhase& phase, LossError::Window const& here) {
    if (!phase.facts().divides) return here;
    // Whole numbers below 2^53, plus 1: 0 is of a process that does not know it.
    bool knows = here.position != LossError::Window::elsewhere;
    auto const largest = [&](std::uint64_t value) {
      double const all = phase.reduce(Quantity::stop, knows ? static_cast<double>(value) + 1 : 0);
      return static_cast<std::uint64_t>(all);
    };
    std::uint64_t const step = largest(here.step);
    if (step == 0) return here;
    knows = knows && here.step == step - 1;  // all numbers of one window
    std::uint64_t const epoch = largest(here.epoch), position = largest(here.position);
    return {epoch - 1, position - 1, step - 1};
  }
  bool has_bad_weights(CheckpointPhase& phase) {
    bool const bad = first_bad(phase, Part::module).has_value();
    live_ = {};
    return agreed(phase, bad);
  }

  /// Throws if weights or moments are not finite. `window`: the one that made them so.
  void require_finite(CheckpointPhase& phase, LossError::Window const& window) {
    auto const bad = first_bad(phase, Part::resumable);
    if (!agreed(phase, bad.has_value())) return;
    live_ = {};
    throw detail::non_finite_weights(bad.value_or("of another process"), window, step_);
  }

  void keep(CheckpointPhase& phase) {
    LossError::Window window = at_;
    // Of several windows since the good state it is not known which one did it.
    if (kept_step_ == nothing || step_ != kept_step_ + 1) {
      window.position = LossError::Window::elsewhere;
    }
    require_finite(phase, window);
    good_.copy(live_, phase.device());
    live_ = {};
    kept_step_ = phase.counters().step;
    kept_mean_ = mean_;
  }

  std::string text_of(LossError const& error, bool known, double scale) const {
    bool const of_loss = dynamic_cast<NonFiniteWeightsError const*>(&error) == nullptr &&
                         dynamic_cast<NonFiniteGradientError const*>(&error) == nullptr;
    auto const short_text = [](double number) {
      if (std::isnan(number)) return std::string("nan");  // a printed NaN has a sign
      return detail::general(number, 6);
    };
    return "at step " + std::to_string(error.window.step) + " " +
           (of_loss ? "the loss was " + short_text(error.loss) : error.fault().what) +
           ": back to step " + std::to_string(kept_step_) + ", " +
           (known || !bad_.searching() ? "that window is passed over"
                                       : "to find the window that did it") +
           ", learning rate times " + short_text(scale);
  }

  // A run that resumes between two good states needs the one that it would restore.
  template <class Archive>
  void persist_good(Archive& archive) {
    bool apart = kept_step_ != nothing && kept_step_ != step_;
    archive("apart", apart);
    if (!apart) {
      if (Archive::loading) kept_step_ = nothing;
      return;
    }
    archive("kept_step", kept_step_);
    archive.scope("kept", [&](auto& inner) { kept_mean_.persist(inner); });
    good_.persist(archive);
    if constexpr (Archive::loading) {
      if (archive.recipe_changed) kept_step_ = nothing;
    }
  }

  Rollback settings_;
  bool divides_;
  // A replayed step does not pass its losses to hooks; the ledger has them.
  bool looks_late_;
  detail::FiniteState finite_;
  RunSnapshot good_;
  RunSnapshot live_;  ///< the run's own tensors, while they are looked at
  std::uint64_t kept_step_ = nothing;
  std::uint64_t step_ = 0;
  LossError::Window at_{};  ///< the current window
  detail::BadWindows bad_;
  int returns_ = 0;
  detail::LossMean mean_;
  detail::LossMean kept_mean_;
  detail::LossMean mean_before_;  ///< at the beginning of the window, if its losses are checked
  std::uint64_t window_ = nothing;
  bool busy_ = false;
};

}  // namespace frugal

#ifndef FRUGAL_COMPILED
#include <frugal/policy/rollback.ipp>
#endif
