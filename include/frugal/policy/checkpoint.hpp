// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <frugal/compose/about.hpp>
#include <frugal/compose/policy.hpp>
#include <frugal/loop/kinds.hpp>
#include <frugal/loop/memory_writer.hpp>
#include <frugal/loop/phase.hpp>
#include <frugal/policy/checkpoint/heartbeat.hpp>
#include <frugal/policy/checkpoint/interval.hpp>
#include <frugal/policy/checkpoint/options.hpp>
#include <frugal/policy/checkpoint/resume.hpp>
#include <frugal/policy/checkpoint/snapshot.hpp>
#include <frugal/policy/checkpoint/writer.hpp>
#include <frugal/store/retention.hpp>
#include <frugal/store/run_directory.hpp>

namespace frugal {

/// Saves the run at a cadence, and goes on from the newest whole save when it is started again: in
/// the same bits, whenever and however often it was killed.
///
/// Lever   price per hour: machines that vanish cost minutes, not the run.
/// Cost    between saves the comparison of a counter; at a save, all of the writing, or with Async
///         a copy of the state into host memory that is kept for the next one.
/// State   what it saves: module, optimizer, schedule, counters, generators, the data's cursor and
///         every policy's state; of its own, the best metrics so far.
/// Errors  SettingsError without Settings::run; LockError while another trainer works there;
///         StateError for a checkpoint of another run, naming the first difference; StoreError
///         when it cannot be written (see on_failure).
/// Source  commits after Pillai et al., "All File Systems Are Not Created Equal" (OSDI 2014);
///         Every<Auto> after Young (1974) and Daly (2006).
///
///     Checkpoint<Every<500>, Keep<3>, Async>
template <class... Options>
struct Checkpoint {
  using options = detail::CheckpointOptions<Options...>;
  static_assert(options::known,
                "frugal: Checkpoint is told something that is none of its options. They are Every, "
                "Keep, KeepBest, KeepEvery, Async, HalfStorage and WeightsIn.");
  static_assert(options::unique,
                "frugal: Checkpoint is told one thing twice. Write one cadence, one Keep and one "
                "KeepEvery; several KeepBest are allowed.");
  FRUGAL_SENTENCE(half_and_audit,
                  "frugal: HalfStorage rounds the weights, and a bit-exact audit would find it. "
                  "Take HalfStorage or the audit out.");

  using kind = kinds::checkpoint;
  using listens = list<on::fit_begin, on::step, on::validated, on::epoch_end, on::fit_end>;
  using conflicts =
      std::conditional_t<options::half, list<conflict<kinds::audit, half_and_audit>>, list<>>;

  static constexpr About about{Term::price_per_hour,
                               options::async ? "at its cadence a copy of the state"
                                              : "at its cadence the writing of the state"};

  Resume resume = Resume::Exact;
  /// With Resume::Weights: a run's folder, a checkpoint's, or a .safetensors file. Empty:
  /// Settings::run.
  std::filesystem::path from{};
  OnFailure on_failure = OnFailure::Stop;
  double share = 0.035;  ///< Every<Auto>: of the time, for stalls
  /// Every<Auto>: seconds that a machine lives on average. Set, Daly's interval is taken.
  std::optional<double> machine_lifetime{};

  template <class Context>
  class State;
};

template <class... Options>
template <class Context>
class Checkpoint<Options...>::State {
  using Clock = std::chrono::steady_clock;
  using Cadence = typename options::cadence;
  static constexpr bool by_counts = detail::Interval<Cadence>::by_counts;
  static constexpr Copies copies = options::async ? Copies::on_host : Copies::none;

 public:
  explicit State(Checkpoint const& settings)
      : settings_(settings),
        retention_(options::retention()),
        interval_(settings.share, settings.machine_lifetime),
        snapshot_(copies, options::weights) {}

  void on_fit_begin(FitBegin<Context>& phase) {
    require_settings(phase);
    directory_ = std::make_unique<RunDirectory>(phase.settings().run);
    for (std::string const& note : directory_->notes()) phase.advise(note);
    resume(phase);
    heartbeat_ = std::make_unique<detail::Heartbeat>(phase.settings().run / "heartbeat");
    if (options::async) {
      // The step looks at nothing but the counter, so a failure makes the counter due.
      writer_ = std::make_unique<detail::BackgroundWriter>([this] { look_at_ = 0; });
    }
    interval_.begin(phase.counters(), Clock::now());
    // A run that is killed before its first cadence goes on from here, and what a save costs is
    // known before it matters.
    phase.settle();
    if (!saved_) save(phase);
    look_at_ = interval_.next_look();
  }

  void on_step(Step<Context>& phase) {
    bool due = false;
    if constexpr (by_counts) due = Cadence::due_at_step(phase.counters());
    if (!due && phase.counters().step < look_at_.load(std::memory_order_relaxed)) [[likely]]
      return;
    due = interval_.look(phase.counters(), Clock::now());
    look_at_ = interval_.next_look();
    heartbeat_->beat({phase.counters().step, phase.seconds()});
    report_failure(phase);
    if (due || std::exchange(improved_, false)) begin_save(phase);
  }

  void on_validated(Validated<Context>& phase) {
    for (BestBy const& best : retention_.best) {
      double const value = phase.metrics[best.metric];
      auto const [known, first] = best_.try_emplace(best.metric, value);
      bool const better = best.highest ? value > known->second : value < known->second;
      if (!first && !better) continue;
      known->second = value;
      improved_ = true;
      look_at_ = 0;
    }
  }

  void on_epoch_end(EpochEnd<Context>& phase) {
    report_failure(phase);
    if (Cadence::due_at_epoch_end(phase.counters()) || std::exchange(improved_, false)) {
      begin_save(phase);
    }
  }

  void on_fit_end(FitEnd<Context>& phase) {
    if (!phase.preempted() && !is_saved(phase)) begin_save(phase);
    finish(phase);
  }

  /// A checkpoint of this very moment, on the disk when it returns; false if it is not, and the
  /// run goes on with such failures. What it throws is the failure of this one or of the one
  /// before.
  bool save(Resting<Context>& phase) {
    if (!is_saved(phase)) begin_save(phase);
    finish(phase);
    return is_saved(phase);
  }

  /// Seconds from the beginning of the last save until the disk had it.
  double save_seconds() const { return cost_.stall + (writer_ ? writer_->seconds() : 0.0); }

  template <class Archive>
  void persist(Archive& archive) {
    if (Archive::loading) {
      // The run is put elsewhere, by a resume or by Rollback: no save is the save of that.
      saved_.reset();
      look_at_ = 0;
    }
    for (BestBy const& best : retention_.best) {
      // Not an optional: g++ 12 sees an uninitialised one where there is none (GCC bug 80635).
      std::vector<double> value;
      if (auto const known = best_.find(best.metric); known != best_.end()) value = {known->second};
      archive("best." + best.metric, value);
      if (Archive::loading && !value.empty()) best_.insert_or_assign(best.metric, value.front());
    }
  }

 private:
  /// What a save is the save of: one of the same place in the run is the same.
  struct Place {
    Counters counters;
    std::uint64_t unfinished;
    std::size_t validations;
    bool operator==(Place const&) const = default;
  };
  static Place place_of(Resting<Context> const& phase) {
    return {phase.counters(), phase.unfinished(), phase.validations().size()};
  }
  bool is_saved(Resting<Context> const& phase) const {
    return saved_ && *saved_ == place_of(phase);
  }

  void require_settings(FitBegin<Context> const& phase) const {
    auto const fail = [](std::string what, std::string where, std::string mend) {
      throw SettingsError(
          {.what = std::move(what), .where = std::move(where), .why = "", .mend = std::move(mend)});
    };
    if (phase.settings().run.empty()) {
      fail("Checkpoint has nowhere to write", "Settings::run", "Set Settings::run to a folder.");
    }
    if (!(settings_.share > 0 && settings_.share < 1)) {
      fail("the share of the time for checkpoints is " + std::to_string(settings_.share),
           "Checkpoint::share", "Give a number between 0 and 1, such as 0.035.");
    }
    if (settings_.machine_lifetime && !(*settings_.machine_lifetime > 0)) {
      fail("a machine's lifetime is " + std::to_string(*settings_.machine_lifetime),
           "Checkpoint::machine_lifetime", "Give seconds, more than 0.");
    }
  }

  void resume(FitBegin<Context>& phase) {
    if (settings_.resume == Resume::Never) return;
    // Weights of another run are for the first start alone: a later one goes on with its own.
    bool const elsewhere = settings_.resume == Resume::Weights && !settings_.from.empty();
    NewestValid newest = directory_->newest_valid();
    std::vector<std::string> damaged;
    for (Damage const& damage : newest.damaged) {
      damaged.push_back(damage.folder.string() + ": " + damage.why);
      phase.advise("a checkpoint is damaged and not used: " + damaged.back());
    }
    if (newest.checkpoint && (settings_.resume == Resume::Exact || elsewhere)) {
      return resume_exactly(phase, *newest.checkpoint, std::move(damaged));
    }
    if (settings_.resume != Resume::Weights) return;
    if (elsewhere) return take_weights(phase, detail::weights_in(settings_.from));
    if (newest.checkpoint) {
      take_weights(phase, newest.checkpoint->folder / "model.safetensors");
    }
  }

  void resume_exactly(FitBegin<Context>& phase, SavedCheckpoint const& checkpoint,
                      std::vector<std::string> damaged) {
    double const seconds = detail::load_exactly(phase, checkpoint);
    Resumed what{.from = checkpoint.folder.string(),
                 .step = checkpoint.step(),
                 .steps_repeated = 0,
                 .seconds_lost = 0,
                 .damaged = std::move(damaged)};
    auto const last = detail::Heartbeat::read(phase.settings().run / "heartbeat");
    if (last && last->step > what.step) {
      what.steps_repeated = last->step - what.step;
      what.seconds_lost = std::max(0.0, last->seconds - seconds);
    }
    Event const event{"resume",
                      {{"from", what.from},
                       {"steps_repeated", what.steps_repeated},
                       {"seconds_lost", what.seconds_lost}}};
    phase.resumed(std::move(what), seconds);
    phase.record(event);  // at the step and the time at which the run goes on
    saved_ = place_of(phase);
  }

  static void take_weights(FitBegin<Context>& phase, std::filesystem::path const& file) {
    auto const unmatched =
        detail::load_weights(base_module(phase.module()), Safetensors::open(file));
    phase.record({"weights", {{"from", file.string()}}});
    for (std::string const& name : unmatched)
      phase.advise("weights of " + file.string() + ": " + name);
  }

  void begin_save(Resting<Context>& phase) {
    auto const start = Clock::now();
    if (writer_) {
      writer_->wait();  // the snapshot is still being written from
      report_failure(phase);
    }
    snapshot_.take(phase);
    if (writer_) {
      writer_->submit([this] { write(); });
    } else if (!bears(phase, [this] { write(); })) {
      return;
    }
    saved_ = place_of(phase);
    std::chrono::duration<double> const stall = Clock::now() - start;
    cost_ = {.stall = stall.count(), .write = writer_ ? writer_->seconds() : 0.0};
    interval_.saved(cost_, Clock::now());
  }

  void write() {
    snapshot_.write(*directory_);
    retain(*directory_, retention_);
  }

  /// Throws a job's StoreError, or reports it, as the user chose. False: there was one.
  template <class Job>
  bool bears(Resting<Context> const& phase, Job&& job) {
    try {
      job();
      return true;
    } catch (StoreError const& error) {
      if (settings_.on_failure == OnFailure::Stop) throw;
      phase.advise(std::string("a checkpoint was not written: ") + error.what());
      phase.record({"checkpoint_failed", {{"error", std::string(error.what())}}});
      return false;
    }
  }

  /// What the thread that writes has thrown since it was last asked.
  void report_failure(Resting<Context> const& phase) {
    std::exception_ptr const failure = writer_ ? writer_->take_failure() : nullptr;
    if (!failure) return;
    saved_.reset();
    bears(phase, [&] { std::rethrow_exception(failure); });
  }

  void finish(Resting<Context>& phase) {
    if (writer_) {
      writer_->wait();
      report_failure(phase);
    }
    heartbeat_->beat({phase.counters().step, phase.seconds()});
  }

  Checkpoint settings_;
  Retention retention_;
  detail::Interval<Cadence> interval_;
  detail::Snapshot snapshot_;
  detail::SaveCost cost_{};
  std::map<std::string, double> best_;
  bool improved_ = false;
  std::optional<Place> saved_;
  std::unique_ptr<RunDirectory> directory_;
  std::unique_ptr<detail::Heartbeat> heartbeat_;
  std::atomic<std::uint64_t> look_at_{0};
  std::unique_ptr<detail::BackgroundWriter> writer_;  // last: what it uses outlives it
};

}  // namespace frugal
