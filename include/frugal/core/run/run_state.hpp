// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ATen.h>
#include <torch/nn/module.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <frugal/core/compose/recipe_facts.hpp>
#include <frugal/core/libtorch/module_hold.hpp>
#include <frugal/core/libtorch/parameters.hpp>
#include <frugal/core/run/control.hpp>
#include <frugal/core/run/event.hpp>
#include <frugal/core/run/gradient_norm.hpp>
#include <frugal/core/run/interfaces.hpp>
#include <frugal/core/run/learning_rate.hpp>
#include <frugal/core/run/loss_accumulator.hpp>
#include <frugal/core/run/observed.hpp>
#include <frugal/core/run/run_links.hpp>
#include <frugal/core/run/run_progress.hpp>
#include <frugal/core/run/services.hpp>
#include <frugal/core/run/settings.hpp>
#include <frugal/core/source/source.hpp>
#include <frugal/core/state/save_board.hpp>
#include <frugal/core/state/state_reader.hpp>
#include <frugal/core/state/state_writer.hpp>
#include <frugal/core/state/tensor_part.hpp>
#include <frugal/error.hpp>

namespace frugal {

/// What policies have asked of a run in its first event (FitBegin).
class RunSetUp {
 public:
  using NamedValue = std::pair<std::string, std::string>;

  /// A setting of a policy that must be alike in all processes that train together.
  void compare(std::string name, std::string value) {
    compared_.emplace_back(std::move(name), std::move(value));
  }
  std::vector<NamedValue> const& compared() const { return compared_; }

  /// A setting of a policy of which a resumed run says that it has changed.
  void keep(std::string name, std::string value) {
    kept_.emplace_back(std::move(name), std::move(value));
  }
  std::vector<NamedValue> const& kept() const { return kept_; }

  /// Validation batches to try before the first step.
  void try_validation(std::size_t batches) { validation_trial_ = batches; }
  std::size_t take_validation_trial() { return std::exchange(validation_trial_, 0); }

  /// Called when a resumed run is restored, or knows that it is not resumed.
  void when_restored(std::function<void()> then) { when_restored_.push_back(std::move(then)); }
  void restored() {
    for (auto const& then : std::exchange(when_restored_, {})) then();
  }

  /// A file that must be durable before a checkpoint is.
  void writes_to(std::filesystem::path file) { files_.push_back(std::move(file)); }
  std::vector<std::filesystem::path> const& files() const { return files_; }

  /// Epochs at the beginning that are no measure of the run: they draw from a part of the data alone.
  void begin_easily(std::uint64_t epochs) { easy_epochs_ = std::max(easy_epochs_, epochs); }
  std::uint64_t easy_epochs() const { return easy_epochs_; }

  /// The lock of Settings::run_dir, once a policy writes there; as long as the run lives.
  void hold_folder(std::shared_ptr<void> lock) { folder_lock_ = std::move(lock); }
  std::shared_ptr<void> const& folder_lock() const { return folder_lock_; }

 private:
  std::vector<NamedValue> compared_, kept_;
  std::size_t validation_trial_ = 0;
  std::uint64_t easy_epochs_ = 0;
  std::vector<std::function<void()>> when_restored_;
  std::vector<std::filesystem::path> files_;
  std::shared_ptr<void> folder_lock_;
};

/// What a policy that trains in many processes leaves for the one that saves: which tensors are in parts, and
/// how the processes meet. Empty in one process.
struct SavedTogether {
  /// Where processes hold parts of the States' tensors: makes them whole for a checkpoint. Then all
  /// of them call persist() when one saves.
  WholeTensor whole_tensor{};
  /// Where processes hold parts of weights.
  HeldParts held_parts{};
  /// Where each process has other layers of the module. Then all of them call persist() when one saves.
  TensorPlaces places{};
  /// What they leave for each other while they write one checkpoint. Null: the first process writes all.
  std::shared_ptr<SaveBoard> board{};
  /// Set by the policy that saves: one of the processes that have parts of a tensor keeps and writes it,
  /// instead of the first one.
  bool side_by_side = false;
  /// Saves that the policy that saves has begun in this process.
  std::uint64_t begun = 0;
  /// While the result lives, this process reads or writes a checkpoint, and the others wait.
  std::function<std::shared_ptr<void>()> busy{};
  /// The text of the first process in all, although one may have ended.
  std::function<std::string(std::string const&)> first_says{};

  std::shared_ptr<void> is_busy() const { return busy ? busy() : nullptr; }
  /// Whether all processes take part when the run is saved, because each holds something that no other has.
  bool by_all() const { return whole_tensor || !places.empty(); }
};

/// The window in progress as policies see it: its gradients, and what is known of them.
class WindowState {
 public:
  /// The gradients of what the optimizer updates.
  GradientList& gradients() { return gradients_; }
  GradientList const& gradients() const { return gradients_; }

  /// Where the window is, for errors; set when its gradients are gathered.
  LossError::Window const& place() const { return place_; }
  void set_place(LossError::Window const& place) { place_ = place; }

  /// The norm before clipping, if a policy computes it.
  GradientNorm const& norm() const { return norm_; }
  void set_norm(GradientNorm norm) { norm_ = std::move(norm); }
  void set_norm(double norm) { norm_.set(norm); }
  void set_norm(at::Tensor norm) { norm_.set(std::move(norm)); }

  /// A scalar on the gradients' device: 1 if any is not finite. Undefined without a policy that skips such
  /// windows.
  at::Tensor const& overflow() const { return overflow_; }
  void set_overflow(at::Tensor found) { overflow_ = std::move(found); }
  /// The window does not count as a step.
  void skip_step() { skips_ = true; }
  bool skips_step() const { return skips_; }
  /// The same, for the window that ends here.
  bool take_skip() { return std::exchange(skips_, false); }

  /// Of a window that processes divide: what the gradients of the micro-batch in its backward pass
  /// are still to be multiplied by.
  double const& gradient_unit() const { return unit_; }
  void set_gradient_unit(double unit) { unit_ = unit; }

  /// What the gradients are multiplied by until on_gradients; 1 without a policy that scales losses. May wait
  /// for a device.
  double loss_scale() const { return loss_scale_ ? loss_scale_() : 1.0; }
  /// Set in on_fit_begin by the policy that scales losses.
  void scale_losses_by(std::function<double()> scale) { loss_scale_ = std::move(scale); }

  /// The window's loss; only for optimizers that reevaluate.
  at::Tensor const& loss() const { return loss_; }
  void set_loss(at::Tensor loss) { loss_ = std::move(loss); }

  /// The run has moved to another device.
  void forget_overflow() {
    overflow_.reset();
    skips_ = false;
  }
  /// What a failed window, or the code after it, has left.
  void discard() {
    gradients_.clear();
    forget_overflow();
  }

 private:
  GradientList gradients_{};
  LossError::Window place_{};
  GradientNorm norm_{};
  at::Tensor overflow_{};
  bool skips_ = false;
  double unit_ = 1;
  std::function<double()> loss_scale_{};
  at::Tensor loss_{};
};

/// The hash of the fixed tensors of a run's module. No file has these tensors, so a checkpoint has
/// their hash. They are hashed once: later saves only look whether something has written to them.
class FixedIdentity {
 public:
  /// Empty if the module has no fixed tensors. StateError if one has changed since the first call.
  std::string const& identify(torch::nn::Module const& module);

  /// StateError unless the module's fixed tensors are those of a checkpoint.
  void require(torch::nn::Module const& module, std::string const& saved);

 private:
  bool known_ = false;
  std::string identity_;
  std::uint64_t versions_ = 0;
};

/// The state of a run that belongs to no policy, independent of module type and recipe: its parts, and what
/// they do together. Rare operations (begin, dry run, save, resume, move) are written against this, so
/// that a file compiles them once for all its recipes.
struct RunState {
  torch::nn::Module& root;  ///< the module itself, behind its holder or pointer
  Settings const& settings;
  RunProgress progress{};  ///< how far the run is
  Parameters parameters = Parameters::of(root);
  LossAccumulator losses{};  ///< of the epoch
  WindowState window{};      ///< the gradients of the window in progress
  LearningRate rate{};
  Observed observed{};  ///< what it has measured, and what it says of itself
  Control control{};    ///< whether it goes on, and what has ended it

  c10::Device device = settings.device;  ///< where batches are placed now
  detail::ModuleHold hold{root};         ///< what the run changes of the module besides its tensors
  FixedIdentity fixed{};                 ///< of the tensors that are in no checkpoint
  RunSetUp set_up{};                     ///< what policies have asked for in the first event
  RunLinks links{};                      ///< whom it reaches
  SavedTogether together{};  ///< set by the provider of service::share, for the policy that saves

  Counters const& counters() const { return progress.counters(); }

  /// Whether the metrics of the last validation are those of the current weights.
  bool is_judged() const { return observed.is_judged(counters()); }

  /// Combines one value of each process that trains together; with one process, the value itself.
  template <class T>
  T reduce(Quantity what, T value) {
    return links.others() == nullptr ? value : links.others()->reduce(what, std::move(value));
  }
  /// Whether this process writes what a run of several processes has once.
  bool is_first() const { return links.others() == nullptr || links.others()->is_first(); }
  Processes processes() const {
    return links.others() == nullptr ? Processes{} : links.others()->processes();
  }
  /// The share of a validation's batches that this process measures.
  EqualShare measures() const {
    return links.others() == nullptr ? EqualShare{} : links.others()->measures();
  }
  /// The text of the first process; all of them call it.
  std::string from_first(std::string const& text) {
    return links.others() == nullptr ? text : links.others()->from_first(text);
  }
  /// The texts of all processes, in their order; all of them call it.
  std::vector<std::string> texts_of_all(std::string const& text) {
    return links.others() == nullptr ? std::vector{text} : links.others()->texts_of_all(text);
  }

  /// Weighted mean of this epoch's losses so far; NaN before the first. May wait for a device and
  /// for other processes. Throws the LossError of a bad loss, in every process.
  double mean_loss();
  /// Reads the losses still on a device. Throws the LossError of a bad one, in every process.
  void read_losses();
  /// Whether the run stops after an event: by the verdict of this process, of which `who` is the first that
  /// asked, or of another one. `own_verdicts`: a policy may have asked in this process alone.
  bool agree_on_stop(bool asked, std::string const& who, bool own_verdicts);
  /// Who has stopped the run that this one resumes; empty if nobody did. A policy that withdraws a stop may be
  /// called in the first process alone, so that one says it.
  std::string agreed_stop_of_checkpoint();
  /// Layers whose weights are cut (TensorParallel) need the policy that trains with their processes.
  void require_whole_weights() const;
  /// Throws the LossError of a bad loss, of this process or of another one.
  [[noreturn]] void refuse_bad_loss() const;
  /// Total weight of a window's losses over all processes. Throws like mean_loss().
  double window_weight(double here) {
    double const all = reduce(Quantity::window_weight, losses.bad() ? nan : here);
    if (std::isnan(all)) refuse_bad_loss();
    return all;
  }

  /// What the optimizer updates: the parameters, or this process's parts of them.
  Parameters const& updated() const {
    return links.parts() == nullptr ? parameters : links.parts()->parameters;
  }

  /// Wall time of training, including that before a resume.
  double seconds() const { return progress.seconds(); }

  /// The place of the training data from which the run goes on.
  Cursor cursor() const { return {settings.seed, counters().epoch, counters().position}; }

  /// See Observed::warn.
  void warn(std::string const& text) { observed.warn(text); }

  /// Records an event of the run itself, and tells the policies that log events.
  void record(Event event);

  /// Discards what a failed window, or the code after it, has left.
  void discard_window();

  /// Where the module begins; see ModuleSetup.
  void begin_on(c10::Device first);

  /// Saves everything but the module's own tensors and the generators: training progress, and each
  /// policy's state in its own scope.
  void persist(StateWriter& archive);
  void persist(StateReader& archive) { persist_all(archive); }
  /// The part of persist() that is no policy's.
  template <class Archive>
  void persist_progress(Archive& archive) {
    archive.scope("counters", [&](auto& inner) { progress.persist_counters(inner); });
    archive.scope("rate", [&](auto& inner) { rate.persist(inner); });
    archive.scope("ledger", [&](auto& inner) { losses.persist(inner); });
    control.persist_unfinished(archive);
    archive.scope("run", [&](auto& inner) { persist_record(inner); });
  }

 private:
  static constexpr double nan = std::numeric_limits<double>::quiet_NaN();

  template <class Archive>
  void persist_all(Archive& archive) {
    persist_progress(archive);
    archive.scope("policies", [&](auto& inner) { links.policies().persist(inner); });
  }

  /// A run continues over the same fixed tensors alone.
  template <class Archive>
  void persist_fixed(Archive& archive) {
    if constexpr (Archive::loading) {
      if (archive.moves_to()) return;
      std::string saved;
      if (archive.holds("fixed")) archive("fixed", saved);
      fixed.require(root, saved);
    } else {
      std::string const here = fixed.identify(root);
      if (!here.empty()) archive("fixed", here);
    }
  }

  /// What a program has set, as far as a run knows it: by apply(), the learning rates, and numbers of policies
  /// (FitBegin::compare_in_processes). A run that goes on with other values says so.
  template <class Archive>
  void persist_options(Archive& archive) {
    if (archive.of_a_snapshot) return;
    std::string text = options_text();
    if constexpr (Archive::loading) {
      if (!archive.holds("options")) return;
      std::string saved;
      archive("options", saved);
      warn_of_options(saved, text);
    } else {
      archive("options", text);
    }
  }
  /// How the name of a policy's number begins there.
  static constexpr std::string_view of_policy = "of a policy: ";
  /// A line for each, "name = value", sorted.
  std::string options_text() const;
  void warn_of_options(std::string const& saved, std::string const& here);

  /// Saves or loads the report's data about the whole run, over all its processes.
  template <class Archive>
  void persist_record(Archive& archive) {
    persist_options(archive);
    persist_fixed(archive);
    control.persist_stop(archive);
    observed.persist_epoch_loss(archive);
    progress.persist_epoch(archive);
    observed.persist_metrics(archive);
  }
};

}  // namespace frugal

#ifndef FRUGAL_COMPILED
#include <frugal/core/run/run_state.ipp>
#endif
