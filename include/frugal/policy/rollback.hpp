// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include <frugal/compose/about.hpp>
#include <frugal/compose/policy.hpp>
#include <frugal/policy/kinds.hpp>
#include <frugal/policy/options.hpp>
#include <frugal/run/phases.hpp>
#include <frugal/state/snapshot.hpp>

namespace frugal {

/// Restores the run's last good state when a loss is NaN or infinite, or jumps: skips the window
/// concerned, lowers the learning rate, and continues training.
///
/// Lever   runs to convergence: one bad batch at night does not end the run.
/// Cost    a copy of the state in host memory, at its cadence. A loss in host memory is checked at
///         once; one on a device at the cadence, before the copy: one host sync.
/// State   the skipped windows, the number of rollbacks, and the mean of the losses. With
///         Checkpoint also the good state, unless that is what is being saved.
/// Errors  the NonFiniteLossError or LossJumpError itself, after `at_most` rollbacks; SettingsError
///         for invalid settings.
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
  static constexpr bool capturable = true;

  /// A loss is a jump if it exceeds this multiple of the mean of those before it; 0: never.
  double jump = 0;
  double slow_down = 0.5;  ///< factor of the learning rate at each rollback
  int at_most = 3;         ///< rollbacks; the next bad loss is thrown

  template <class Context>
  class State;
};

template <class... Options>
template <class Context>
class Rollback<Options...>::State {
 public:
  explicit State(Rollback const& settings) : settings_(settings) {}

  void on_fit_begin(FitBegin<Context>&) const {
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

  void on_loss(LossReady<Context>& phase) {
    if (looks_late || settings_.jump == 0 || !phase.loss.value.is_cpu()) return;
    // The sample count changes with every window, so another count means another window.
    if (std::exchange(window_, phase.counters().sample) != phase.counters().sample) {
      mean_before_ = mean_;
    }
    look(detail::host_scalar(phase.loss.value), phase.counters());
  }

  void on_undo(Undo<Context> const& phase) {
    if (window_ == phase.counters().sample) mean_ = mean_before_;
  }

  void on_step(Step<Context>& phase) {
    step_ = phase.counters().step;
    if (!Cadence::due_at_step(phase.counters())) return;
    // Keep only a state that is known to be good: this throws pending bad losses of the device.
    // Several processes agree on one number, and throw at the next window.
    double const loss = phase.reduce(Quantity::loss, phase.last_loss());
    if (std::isnan(loss)) return;
    // On the CPU each loss was checked at once; the run may not be on its device yet.
    if (settings_.jump != 0 && (looks_late || !phase.parameters().tensors.front().is_cpu())) {
      look(loss, phase.counters());
    }
    keep(phase);
  }

  void on_ready(Ready<Context>& phase) {
    step_ = phase.counters().step;
    if (kept_step_ == nothing) keep(phase);
  }

  void on_window(WindowBegin<Context>& phase) {
    Counters const& now = phase.counters();
    // A move to another device loads everything persisted: keep the state from before the move.
    if (kept_step_ == nothing) keep(phase);
    if (now.step == bad_step_) {
      bad_step_ = nothing;
      skips_.push_back({now.epoch, now.position});
    }
    at_ = {now.epoch, now.position, now.step};
    for (Skip const& skip : skips_) {
      if (skip.epoch == now.epoch && skip.position == now.position) phase.skip();
    }
  }

  /// Restores the last good state. False after too many rollbacks.
  bool recover(SafePoint<Context>& phase, LossError const& error) {
    if (returns_ == settings_.at_most) return false;
    ++returns_;
    if (error.window.position != LossError::Window::elsewhere) {
      skips_.push_back({error.window.epoch, error.window.position});
    }
    double const scale = phase.learning_rate_scale() * settings_.slow_down;
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
    char text[200];
    std::snprintf(text, sizeof text,
                  "at step %llu the loss was %g: back to step %llu, that window is passed over, "
                  "learning rate times %g",
                  static_cast<unsigned long long>(error.window.step), error.loss,
                  static_cast<unsigned long long>(kept_step_), scale);
    phase.advise(text);
    return true;
  }

  template <class Archive>
  void persist(Archive& archive) {
    if (busy_) return;  // the policy's own knowledge is not part of the state it restores
    archive("returns", returns_);
    if constexpr (Archive::loading) {
      // Older checkpoints store a step, because windows were not yet identified by position.
      if (archive.holds("bad_step")) archive("bad_step", bad_step_);
    }
    mean_.persist(archive);
    std::vector<std::uint64_t> flat;
    for (Skip const& skip : skips_) flat.insert(flat.end(), {skip.epoch, skip.position});
    archive("skips", flat);
    if (Archive::loading) {
      skips_.clear();
      for (std::size_t i = 0; i + 1 < flat.size(); i += 2) {
        skips_.push_back({flat[i], flat[i + 1]});
      }
    }
    persist_good(archive);
  }

 private:
  // A replayed step does not pass its losses to hooks; the ledger has them.
  static constexpr bool looks_late = captures_steps<typename Context::policies>;
  static constexpr std::uint64_t nothing = std::numeric_limits<std::uint64_t>::max();

  struct Skip {
    std::uint64_t epoch, position;
  };

  /// Running mean of the losses, with a decay of 2% per loss.
  struct Mean {
    double value = 0;
    std::uint64_t count = 0;

    void add(double loss) {
      ++count;
      double const share = std::max(0.02, 1.0 / static_cast<double>(count));
      value += (loss - value) * share;
    }
    /// Whether there are enough losses to distinguish a jump from their variation.
    bool settled() const { return count >= 20; }

    template <class Archive>
    void persist(Archive& archive) {
      archive("mean", value);
      archive("losses", count);
    }
  };

  void look(double loss, Counters const& now) {
    if (mean_.settled() && loss > settings_.jump * mean_.value) {
      throw LossJumpError(
          {.what = "the loss jumped to " + std::to_string(loss),
           .where = "epoch " + std::to_string(at_.epoch) + ", step " + std::to_string(at_.step) +
                    ", micro-batch " + std::to_string(now.micro_batch),
           .why = "the mean of the losses before it is " + std::to_string(mean_.value),
           .fix = "Check the samples of that window, lower the learning rate, or raise "
                  "Rollback::jump."},
          at_, loss);
    }
    mean_.add(loss);
  }

  void keep(SafePoint<Context>& phase) {
    busy_ = true;
    phase.take(good_, Part::good);
    busy_ = false;
    kept_step_ = phase.counters().step;
    kept_mean_ = mean_;
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
  RunSnapshot good_;
  std::uint64_t kept_step_ = nothing;
  std::uint64_t step_ = 0;
  LossError::Window at_{};            ///< the current window
  std::uint64_t bad_step_ = nothing;  ///< from an old checkpoint
  std::vector<Skip> skips_;
  int returns_ = 0;
  Mean mean_;
  Mean kept_mean_;
  Mean mean_before_;  ///< at the beginning of the window, if its losses are checked
  std::uint64_t window_ = nothing;
  bool busy_ = false;
};

}  // namespace frugal
