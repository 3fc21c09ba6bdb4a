// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
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
#include <frugal/checkpoint/retention.hpp>
#include <frugal/checkpoint/run_directory.hpp>
#include <frugal/core/run/judged.hpp>
#include <frugal/core/run/run_state.hpp>
#include <frugal/core/state/module_tensors.hpp>
#include <frugal/policy/checkpoint/find.hpp>
#include <frugal/policy/checkpoint/interval.hpp>
#include <frugal/policy/checkpoint/marks.hpp>
#include <frugal/policy/checkpoint/options.hpp>
#include <frugal/policy/checkpoint/saved_recipe.hpp>
#include <frugal/policy/checkpoint/shared_save.hpp>
#include <frugal/policy/checkpoint/snapshot.hpp>
#include <frugal/policy/checkpoint/writer.hpp>

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

  explicit Saver(Options options);

  /// Opens the run directory and resumes. `recipe` and `moves`: see load_run(). `wake` is
  /// called, in any thread, when a save has ended: then there is something for report_failure() or
  /// take_written().
  void begin(RunState& run, Slots recipe, bool moves, std::function<void()> wake);

  /// For the other processes of a run, how the first one has begun: see follow().
  std::string beginning(RunState const& run) const;
  /// In a process that is not the first of a run: resumes as the first one did, from the folder of a
  /// checkpoint or with the weights of a file, or begins if it is empty. Such a process writes
  /// nothing but its part of each save, and holds no lock.
  void follow(RunState& run, Slots recipe, bool moves, std::string const& beginning);

  /// In all processes of a run that hold parts of what is saved, after begin() and follow(): whether each
  /// writes its part. Otherwise the first one gets them all.
  void share(RunState& run, std::function<void()> wake);
  /// Whether a process that is not the first has a part to write: see save_part().
  bool is_shared() const { return shared_.has_value(); }

  void beat(RunState const& run) const;

  /// Whether a checkpoint of this moment is on disk, or being written.
  bool has_saved(RunState const& run) const { return saved_ && *saved_ == moment_of(run); }
  bool has_saved_any() const { return saved_.has_value(); }
  void forget_last();

  /// The checkpoints that are whole on disk since the last call: their folders and steps.
  std::vector<std::pair<std::filesystem::path, std::uint64_t>> take_written();

  /// Whether a save has failed since the last call.
  bool take_failed() { return std::exchange(failed_, false); }

  /// The metrics of the checkpoints on disk that were measured on this run's validation data, when
  /// the fit began. Those that were passed over do not count.
  std::vector<std::map<std::string, double>> metrics_on_disk() const;

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
      writer_->submit([this, busy = keep_others(run)] { write(); });
    } else {
      auto const busy = keep_others(run);
      if (!tolerate_failure(run, [this] { write(); })) return std::nullopt;
    }
    saved_ = moment_of(run);
    std::chrono::duration<double> const stall = Clock::now() - start;
    cost_ = {.stall = stall.count(), .write = writer_ ? writer_->seconds() : 0.0};
    return cost_;
  }

  /// In a process that is not the first: writes its part of a save. What fails is the first one's to
  /// report.
  void save_part(RunState& run);

  /// Throws or reports what the writing thread has thrown since the last call.
  void report_failure(RunState& run);

  /// Waits until the save before is on disk; throws or reports what it has thrown.
  void settle(RunState& run);

  /// Waits for the disk, and records in the report whether this moment is saved.
  void finish(RunState& run);

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
    Judged judged;  // also Observed::weights_have_changed()
    bool operator==(Moment const&) const = default;
  };
  static Moment moment_of(RunState const& run);
  /// The other processes wait while the result lives.
  static std::shared_ptr<void> keep_others(RunState const& run);

  /// Returns the checkpoints of this run that are whole and were passed over.
  std::vector<Damage> resume(RunState& run, bool moves);

  static void require_no_fixed(torch::nn::Module& module);

  /// StateError for a chosen checkpoint whose run could only end again.
  void require_finite(SavedCheckpoint const& chosen) const;

  void resume_exactly(RunState& run, bool moves, SavedCheckpoint const& checkpoint,
                      std::vector<std::string> damaged);

  void take_weights(RunState& run, std::filesystem::path const& file);

  void write();
  void prune();

  /// Call it while nothing is being written.
  void advise_of_leftovers(RunState& run);

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
  void advise_of_failure(RunState& run);

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
  std::mutex written_mutex_;
  std::vector<std::pair<std::filesystem::path, std::uint64_t>> written_;
  std::unique_ptr<RunDirectory> directory_;
  std::unique_ptr<Heartbeat> heartbeat_;
  std::optional<SharedSave> shared_;          ///< with the other processes of the run
  std::unique_ptr<BackgroundWriter> writer_;  // last: what it uses outlives it
};

/// The checkpoint that a start with Resume::Exact continues from.
struct Start {
  std::optional<SavedCheckpoint> checkpoint{};
  bool is_fork = false;                 ///< it is another run's, and this run has saved nothing yet
  std::vector<Damage> damaged{};        ///< newer ones of that run
  std::string returned_to{};            ///< its folder's name, if `from` names it in this run
  std::vector<SavedCheckpoint> lost{};  ///< newer ones of this run, which are to be removed
};

/// The value that names the checkpoint to which a run has returned, in later ones of that run.
inline constexpr char const* returned_path = "policies/Checkpoint/returned/to";

/// Whether a path is in the checkpoints of this run directory.
bool is_own(RunDirectory const& directory, std::filesystem::path const& path);

/// A run that goes on from one of its own checkpoints. Once it has saved, that checkpoint is behind
/// it, and later starts with the same settings continue from the newest one.
Start return_to(RunDirectory const& directory, std::optional<SavedCheckpoint> newest,
                std::filesystem::path const& from, OnNewer on_newer);

/// `newest`: the newest valid checkpoint of the run. `from`: see Checkpoint::from. StoreError and
/// FormatError if a checkpoint there cannot be read or is damaged.
Start choose_start(RunDirectory const& directory, std::optional<SavedCheckpoint> newest,
                   std::filesystem::path from, OnNewer on_newer);

}  // namespace frugal::detail

#ifndef FRUGAL_COMPILED
#include <frugal/policy/checkpoint/saver.ipp>
#endif
