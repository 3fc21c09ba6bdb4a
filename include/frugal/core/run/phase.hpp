// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ATen.h>
#include <c10/core/Device.h>
#include <torch/nn/module.h>

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <typeinfo>
#include <utility>
#include <vector>

#include <frugal/core/compose/recipe_facts.hpp>
#include <frugal/core/run/counters.hpp>
#include <frugal/core/run/event.hpp>
#include <frugal/core/run/processes.hpp>
#include <frugal/core/state/part.hpp>

namespace frugal {

class Gauges;
struct ParameterParts;
struct Parameters;
struct RunLimits;
class RunSnapshot;
struct RunState;
struct Settings;
class StateReader;
class StateWriter;
class TensorPlaces;
struct Validation;

namespace detail {

[[noreturn]] void refuse_class_of(torch::nn::Module const& module, std::type_info const& expected);

template <class M>
M& module_as(torch::nn::Module& module) {
  if (auto* const found = dynamic_cast<M*>(&module)) return *found;
  refuse_class_of(module, typeid(M));
}

}  // namespace detail

// The arguments of hooks. Each phase offers only what exists at that moment, so that reading the
// loss before there is one does not compile.

/// The members of every phase.
struct Phase {
  explicit Phase(RunState& run) : run_(&run) {}

  torch::nn::Module& module() const;
  /// The module as its own class, as in `module_as<NetImpl>()`. ModuleError if it is of another one.
  template <class M>
  M& module_as() const {
    return detail::module_as<M>(module());
  }
  Settings const& settings() const;
  RecipeFacts const& facts() const;
  Counters const& counters() const;
  Parameters const& parameters() const;
  /// What the optimizer updates, if these are parts of the parameters (FitRun::update_parts); null for
  /// the parameters themselves.
  ParameterParts const* parts() const;
  /// Of the parameters of the module: those of other processes (TensorPlaces).
  TensorPlaces const& places() const;
  /// Whether processes hold parts of weights: then a tensor may be without values here.
  bool has_held_parts() const;
  /// Where batches are placed now.
  c10::Device device() const;
  /// All that belongs to no policy, to read: for functions that are compiled once for all recipes.
  /// Its module and loop are those of the run: use them by way of the phase.
  RunState const& run_state() const { return *run_; }
  /// The factor by which the optimizer multiplies its learning rates.
  double learning_rate_factor() const;
  /// The first parameter group's learning rate; nothing if the optimizer tells none.
  std::optional<double> learning_rate() const;
  /// The learning rates of all parameter groups by their names; empty if there is only one.
  std::vector<std::pair<std::string, double>> group_learning_rates() const;
  /// The checkpoint from which this process went on; nothing if it began the run.
  std::optional<Resumed> const& resumed_from() const;
  /// Wall time of training, including that before a resume, and that alone.
  double seconds() const;
  double seconds_before() const;
  /// Gives the user a one-line recommendation, once. Never throws.
  void warn(std::string const& text) const;
  /// The same of what the run, as it is planned now, does not come to: a resumed run may end elsewhere.
  void warn_of_plan(std::string const& text) const;
  /// Records an event of the run itself; loggers write it with their next line.
  void record(Event event) const;
  std::vector<Event> const& events() const;
  /// Sets a named value that Progress, Log and metric sinks show from now on; see Gauges.
  void set_gauge(std::string_view name, double value) const;
  Gauges const& gauges() const;
  /// Combines one value of each process that trains together. With one process, returns the value.
  /// Every process must call it, at the same moments.
  double reduce(Quantity what, double value) const;
  at::Tensor reduce(Quantity what, at::Tensor value) const;

  /// Whether this process writes what a run of several processes (service::share) has once.
  bool is_first() const;
  /// How many there are, of such a run; otherwise one.
  Processes processes() const;
  /// In such a run: the text of the first process. Every process must call it, at the same moments.
  std::string from_first(std::string const& text) const;

  /// The texts of all processes that divide windows, in their order; of another run its own. Every
  /// process must call it, at the same moments.
  std::vector<std::string> texts_of_all(std::string const& text) const;

  /// What locks Settings::run_dir, once a policy writes there; null before.
  std::shared_ptr<void> folder_lock() const;
  /// Duration of the last checkpoint in seconds; 0 before the first.
  double save_seconds() const;

 protected:
  RunState& run() const { return *run_; }

 private:
  RunState* run_;
};

/// A moment at which a run can be saved, because all state is at rest.
struct CheckpointPhase : Phase {
  using Phase::Phase;

  using Phase::run_state;
  /// The same to change, for policies that save, restore, lock or end a run: RunState says what a
  /// member means.
  RunState& run_state();
  RunLimits const& horizon() const;
  /// The newest 1000; RunState::add_validation says what is kept.
  std::vector<Validation> const& validations() const;
  /// Loads or saves training progress and every policy's state (not the module's tensors).
  void persist(StateWriter& archive);
  void persist(StateReader& archive);
  /// Snapshots parts of the run; Part::resumable is everything that going back restores.
  void take(RunSnapshot& into, Part parts, CopyTarget copies = CopyTarget::on_host);
  /// Restores a snapshot, in `recover`, `fit_begin` or `ready`: the loop seeks the source after
  /// these. With Part::states this State is loaded too: the policy must keep aside what it has
  /// learned since.
  void restore(RunSnapshot& from);
  /// Reads the losses still on a device, so that no bad loss goes unnoticed into a snapshot or a
  /// save. Throws the LossError of a bad one, in every process if several train together.
  void read_losses();
  /// The name of the hook that was interrupted at this moment; empty if none was.
  std::string const& unfinished() const;
  /// Multiplies the schedule's factor until it is set again.
  double learning_rate_scale() const;
  void set_learning_rate_scale(double scale);
  /// Saves the run now, and returns when the checkpoint is on disk. False if the save failed and
  /// the run continues (OnFailure::Continue), or the recipe has no policy that saves. In on_step or
  /// on_epoch_end, subscribers that have not seen the event yet see it in the resumed run; the
  /// caller and those before it do not.
  [[nodiscard]] bool save();
  /// Records that the user requested the end with Ctrl-C: sets Report::interrupted, and exit_code()
  /// is 130. For on_preempt and on_fit_end.
  void interrupted_by_user();
  bool interrupted() const;
  /// Files that policies write to, and that must be durable before a checkpoint is.
  std::vector<std::filesystem::path> const& files() const;
};

}  // namespace frugal

#ifndef FRUGAL_COMPILED
#include <frugal/core/run/phase.ipp>
#endif
