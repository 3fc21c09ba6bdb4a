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
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <frugal/base/wall_clock.hpp>
#include <frugal/core/compose/recipe_facts.hpp>
#include <frugal/core/libtorch/module_hold.hpp>
#include <frugal/core/libtorch/parameters.hpp>
#include <frugal/core/run/counters.hpp>
#include <frugal/core/run/event.hpp>
#include <frugal/core/run/fixed_identity.hpp>
#include <frugal/core/run/gauges.hpp>
#include <frugal/core/run/gradient_norm.hpp>
#include <frugal/core/run/interfaces.hpp>
#include <frugal/core/run/judged.hpp>
#include <frugal/core/run/learning_rate.hpp>
#include <frugal/core/run/loss_accumulator.hpp>
#include <frugal/core/run/metrics.hpp>
#include <frugal/core/run/policy_events.hpp>
#include <frugal/core/run/policy_states.hpp>
#include <frugal/core/run/run_limits.hpp>
#include <frugal/core/run/run_status.hpp>
#include <frugal/core/run/services.hpp>
#include <frugal/core/run/settings.hpp>
#include <frugal/core/run/speed.hpp>
#include <frugal/core/source/source.hpp>
#include <frugal/core/state/save_board.hpp>
#include <frugal/core/state/state_reader.hpp>
#include <frugal/core/state/state_writer.hpp>
#include <frugal/core/state/tensor_part.hpp>
#include <frugal/core/state/tensor_places.hpp>
#include <frugal/error.hpp>

namespace frugal {

/// Parts of parameters: this process's elements of each, as a tensor of one dimension.
struct ParameterParts {
  Parameters parameters{};
  std::vector<std::optional<TensorPart>> of{};  ///< nothing for a parameter that is there as it is
};

/// The state of a run that belongs to no policy, independent of module type and recipe. Rare
/// operations (begin, dry run, save, resume, move) are written against this, so that a file
/// compiles them once for all its recipes.
struct RunState {
  torch::nn::Module& root;  ///< the module itself, behind its holder or pointer
  Settings const& settings;
  RunLimits horizon{};
  /// What the training data and their order are (DataIdentity); filled by a policy that saves.
  std::map<std::string, std::string> data{};
  Parameters parameters = Parameters::of(root);
  Counters counters{};
  RunStatus status{};  ///< whether the run goes on, and what has ended it
  LearningRate rate{};
  LossAccumulator ledger{};
  LossError::Window window{};  ///< the last one whose gradients were gathered
  GradientList gradients{};
  GradientNorm gradient_norm{};
  Overflow overflow{};
  std::optional<Speed> speed{};           ///< the last measurement of a policy
  Gauges gauges{};                        ///< the last values that policies have measured
  std::vector<Validation> validations{};  ///< the newest: see add_validation()
  Judged judged{};                        ///< the weights that the last of them measured
  /// Number of weights in the average that a validation would measure now; 0: it would measure the
  /// trained weights.
  std::uint64_t averaged = 0;
  Validation train_metrics{};  ///< the last of the training batches; empty without TrainMetrics
  double epoch_loss = std::numeric_limits<double>::quiet_NaN();  ///< of the last epoch, or the
                                                                 ///< current part of it
  std::vector<std::string> warnings{};
  std::vector<Event> events{};  ///< for loggers, oldest first
  bool tells_events = false;
  /// Where processes hold parts of the States' tensors: makes them whole for a checkpoint. Then all
  /// of them call persist() when one saves.
  WholeTensor whole_tensor{};
  /// Then: what they leave for each other while they write one. Null: the first process writes all.
  std::shared_ptr<SaveBoard> save_board{};
  /// Set by the policy that saves: one of the processes that have parts of a tensor keeps and writes it,
  /// instead of the first one.
  bool saves_side_by_side = false;
  std::uint64_t saves = 0;  ///< that the policy that saves has begun in this process
  /// Of processes that train together. While the result of `busy` lives, this one reads or writes a
  /// checkpoint, and the others wait. `first_says` gives the text of the first process in all, although
  /// one may have ended.
  std::function<std::shared_ptr<void>()> busy{};
  std::function<std::string(std::string const&)> first_says{};
  std::shared_ptr<void> is_busy() const { return busy ? busy() : nullptr; }
  /// Where processes hold parts of weights.
  HeldParts held_parts{};
  /// Where each process has other layers of the module. Then all of them call persist() when one saves.
  TensorPlaces places{};
  /// What a window's gradients are multiplied by until on_gradients; empty: by nothing. Set by the
  /// policy that scales losses, in on_fit_begin. May wait for a device.
  std::function<double()> loss_scale{};
  /// Settings of policies, by name, that must be alike in all processes that train together.
  std::vector<std::pair<std::string, std::string>> settings_to_compare{};
  std::vector<std::filesystem::path> files{};  ///< files that must be durable before a checkpoint
                                               ///< is
  std::shared_ptr<void> folder_lock{};         ///< of Settings::run_dir, once a policy writes there
  std::optional<Resumed> resumed{};
  /// At the end of a fit: the step whose weights the module holds, if a policy has restored some.
  std::optional<std::uint64_t> restored_step{};
  WallClock::time_point began = WallClock::now();
  double seconds_before = 0;  ///< of training, in earlier processes

  c10::Device device = settings.device;  ///< where batches are placed now
  FixedIdentity fixed{};                 ///< of the tensors that are in no checkpoint
  RecipeFacts facts{};
  PolicyStates policies{};
  PolicyEvents events_of_policies{};
  // Set before the first event.
  LoopInterface* loop = nullptr;
  ProcessesInterface* others = nullptr;   ///< null in a run of one process
  SaverInterface* saver = nullptr;        ///< null without a policy that saves
  CaptureInterface* capture = nullptr;    ///< null without a policy that captures steps
  ParameterParts const* parts = nullptr;  ///< set by the provider of service::share
  /// Of a window that processes divide: what the gradients of the micro-batch in its backward pass
  /// are still to be multiplied by.
  double gradient_unit = 1;
  detail::ModuleHold hold{root};     ///< what the run changes of the module besides its tensors
  at::Tensor window_loss{};          ///< only for optimizers that reevaluate
  std::size_t validation_trial = 0;  ///< validation batches to try before the first step
  std::vector<std::function<void()>> when_restored{};  ///< see FitBegin::when_restored

  /// Every checkpoint has all validations that the run keeps, so their number is bounded.
  static constexpr std::size_t most_validations = 1000;

  void add_validation(Metrics metrics);
  /// Whether the metrics of the last validation are those of the current weights.
  bool is_judged() const;

  /// Whether all processes of the run take part when it is saved, because each holds something that no other
  /// process has.
  bool saves_together() const { return whole_tensor || !places.empty(); }

  /// A policy has changed the weights outside of a step: no validation has measured them, and no
  /// save contains them.
  void weights_have_changed() { judged.micro_batch = Judged::nothing; }

  /// Combines one value of each process that trains together; with one process, the value itself.
  template <class T>
  T reduce(Quantity what, T value) {
    return others == nullptr ? value : others->reduce(what, std::move(value));
  }
  /// Whether this process writes what a run of several processes has once.
  bool is_first() const { return others == nullptr || others->is_first(); }
  Processes processes() const { return others == nullptr ? Processes{} : others->processes(); }
  /// The share of a validation's batches that this process measures.
  EqualShare measures() const { return others == nullptr ? EqualShare{} : others->measures(); }
  /// The text of the first process; all of them call it.
  std::string from_first(std::string const& text) {
    return others == nullptr ? text : others->from_first(text);
  }
  /// The texts of all processes, in their order; all of them call it.
  std::vector<std::string> texts_of_all(std::string const& text) {
    return others == nullptr ? std::vector{text} : others->texts_of_all(text);
  }

  /// Weighted mean of this epoch's losses so far; NaN before the first. May wait for a device and
  /// for other processes. Throws the LossError of a bad loss, in every process.
  double mean_loss();
  /// Reads the losses still on a device. Throws the LossError of a bad one, in every process.
  void read_losses();
  /// Throws the LossError of a bad loss, of this process or of another one.
  [[noreturn]] void refuse_bad_loss() const;
  /// Total weight of a window's losses over all processes. Throws like mean_loss().
  double window_weight(double here) {
    double const all = reduce(Quantity::window_weight, ledger.bad() ? nan : here);
    if (std::isnan(all)) refuse_bad_loss();
    return all;
  }

  /// What the optimizer updates: the parameters, or this process's parts of them.
  Parameters const& updated() const { return parts == nullptr ? parameters : parts->parameters; }

  /// Wall time of training, including that before a resume.
  double seconds() const;

  /// The place of the training data from which the run goes on.
  Cursor cursor() const { return {settings.seed, counters.epoch, counters.position}; }
  /// Whether Settings::epochs and steps leave anything to train.
  bool has_steps_left() const {
    return counters.epoch < horizon.epochs && counters.step < horizon.steps;
  }

  /// Emits a one-line recommendation, once however often it is repeated. Never throws.
  void warn(std::string const& text);

  /// The same of a warning with measurements: it takes the place of what says the same up to the first
  /// digit, as an earlier start of the run has measured it.
  void warn_measured(std::string const& text);

  /// Records an event of the run itself, for loggers.
  void record(Event event);

  /// Discards what a failed window, or the code after it, has left.
  void discard_window();

  /// Where the module begins; see ModuleSetup.
  void begin_on(c10::Device first);

  /// Training continues from a checkpoint made after `seconds` of training.
  void resume_from(Resumed from, double seconds);

  /// Saves everything but the module's own tensors and the generators: training progress, and each
  /// policy's state in its own scope.
  void persist(StateWriter& archive);
  void persist(StateReader& archive) { persist_all(archive); }
  /// The part of persist() that is no policy's.
  template <class Archive>
  void persist_progress(Archive& archive) {
    archive.scope("counters", [&](auto& inner) { counters.persist(inner); });
    archive.scope("rate", [&](auto& inner) { rate.persist(inner); });
    archive.scope("ledger", [&](auto& inner) { ledger.persist(inner); });
    status.unfinished.persist(archive);
    archive.scope("run", [&](auto& inner) { persist_record(inner); });
  }

  /// Recommendations are saved apart from the run's state, which a rollback may restore: none is
  /// repeated. On loading, those already given by this process are kept too.
  template <class Archive>
  void persist_warnings(Archive& archive) {
    if constexpr (Archive::loading) {
      std::vector<std::string> const here = std::exchange(warnings, {});
      archive("advice", warnings);
      for (std::string const& text : here) warn(text);
    } else {
      archive("advice", warnings);
    }
  }

 private:
  static constexpr double nan = std::numeric_limits<double>::quiet_NaN();

  /// Only the last validation keeps its tables: a confusion matrix takes 8 bytes for each pair of
  /// classes.
  void bound_validations();

  template <class Archive>
  void persist_train_metrics(Archive& archive) {
    if constexpr (Archive::loading) {
      if (archive.moves_to()) return;
      train_metrics = {};
      if (!archive.has("train_metrics")) return;  // nothing was measured
    } else {
      if (train_metrics.metrics.empty()) return;
    }
    archive.scope("train_metrics", [&](auto& inner) { train_metrics.persist(inner); });
  }

  template <class Archive>
  void persist_all(Archive& archive) {
    persist_progress(archive);
    archive.scope("policies", [&](auto& inner) { policies.persist(inner); });
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

  /// Saves or loads the report's data about the whole run, over all its processes.
  template <class Archive>
  void persist_record(Archive& archive) {
    persist_fixed(archive);
    archive("stopped_by", status.stopped_by);
    archive("epoch_loss", epoch_loss);
    archive("epoch_begun", status.epoch_begun);
    persist_train_metrics(archive);
    std::uint64_t count = validations.size();  // NOLINT(misc-const-correctness): loading fills it
    archive("validations", count);
    if (Archive::loading) validations.clear();
    for (std::size_t i = 0; i < count; ++i) {
      if (Archive::loading) validations.emplace_back();  // one by one: the count may be damaged
      archive.scope("validation." + std::to_string(i),
                    [&](auto& inner) { validations[i].persist(inner); });
    }
    archive.scope("judged", [&](auto& inner) { judged.persist(inner); });
  }
};

}  // namespace frugal

#ifndef FRUGAL_COMPILED
#include <frugal/core/run/run_state.ipp>
#endif
