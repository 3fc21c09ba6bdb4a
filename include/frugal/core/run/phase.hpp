// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ATen.h>

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <frugal/core/run/interfaces.hpp>
#include <frugal/core/run/run_state.hpp>
#include <frugal/core/run/services.hpp>
#include <frugal/core/state/snapshot.hpp>

namespace frugal {

/// A run at one moment, for a policy that returns to it; see CheckpointPhase::take.
using RunSnapshot = Snapshot<RunState>;

// The arguments of hooks. Each phase offers only what exists at that moment, so that reading the
// loss before there is one does not compile.

/// The members of every phase.
struct Phase {
  explicit Phase(RunState& run) : run_(&run) {}

  torch::nn::Module& module() const { return run_->root; }
  /// The module as its own class, as in `module_as<NetImpl>()`. ModuleError if it is of another one.
  template <class M>
  M& module_as() const {
    return detail::module_as<M>(run_->root);
  }
  Settings const& settings() const { return run_->settings; }
  RecipeFacts const& facts() const { return run_->facts; }
  Counters const& counters() const { return run_->counters; }
  Parameters const& parameters() const { return run_->parameters; }
  /// What the optimizer updates, if these are parts of the parameters (FitRun::update_parts); null for
  /// the parameters themselves.
  ParameterParts const* parts() const { return run_->parts; }
  /// All that belongs to no policy, to read: for functions that are compiled once for all recipes.
  /// Its module and loop are those of the run: use them by way of the phase.
  RunState const& run_state() const { return *run_; }
  /// The factor by which the optimizer multiplies its learning rates.
  double learning_rate_factor() const { return run_->rate.factor * run_->rate.scale; }
  /// The first parameter group's learning rate; nothing if the optimizer tells none.
  std::optional<double> learning_rate() const { return run_->rate.first(); }
  /// The learning rates of all parameter groups by their names; empty if there is only one.
  std::vector<std::pair<std::string, double>> group_learning_rates() const {
    return run_->rate.each();
  }
  /// Wall time of training, including that before a resume.
  double seconds() const { return run_->seconds(); }
  /// Gives the user a one-line recommendation, once. Never throws.
  void warn(std::string const& text) const { run_->warn(text); }
  /// Records an event of the run itself; loggers write it with their next line.
  void record(Event event) const { run_->record(std::move(event)); }
  std::vector<Event> const& events() const { return run_->events; }
  /// Sets a named value that Progress, Log and metric sinks show from now on; see Gauges.
  void set_gauge(std::string_view name, double value) const { run_->gauges.set(name, value); }
  Gauges const& gauges() const { return run_->gauges; }
  /// Combines one value of each process that trains together. With one process, returns the value.
  /// Every process must call it, at the same moments.
  template <class T>
  T reduce(Quantity what, T value) const {
    return run_->reduce(what, std::move(value));
  }

  /// Whether this process writes what a run of several processes (service::share) has once.
  bool is_first() const { return run_->is_first(); }
  /// How many there are, of such a run; otherwise one.
  Processes processes() const { return run_->processes(); }
  /// In such a run: the text of the first process. Every process must call it, at the same moments.
  std::string from_first(std::string const& text) const { return run_->from_first(text); }

  /// The texts of all processes that divide windows, in their order; of another run its own. Every
  /// process must call it, at the same moments.
  std::vector<std::string> texts_of_all(std::string const& text) const {
    return run_->texts_of_all(text);
  }

  /// Duration of the last checkpoint in seconds; 0 before the first.
  double save_seconds() const { return run_->saver == nullptr ? 0 : run_->saver->save_seconds(); }

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
  RunState& run_state() { return this->run(); }
  RunLimits const& horizon() const { return this->run().horizon; }
  /// The newest 1000; RunState::add_validation says what is kept.
  std::vector<Validation> const& validations() const { return this->run().validations; }
  /// Loads or saves training progress and every policy's state (not the module's tensors).
  void persist(StateWriter& archive) {
    read_losses();
    this->run().persist(archive);
  }
  void persist(StateReader& archive) { this->run().persist(archive); }
  /// Snapshots parts of the run; Part::resumable is everything that going back restores.
  void take(RunSnapshot& into, Part parts, CopyTarget copies = CopyTarget::on_host) {
    if (holds(parts, Part::states)) read_losses();
    into.take(this->run(), parts, copies);
  }
  /// Restores a snapshot, in `recover`, `fit_begin` or `ready`: the loop seeks the source after
  /// these. With Part::states this State is loaded too: the policy must keep aside what it has
  /// learned since.
  void restore(RunSnapshot& from) { from.restore(this->run()); }
  /// Reads the losses still on a device, so that no bad loss goes unnoticed into a snapshot or a
  /// save. Throws the LossError of a bad one, in every process if several train together.
  void read_losses() { this->run().read_losses(); }
  /// The name of the hook that was interrupted at this moment; empty if none was.
  std::string const& unfinished() const { return this->run().status.unfinished.hook; }
  /// Multiplies the schedule's factor until it is set again.
  double learning_rate_scale() const { return this->run().rate.scale; }
  void set_learning_rate_scale(double scale) { this->run().rate.scale = scale; }
  /// Saves the run now, and returns when the checkpoint is on disk. False if the save failed and
  /// the run continues (OnFailure::Continue), or the recipe has no policy that saves. In on_step or
  /// on_epoch_end, subscribers that have not seen the event yet see it in the resumed run; the
  /// caller and those before it do not.
  [[nodiscard]] bool save() {
    RunState& run = this->run();
    if (run.saver == nullptr) return false;
    if (!run.status.current_hook.empty()) {
      run.status.unfinished = {std::string(run.status.current_hook),
                               run.policies.names_of_first(run.status.current_subscriber + 1)};
    }
    bool const saved = run.saver->save(*this);
    if (!run.status.current_hook.empty()) run.status.unfinished = {};
    run.status.saved(saved);
    return saved;
  }
  /// Records that the user requested the end with Ctrl-C: sets Report::interrupted, and exit_code()
  /// is 130. For on_preempt and on_fit_end.
  void interrupted_by_user() { this->run().status.interrupted_by_user(); }
  bool interrupted() const { return this->run().status.interrupted; }
  /// Files that policies write to, and that must be durable before a checkpoint is.
  std::vector<std::filesystem::path> const& files() const { return this->run().files; }
};

}  // namespace frugal
