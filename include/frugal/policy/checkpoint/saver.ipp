// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/policy/checkpoint/saver.hpp>

#include <frugal/checkpoint/run_directory.hpp>
#include <frugal/core/libtorch/fixed_tensors.hpp>
#include <frugal/core/run/run_state.hpp>
#include <frugal/core/state/state_writer.hpp>
#include <frugal/error.hpp>
#include <frugal/inline.hpp>
#include <frugal/policy/checkpoint/resume.hpp>
#include <frugal/policy/checkpoint/state_file.hpp>
#include <frugal/policy/checkpoint/weights.hpp>
#include <frugal/policy/run_folder.hpp>

#include <cerrno>
#include <cstddef>
#include <exception>
#include <system_error>
#include <utility>
#include <variant>

namespace frugal::detail {

FRUGAL_INLINE Saver::Saver(Options options)
    : options_(std::move(options)),
      snapshot_(options_.async ? CopyTarget::on_host : CopyTarget::none, options_.weights) {}

FRUGAL_INLINE void Saver::begin(RunState& run, Slots recipe, bool moves,
                                std::function<void()> wake) {
  auto const busy = run.together.is_busy();
  recipe_ = std::move(recipe);
  require_rules(options_.rules);
  snapshot_.begin(run);
  directory_ = std::make_unique<RunDirectory>(run.settings.run_dir, lock_run_folder(run));
  for (std::string const& note : directory_->notes()) run.warn(note);
  if (run.links.loop() != nullptr)
    run.progress.identify_data(run.links.loop()->identify_data().values());
  // In the order of the log: a resume cuts it first.
  for (Damage const& unfit : resume(run, moves)) {
    run.record(
        {"checkpoint_passed_over", {{"folder", unfit.folder.string()}, {"reason", unfit.why}}});
  }
  if (!options_.retention.best.empty()) {
    former_ = FormerValidation(directory_->list().whole, run.progress.data());
  }
  std::filesystem::path const beats = run.settings.run_dir / "heartbeat";
  heartbeat_ = std::make_unique<Heartbeat>(beats);
  if (!heartbeat_->open()) {
    run.warn(beats.string() + " cannot be written (" + why_of(beats, errno) +
             "): after a kill nobody knows how many steps were lost");
  }
  if (options_.async) writer_ = std::make_unique<BackgroundWriter>(std::move(wake));
}

FRUGAL_INLINE std::string Saver::beginning(RunState const& run) const {
  if (run.progress.resumed()) return run.progress.resumed()->from;
  return took_weights_.empty() ? std::string() : std::string(with_weights) + took_weights_;
}

FRUGAL_INLINE void Saver::follow(RunState& run, Slots recipe, bool moves,
                                 std::string const& beginning) {
  auto const busy = run.together.is_busy();
  recipe_ = std::move(recipe);
  snapshot_.begin(run);
  if (run.links.loop() != nullptr)
    run.progress.identify_data(run.links.loop()->identify_data().values());
  if (beginning.empty()) return;
  if (beginning.starts_with(with_weights)) {
    return take_weights(run, beginning.substr(with_weights.size()));
  }
  std::filesystem::path const folder = beginning;
  // The first process has compared the hashes; if each has other layers, they read the same folder.
  SavedCheckpoint const checkpoint =
      run.together.places.empty() ? checkpoint_at(folder) : read_checkpoint(folder);
  LoadedRun const loaded = load_run(run, recipe_, options_.rules, moves, checkpoint);
  run.progress.resume_from({.from = folder.string(),
                            .step = checkpoint.step(),
                            .steps_repeated = 0,
                            .seconds_lost = 0,
                            .damaged = {},
                            .changed = loaded.differences},
                           loaded.seconds);
}

FRUGAL_INLINE void Saver::share(RunState& run, std::function<void()> wake) {
  if (!run.together.board) return;
  if (!run.together.places.empty()) require_no_fixed(run.root);
  SharedSave shared(run.together.board);
  run.together.side_by_side = shared.all_see(run.settings.run_dir / "checkpoints");
  if (run.together.side_by_side) {
    shared_.emplace(std::move(shared));
    if (options_.async && !writer_) writer_ = std::make_unique<BackgroundWriter>(std::move(wake));
  } else if (!run.together.places.empty()) {
    throw ClusterError({.what = "the processes do not all see the run directory",
                        .where = "Checkpoint, " + run.settings.run_dir.string(),
                        .why = "each writes the layers that it has, and reads them when it resumes",
                        .fix = "Give all of them one folder on a file system that they share."});
  } else if (directory_) {
    run.warn("Checkpoint: the processes do not all see " + run.settings.run_dir.string() +
             ", so the first one gets the parts of all, and writes them");
  }
}

FRUGAL_INLINE void Saver::forget_last() {
  saved_.reset();
  abandoned_ = true;
}

FRUGAL_INLINE std::vector<std::map<std::string, double>> Saver::metrics_on_disk() const {
  std::vector<std::map<std::string, double>> all;
  for (SavedCheckpoint each : directory_->list().whole) {
    if (passed_over_.contains(each.folder)) continue;
    former_.take_from(each);
    all.push_back(std::move(each.manifest.metrics));
  }
  return all;
}

FRUGAL_INLINE void Saver::save_part(RunState& run) {
  if (writer_) writer_->wait();  // the snapshot is still being written from
  shared_->next();
  snapshot_.take(run, recipe_);
  if (writer_) {
    writer_->submit([this, busy = run.together.is_busy()] { snapshot_.write(*shared_); });
  } else {
    auto const busy = run.together.is_busy();
    snapshot_.write(*shared_);
  }
}

FRUGAL_INLINE void Saver::report_failure(RunState& run) {
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

FRUGAL_INLINE void Saver::beat(RunState const& run) const {
  heartbeat_->beat({run.counters().step, run.seconds()});
}

FRUGAL_INLINE Saver::Moment Saver::moment_of(RunState const& run) {
  return {run.counters(), run.control.unfinished().hook, run.observed.judged()};
}

FRUGAL_INLINE std::shared_ptr<void> Saver::keep_others(RunState const& run) {
  return run.together.is_busy();
}

FRUGAL_INLINE void Saver::settle(RunState& run) {
  if (writer_) writer_->wait();
  report_failure(run);
}

FRUGAL_INLINE void Saver::finish(RunState& run) {
  settle(run);
  auto const busy = run.together.is_busy();
  // A run that was killed after its last save, and before it removed an older one, has one too many.
  if (!std::exchange(has_pruned_, true)) prune();
  advise_of_leftovers(run);
  run.control.set_unsaved(has_saved(run) ? std::string() : failure_);
  beat(run);
}

FRUGAL_INLINE std::vector<Damage> Saver::resume(RunState& run, bool moves) {
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

FRUGAL_INLINE void Saver::require_no_fixed(torch::nn::Module& module) {
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

FRUGAL_INLINE void Saver::require_finite(SavedCheckpoint const& chosen) const {
  std::string const bad = first_bad_in(chosen, snapshot_.finite());
  if (bad.empty()) return;
  throw StateError({.what = "the chosen checkpoint is not finite",
                    .where = "Checkpoint::from, " + chosen.folder.string(),
                    .why = bad,
                    .fix = "Name an earlier checkpoint."});
}

FRUGAL_INLINE void Saver::resume_exactly(RunState& run, bool moves,
                                         SavedCheckpoint const& checkpoint,
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
  for (auto const& [name, value] : run.settings.options) {
    event.fields.emplace_back("option." + name, value);
  }
  if (!what.changed.empty()) event.fields.emplace_back("changed", joined(what.changed));
  run.progress.resume_from(std::move(what), loaded.seconds);
  run.record(event);  // at the step and the time at which the run resumes
  saved_ = moment_of(run);
}

FRUGAL_INLINE void Saver::take_weights(RunState& run, std::filesystem::path const& file) {
  took_weights_ = file.string();
  LoadedWeights const loaded =
      copy_weights(run.root, TensorFiles::open(file), run.together.held_parts, run.together.places);
  run.record({"weights", {{"from", file.string()}}});
  for (std::string const& name : loaded.missing) {
    run.warn("weights of " + file.string() + ": '" + name + "' is not in the file");
  }
  for (std::string const& name : loaded.unexpected) {
    run.warn("weights of " + file.string() + ": '" + name + "' is not in the module");
  }
}

FRUGAL_INLINE void Saver::write() {
  SavedCheckpoint const saved =
      shared_ ? snapshot_.write(*directory_, *shared_) : snapshot_.write(*directory_);
  {
    std::scoped_lock const lock(written_mutex_);
    written_.emplace_back(saved.folder, saved.step());
  }
  prune();
  has_pruned_ = true;
}

FRUGAL_INLINE std::vector<std::pair<std::filesystem::path, std::uint64_t>> Saver::take_written() {
  std::scoped_lock const lock(written_mutex_);
  return std::exchange(written_, {});
}

FRUGAL_INLINE void Saver::prune() {
  retain(*directory_, options_.retention,
         [this](SavedCheckpoint& checkpoint) { former_.take_from(checkpoint); });
}

FRUGAL_INLINE void Saver::advise_of_leftovers(RunState& run) {
  for (Damage const& each : directory_->take_leftovers()) {
    run.warn("an old checkpoint cannot be deleted: " + each.folder.string() + ": " + each.why);
  }
}

FRUGAL_INLINE void Saver::advise_of_failure(RunState& run) {
  static constexpr char const* begin = "a checkpoint was not written: ";
  std::string line = begin + failure_;
  if (++failures_ > 1) line += " (" + std::to_string(failures_) + " times)";
  run.observed.warn_again(begin, std::move(line));
}

FRUGAL_INLINE bool is_own(RunDirectory const& directory, std::filesystem::path const& path) {
  std::error_code failure;
  return std::filesystem::equivalent(path.parent_path(), directory.checkpoints_folder(), failure);
}

FRUGAL_INLINE Start return_to(RunDirectory const& directory, std::optional<SavedCheckpoint> newest,
                              std::filesystem::path const& from, OnNewer on_newer) {
  std::string const name = from.filename().string();
  if (newest) {
    StateFile const state = read_state(*newest);
    auto const found = state.values.find(returned_path);
    auto const* const to =
        found == state.values.end() ? nullptr : std::get_if<std::string>(&found->second);
    if (to != nullptr && *to == name) {
      return {.checkpoint = std::move(newest)};
    }
  }
  SavedCheckpoint chosen = checkpoint_at(from);
  std::vector<SavedCheckpoint> lost = directory.list().whole;
  std::erase_if(
      lost, [&](SavedCheckpoint const& each) { return !newer(each.manifest, chosen.manifest); });
  if (!lost.empty() && on_newer == OnNewer::Refuse) {
    throw StateError(
        {.what = "the run has newer checkpoints than the one that it should resume from",
         .where = "Checkpoint::from, " + from.string(),
         .why = std::to_string(lost.size()) + " are newer; the newest is " +
                lost.front().folder.filename().string(),
         .fix = "Set Checkpoint::on_newer to OnNewer::Remove to remove them, or give another "
                "Settings::run_dir to continue there and keep this run as it is."});
  }
  return {.checkpoint = std::move(chosen), .returned_to = name, .lost = std::move(lost)};
}

FRUGAL_INLINE Start choose_start(RunDirectory const& directory,
                                 std::optional<SavedCheckpoint> newest, std::filesystem::path from,
                                 OnNewer on_newer) {
  if (!from.empty() && !from.has_filename()) from = from.parent_path();  // "runs/demo/"
  if (!from.empty() && is_own(directory, from)) {
    return return_to(directory, std::move(newest), from, on_newer);
  }
  std::error_code failure;
  bool const is_run = std::filesystem::equivalent(from, directory.folder(), failure);
  // Another run's is for the first start alone: later starts use the run's own.
  if (newest || from.empty() || is_run) return {.checkpoint = std::move(newest)};
  if (std::filesystem::is_regular_file(from, failure)) {
    throw SettingsError({.what = "a run cannot resume exactly from a file of weights",
                         .where = "Checkpoint::from, " + from.string(),
                         .why = "it has neither counters nor the optimizer's state",
                         .fix = "Give the folder of a run or of a checkpoint, or set "
                                "Checkpoint::resume to Resume::Weights."});
  }
  Start start{.checkpoint = {}, .is_fork = true};
  start.checkpoint = checkpoint_at(from, &start.damaged);
  return start;
}

}  // namespace frugal::detail
