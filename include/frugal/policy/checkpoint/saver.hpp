// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <frugal/checkpoint/checkpoint.hpp>
#include <frugal/checkpoint/checkpoint_list.hpp>
#include <frugal/checkpoint/removal.hpp>
#include <frugal/checkpoint/retention.hpp>
#include <frugal/checkpoint/run_directory.hpp>
#include <frugal/core/libtorch/fixed_tensors.hpp>
#include <frugal/core/run/judged.hpp>
#include <frugal/core/run/run_state.hpp>
#include <frugal/core/state/module_tensors.hpp>
#include <frugal/core/state/state_writer.hpp>
#include <frugal/inline.hpp>
#include <frugal/policy/checkpoint/former_validation.hpp>
#include <frugal/policy/checkpoint/heartbeat.hpp>
#include <frugal/policy/checkpoint/interval.hpp>
#include <frugal/policy/checkpoint/options.hpp>
#include <frugal/policy/checkpoint/resume.hpp>
#include <frugal/policy/checkpoint/saved_name.hpp>
#include <frugal/policy/checkpoint/shared_save.hpp>
#include <frugal/policy/checkpoint/snapshot.hpp>
#include <frugal/policy/checkpoint/start.hpp>
#include <frugal/policy/checkpoint/weights.hpp>
#include <frugal/policy/checkpoint/writer.hpp>
#include <frugal/policy/run_folder.hpp>

namespace frugal::detail {

/// The part of Checkpoint that depends neither on the recipe nor on the cadence: resumes, saves and
/// handles failures.
class Saver {
  using Clock = std::chrono::steady_clock;

 public:
  struct Options {
    Resume resume;
    RecipeRules rules;
    std::filesystem::path from;
    OnNewer on_newer;
    Weights which;
    OnFailure on_failure;
    Retention retention;
    bool async;
    at::ScalarType weights;  ///< on disk; Undefined: their own
  };

  FRUGAL_INLINE explicit Saver(Options options)
      : options_(std::move(options)),
        snapshot_(options_.async ? CopyTarget::on_host : CopyTarget::none, options_.weights) {}

  /// Opens the run's folder and resumes. `recipe` and `moves`: see load_run(). `wake` is
  /// called, in any thread, when report_failure() wants to be.
  FRUGAL_INLINE void begin(RunState& run, Slots recipe, bool moves, std::function<void()> wake) {
    auto const busy = run.is_busy();
    recipe_ = std::move(recipe);
    require_rules(options_.rules);
    snapshot_.begin(run);
    directory_ = std::make_unique<RunDirectory>(run.settings.run_dir, lock_run_folder(run));
    for (std::string const& note : directory_->notes()) run.warn(note);
    if (run.loop != nullptr) run.data = run.loop->identify_data().values();
    // In the order of the log: a resume cuts it first.
    for (Damage const& unfit : resume(run, moves)) {
      run.record(
          {"checkpoint_passed_over", {{"folder", unfit.folder.string()}, {"reason", unfit.why}}});
    }
    if (!options_.retention.best.empty()) {
      former_ = FormerValidation(directory_->list().whole, run.data);
    }
    std::filesystem::path const beats = run.settings.run_dir / "heartbeat";
    heartbeat_ = std::make_unique<Heartbeat>(beats);
    if (!heartbeat_->open()) {
      run.warn(beats.string() + " cannot be written (" + why_of(beats, errno) +
               "): after a kill nobody knows how many steps were lost");
    }
    if (options_.async) writer_ = std::make_unique<BackgroundWriter>(std::move(wake));
  }

  /// For the other processes of a run, how the first one has begun: see follow().
  FRUGAL_INLINE std::string beginning(RunState const& run) const {
    if (run.resumed) return run.resumed->from;
    return took_weights_.empty() ? std::string() : std::string(with_weights) + took_weights_;
  }
  /// In a process that is not the first of a run: resumes as the first one did, from the folder of a
  /// checkpoint or with the weights of a file, or begins if it is empty. Such a process writes
  /// nothing but its part of each save, and holds no lock.
  FRUGAL_INLINE void follow(RunState& run, Slots recipe, bool moves, std::string const& beginning) {
    auto const busy = run.is_busy();
    recipe_ = std::move(recipe);
    snapshot_.begin(run);
    if (run.loop != nullptr) run.data = run.loop->identify_data().values();
    if (beginning.empty()) return;
    if (beginning.starts_with(with_weights)) {
      return take_weights(run, beginning.substr(with_weights.size()));
    }
    std::filesystem::path const folder = beginning;
    // The first process has compared the hashes; if each has other layers, they read the same folder.
    SavedCheckpoint const checkpoint =
        run.places.empty() ? checkpoint_at(folder) : read_checkpoint(folder);
    LoadedRun const loaded = load_run(run, recipe_, options_.rules, moves, checkpoint);
    run.resume_from({.from = folder.string(),
                     .step = checkpoint.step(),
                     .steps_repeated = 0,
                     .seconds_lost = 0,
                     .damaged = {},
                     .changed = loaded.differences},
                    loaded.seconds);
  }

  /// In all processes of a run that hold parts of what is saved, after begin() and follow(): whether each
  /// writes its part. Otherwise the first one gets them all.
  FRUGAL_INLINE void share(RunState& run, std::function<void()> wake) {
    if (!run.save_board) return;
    if (!run.places.empty()) require_no_fixed(run.root);
    SharedSave shared(run.save_board);
    run.saves_side_by_side = shared.all_see(run.settings.run_dir / "checkpoints");
    if (run.saves_side_by_side) {
      shared_.emplace(std::move(shared));
      if (options_.async && !writer_) writer_ = std::make_unique<BackgroundWriter>(std::move(wake));
    } else if (!run.places.empty()) {
      throw ClusterError(
          {.what = "the processes do not all see the run's folder",
           .where = "Checkpoint, " + run.settings.run_dir.string(),
           .why = "each writes the layers that it has, and reads them when it resumes",
           .fix = "Give all of them one folder on a file system that they share."});
    } else if (directory_) {
      run.warn("Checkpoint: the processes do not all see " + run.settings.run_dir.string() +
               ", so the first one gets the parts of all, and writes them");
    }
  }
  /// Whether a process that is not the first has a part to write: see save_part().
  bool is_shared() const { return shared_.has_value(); }

  void beat(RunState const& run) const { heartbeat_->beat({run.counters.step, run.seconds()}); }

  /// Whether a checkpoint of this moment is on disk, or being written.
  bool has_saved(RunState const& run) const { return saved_ && *saved_ == moment_of(run); }
  bool has_saved_any() const { return saved_.has_value(); }
  FRUGAL_INLINE void forget_last() {
    saved_.reset();
    abandoned_ = true;
  }

  /// Whether a save has failed since the last call.
  bool take_failed() { return std::exchange(failed_, false); }

  /// The metrics of the checkpoints on disk that were measured on this run's validation data, when
  /// the fit began. Those that were passed over do not count.
  FRUGAL_INLINE std::vector<std::map<std::string, double>> metrics_on_disk() const {
    std::vector<std::map<std::string, double>> all;
    for (SavedCheckpoint each : directory_->list().whole) {
      if (passed_over_.contains(each.folder)) continue;
      former_.take_from(each);
      all.push_back(std::move(each.manifest.metrics));
    }
    return all;
  }

  /// Returns its cost when the step may continue; nothing if it could not be written. Calls
  /// `begins` once the result of the save before is known.
  template <class Begins>
  std::optional<SaveCost> save(RunState& run, Begins const& begins) {
    auto const start = Clock::now();
    settle(run);  // the snapshot is still being written from
    begins();
    abandoned_ = false;
    advise_of_leftovers(run);
    if (shared_) shared_->next();
    snapshot_.take(run, recipe_);
    if (writer_) {
      writer_->submit([this, busy = run.is_busy()] { write(); });
    } else {
      auto const busy = run.is_busy();
      if (!tolerate_failure(run, [this] { write(); })) return std::nullopt;
    }
    saved_ = moment_of(run);
    std::chrono::duration<double> const stall = Clock::now() - start;
    cost_ = {.stall = stall.count(), .write = writer_ ? writer_->seconds() : 0.0};
    return cost_;
  }

  /// In a process that is not the first: writes its part of a save. What fails is the first one's to
  /// report.
  FRUGAL_INLINE void save_part(RunState& run) {
    if (writer_) writer_->wait();  // the snapshot is still being written from
    shared_->next();
    snapshot_.take(run, recipe_);
    if (writer_) {
      writer_->submit([this, busy = run.is_busy()] { snapshot_.write(*shared_); });
    } else {
      auto const busy = run.is_busy();
      snapshot_.write(*shared_);
    }
  }

  /// Throws or reports what the writing thread has thrown since the last call.
  FRUGAL_INLINE void report_failure(RunState& run) {
    std::exception_ptr const failure = writer_ ? writer_->take_failure() : nullptr;
    if (!failure) return;
    failed_ = true;
    saved_.reset();
    tolerate_failure(run, [&] {
      try {
        std::rethrow_exception(failure);
      } catch (NonFiniteWeightsError const&) {
        // The run has returned to before these weights.
        if (!abandoned_) throw;
      }
    });
  }

  /// Waits until the save before is on disk; throws or reports what it has thrown.
  FRUGAL_INLINE void settle(RunState& run) {
    if (writer_) writer_->wait();
    report_failure(run);
  }

  /// Waits for the disk, and records in the report whether this moment is saved.
  FRUGAL_INLINE void finish(RunState& run) {
    settle(run);
    auto const busy = run.is_busy();
    // A run that was killed after its last save, and before it removed an older one, has one too many.
    if (!std::exchange(has_pruned_, true)) prune();
    advise_of_leftovers(run);
    run.status.unsaved = has_saved(run) ? std::string() : failure_;
    beat(run);
  }

  /// Seconds from the beginning of the last save until it was on disk.
  double seconds() const { return cost_.stall + (writer_ ? writer_->seconds() : 0.0); }

  template <class Archive>
  void persist(Archive& archive) {
    persist_return(archive);
    std::uint64_t failures = failures_;  // NOLINT(misc-const-correctness): loading fills it
    archive("failures", failures);
    // Rollback returns to an earlier step, but failures since then still count.
    failures_ = std::max(failures_, failures);
  }

 private:
  template <class Archive>
  void persist_return(Archive& archive) {
    if constexpr (Archive::loading) {
      if (!archive.has("returned")) return;
    } else {
      if (returned_to_.empty()) return;
    }
    archive.scope("returned", [&](auto& inner) {
      bool dispensable = true;
      inner("dispensable", dispensable);
      inner("to", returned_to_);
    });
  }

  /// The moment of the run that a save contains: two saves at one place are identical.
  struct Moment {
    Counters counters;
    std::string unfinished;
    Judged judged;  // also RunState::weights_have_changed()
    bool operator==(Moment const&) const = default;
  };
  static Moment moment_of(RunState const& run) {
    return {run.counters, run.status.unfinished.hook, run.judged};
  }

  /// Returns the checkpoints of this run that are whole and were passed over.
  FRUGAL_INLINE std::vector<Damage> resume(RunState& run, bool moves) {
    if (options_.resume == Resume::Never) return {};
    NewestValid newest = directory_->newest_valid([this](SavedCheckpoint const& checkpoint) {
      return first_bad_in(checkpoint, snapshot_.finite());
    });
    std::vector<std::string> damaged;
    auto const report = [&](std::vector<Damage> const& all, std::string_view what) {
      for (Damage const& damage : all) {
        damaged.push_back(damage.folder.string() + ": " + damage.why);
        run.warn("a checkpoint is " + std::string(what) + " and was not used: " + damaged.back());
      }
    };
    report(newest.damaged, "damaged");
    report(newest.unfit, "not finite");
    for (Damage const& each : newest.damaged) passed_over_.insert(each.folder);
    for (Damage const& each : newest.unfit) passed_over_.insert(each.folder);
    // Weights of another run are for the first start alone: later starts use the run's own.
    bool const elsewhere = !options_.from.empty();
    if (options_.resume == Resume::Weights && !(elsewhere && newest.checkpoint)) {
      if (elsewhere) {
        take_weights(run, weights_in(options_.from, options_.which));
      } else if (newest.checkpoint) {
        take_weights(run, weights_of(*newest.checkpoint, options_.which));
      }
      return std::move(newest.unfit);
    }
    Start const start = options_.resume == Resume::Weights
                            ? Start{.checkpoint = std::move(newest.checkpoint)}
                            : choose_start(*directory_, std::move(newest.checkpoint), options_.from,
                                           options_.on_newer);
    if (!start.checkpoint) return std::move(newest.unfit);
    if (start.is_fork || !start.returned_to.empty()) require_finite(*start.checkpoint);
    report(start.damaged, "damaged");
    resume_exactly(run, moves, *start.checkpoint, std::move(damaged));
    if (start.is_fork) {
      returned_to_.clear();
      saved_.reset();  // not in this folder
    } else if (!start.checkpoint->manifest.metrics.empty()) {
      snapshot_.resumed_judged(start.checkpoint->step());
    }
    if (!start.returned_to.empty()) returned_to_ = start.returned_to;
    if (!start.lost.empty()) {
      Removal const done = directory_->remove(start.lost);
      run.warn("the run returned to " + start.checkpoint->folder.string() + ": " +
               std::to_string(done.removed.size()) + " newer checkpoints were removed");
    }
    return std::move(newest.unfit);
  }

  FRUGAL_INLINE static void require_no_fixed(torch::nn::Module& module) {
    visit_all_tensors(module, [](std::string const& name, at::Tensor const& tensor) {
      if (!is_fixed(tensor)) return;
      throw ModuleError({.what = "the tensor '" + name + "' is fixed, as freeze() does",
                         .where = "Checkpoint",
                         .why = "a checkpoint has the hash of all fixed tensors, and each process "
                                "has those of its own layers",
                         .fix = "Set requires_grad(false) instead, train without Checkpoint, or in "
                                "one process."});
    });
  }

  /// StateError for a chosen checkpoint whose run could only end again.
  FRUGAL_INLINE void require_finite(SavedCheckpoint const& chosen) const {
    std::string const bad = first_bad_in(chosen, snapshot_.finite());
    if (bad.empty()) return;
    throw StateError({.what = "the chosen checkpoint is not finite",
                      .where = "Checkpoint::from, " + chosen.folder.string(),
                      .why = bad,
                      .fix = "Name an earlier checkpoint."});
  }

  FRUGAL_INLINE void resume_exactly(RunState& run, bool moves, SavedCheckpoint const& checkpoint,
                                    std::vector<std::string> damaged) {
    LoadedRun const loaded = load_run(run, recipe_, options_.rules, moves, checkpoint);
    Resumed what{.from = checkpoint.folder.string(),
                 .step = checkpoint.step(),
                 .steps_repeated = 0,
                 .seconds_lost = 0,
                 .damaged = std::move(damaged),
                 .changed = loaded.differences};
    auto const last = Heartbeat::read(run.settings.run_dir / "heartbeat");
    if (last && last->step > what.step) {
      what.steps_repeated = last->step - what.step;
      what.seconds_lost = std::max(0.0, last->seconds - loaded.seconds);
    }
    Event event{"resume",
                {{"from", what.from},
                 {"steps_repeated", what.steps_repeated},
                 {"seconds_lost", what.seconds_lost}}};
    if (!what.changed.empty()) event.fields.emplace_back("changed", joined(what.changed));
    run.resume_from(std::move(what), loaded.seconds);
    run.record(event);  // at the step and the time at which the run resumes
    saved_ = moment_of(run);
  }

  FRUGAL_INLINE void take_weights(RunState& run, std::filesystem::path const& file) {
    took_weights_ = file.string();
    LoadedWeights const loaded =
        copy_weights(run.root, TensorFiles::open(file), run.held_parts, run.places);
    run.record({"weights", {{"from", file.string()}}});
    for (std::string const& name : loaded.missing) {
      run.warn("weights of " + file.string() + ": '" + name + "' is not in the file");
    }
    for (std::string const& name : loaded.unexpected) {
      run.warn("weights of " + file.string() + ": '" + name + "' is not in the module");
    }
  }

  FRUGAL_INLINE void write() {
    if (shared_) {
      snapshot_.write(*directory_, *shared_);
    } else {
      snapshot_.write(*directory_);
    }
    prune();
    has_pruned_ = true;
  }
  FRUGAL_INLINE void prune() {
    retain(*directory_, options_.retention,
           [this](SavedCheckpoint& checkpoint) { former_.take_from(checkpoint); });
  }

  /// Call it while nothing is being written.
  FRUGAL_INLINE void advise_of_leftovers(RunState& run) {
    for (Damage const& each : directory_->take_leftovers()) {
      run.warn("an old checkpoint cannot be deleted: " + each.folder.string() + ": " + each.why);
    }
  }

  /// Throws a job's StoreError, or reports it, according to on_failure. False after an error.
  template <class Job>
  bool tolerate_failure(RunState& run, Job&& job) {
    try {
      job();
      return true;
    } catch (LockError const&) {
      throw;  // the folder belongs to another run: no retry can help
    } catch (WeightRangeError const&) {
      throw;  // nor here: the weight stays
    } catch (StoreError const& error) {
      failed_ = true;
      if (options_.on_failure == OnFailure::Stop) throw;
      failure_ = error.what();
      advise_of_failure(run);
      run.record({"checkpoint_failed", {{"error", failure_}}});
      return false;
    }
  }

  // One line for all of them: the last one, and their number, since each names another folder. A
  // resumed run continues the count.
  FRUGAL_INLINE void advise_of_failure(RunState& run) {
    static constexpr char const* begin = "a checkpoint was not written: ";
    std::string line = begin + failure_;
    if (++failures_ > 1) line += " (" + std::to_string(failures_) + " times)";
    for (std::string& known : run.warnings) {
      if (known.starts_with(begin)) {
        known = std::move(line);
        return;
      }
    }
    run.warn(line);
  }

  static constexpr std::string_view with_weights = "weights of ";

  Options options_;
  Slots recipe_;
  std::string took_weights_;  ///< the file with which this fit began (Resume::Weights)
  StoredSnapshot snapshot_;
  SaveCost cost_{};
  std::string failure_;         ///< the last one
  std::uint64_t failures_ = 0;  ///< that were borne, those before a resume included
  std::string returned_to_;     ///< the checkpoint of this run that it has returned to
  std::optional<Moment> saved_;
  bool failed_ = false;      ///< a save, since take_failed()
  bool has_pruned_ = false;  ///< after a save of this fit, or at its end
  FormerValidation former_;  ///< of this run's checkpoints
  std::set<std::filesystem::path> passed_over_;
  bool abandoned_ = false;  ///< the run has gone back since the last save
  std::unique_ptr<RunDirectory> directory_;
  std::unique_ptr<Heartbeat> heartbeat_;
  std::optional<SharedSave> shared_;          ///< with the other processes of the run
  std::unique_ptr<BackgroundWriter> writer_;  // last: what it uses outlives it
};

}  // namespace frugal::detail
