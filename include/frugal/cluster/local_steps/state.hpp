// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include <frugal/cluster/communicator.hpp>
#include <frugal/cluster/local_steps/outer_optimizer.hpp>
#include <frugal/cluster/local_steps/rank_rows.hpp>
#include <frugal/cluster/replicate/state.hpp>
#include <frugal/cluster/shard/sharded_parameters.hpp>
#include <frugal/cluster/tensors/exact_sum.hpp>
#include <frugal/cluster/tensors/flat_tensors.hpp>
#include <frugal/cluster/world.hpp>
#include <frugal/core/libtorch/batch_norms.hpp>
#include <frugal/core/libtorch/finite.hpp>
#include <frugal/core/libtorch/parameters.hpp>
#include <frugal/core/libtorch/quietly.hpp>
#include <frugal/core/run/phases.hpp>
#include <frugal/core/run/services.hpp>
#include <frugal/core/run/window_phases.hpp>
#include <frugal/core/state/state_dict.hpp>
#include <frugal/core/state/state_writer.hpp>
#include <frugal/core/state/tensor_part.hpp>
#include <frugal/error.hpp>
#include <frugal/policy/kinds.hpp>

namespace frugal::detail {

/// The trained parameters twice: the weights that all processes share, which are those of the last
/// outer step, and the own ones of this process. The module has one of the two. They change places
/// without a copy.
class LocalWeights {
 public:
  /// Before the first window; the module has the shared weights.
  void begin(Parameters const& parameters);

  std::vector<std::string> const& names() const { return names_; }
  /// Whether the module has the own weights.
  bool has_own() const { return has_own_; }

  /// The module gets the own weights. `follows`: which are the shared ones so far.
  void put_own(bool follows);
  /// The module gets the shared weights.
  void put_shared() {
    if (!has_own_) return;
    require_unmoved();
    for (std::size_t i = 0; i < trained_.size(); ++i) trained_[i].set_data(shared_[i]);
    has_own_ = false;
  }

  /// Those that the module has: of the trained parameters, without a graph.
  std::vector<at::Tensor> in_module() const {
    std::vector<at::Tensor> all;
    for (at::Tensor const& each : trained_) all.push_back(each.detach());
    return all;
  }
  /// The own weights, uninitialised before there are some.
  std::vector<at::Tensor>& own() {
    allocate();
    return own_;
  }
  /// Forgets the own weights, after a fit.
  void release() { own_.clear(), shared_.clear(); }

  /// ModuleError unless these are the parameters that the run began with.
  void require_same(Parameters const& parameters) const;

 private:
  void allocate() {
    if (!own_.empty()) return;
    for (at::Tensor const& each : trained_) {
      own_.push_back(at::empty_like(each, at::TensorOptions().requires_grad(false),
                                    at::MemoryFormat::Preserve));
    }
  }

  void require_unmoved() const {
    for (std::size_t i = 0; i < trained_.size(); ++i) {
      if (trained_[i].const_data_ptr() != own_[i].const_data_ptr()) refuse_changed();
    }
  }

  [[noreturn]] static void refuse_changed();

  std::vector<std::string> names_;
  std::vector<at::Tensor> trained_;  ///< the module's
  std::vector<at::Tensor> shared_;   ///< while the module has the own ones
  std::vector<at::Tensor> own_;
  bool has_own_ = false;
};

/// How much each process has trained since the last outer step: the weights of its losses, which all
/// processes know of all.
class LocalRound {
 public:
  LocalRound(std::size_t processes, std::size_t micro_batches)
      : each_(micro_batches), round_(processes), window_(processes) {}

  /// The losses of a window, of `micro_batches` for each process but the last ones.
  void set_window(std::vector<MicroBatchRecord> const& records) {
    std::fill(window_.begin(), window_.end(), 0.0);
    for (std::size_t i = 0; i < records.size(); ++i) window_[i / each_] += records[i].weight;
  }
  double in_window(int rank) const { return window_[static_cast<std::size_t>(rank)]; }
  double in_window() const { return sum(window_); }

  /// The window was a step.
  void count_window() {
    for (std::size_t rank = 0; rank < round_.size(); ++rank) round_[rank] += window_[rank];
  }
  /// Whether processes have weights of their own.
  bool is_open() const { return is_open(round_); }
  void close() { std::fill(round_.begin(), round_.end(), 0.0); }

  /// To save and to load; one number for each process.
  std::vector<double>& weights() { return round_; }
  static bool is_open(std::vector<double> const& weights) {
    return std::any_of(weights.begin(), weights.end(), [](double each) { return each != 0; });
  }
  /// What the weights of each process count for in the mean.
  static std::vector<double> shares_of(std::vector<double> weights) {
    double const all = sum(weights);
    for (double& each : weights) each /= all;
    return weights;
  }

 private:
  static double sum(std::vector<double> const& weights) {
    return std::accumulate(weights.begin(), weights.end(), 0.0);
  }

  std::size_t each_;
  std::vector<double> round_, window_;
};

/// A window's gradients, of this process's micro-batches alone, added up in the order of
/// Replicate<Exact> in one process.
class LocalGradients {
 public:
  /// Of this process alone: in a window the weights differ.
  static constexpr bool are_local = true;

  explicit LocalGradients(Communicator& all) : all_(all), alone_({}, World{}), own_(alone_) {}

  void begin(std::vector<at::Tensor> const& parameters, ShardedParameters const* sharded) {
    own_.begin(parameters, sharded);
  }
  void before(bool is_last, double const& unit) { own_.before(is_last, unit); }
  void after() { own_.after(); }
  void begin_rest() { own_.begin_rest(); }
  /// The one message of a step: gradients stay here.
  at::Tensor exchange(at::Tensor const& message) {
    return all_.gather(message, "the losses of a step", /*after_tensors=*/true);
  }
  std::vector<bool> const& has() const { return own_.has(); }

  /// Undefined where this process has no gradient, whatever the others have.
  std::vector<at::Tensor> sum(std::vector<bool> const&);
  /// No option divides them.
  std::vector<at::Tensor> own_sum(std::vector<bool> const& counts, ShardedParameters&) {
    return sum(counts);
  }

 private:
  Communicator& all_;
  Communicator alone_;
  ExactGradients own_;
};

/// The State of Replicate<LocalSteps<H>, ...>. A round is H steps; it begins after each step that is a
/// multiple of H.
///
/// The module has the shared weights except while a window is trained: whoever looks at it between two
/// windows sees those of the last outer step, which are the same in all processes.
template <class Context, class OuterRule>
class LocalStepsState : public ReplicateState<Context, LocalGradients, false> {
  using Base = ReplicateState<Context, LocalGradients, false>;
  // What processes come to by gradients of their own.
  static constexpr std::string_view own_kinds[] = {kinds::clip::name, kinds::optimizer::name};

 public:
  LocalStepsState(Communicator& all, MicroBatches own, OuterRule const& rule, std::uint64_t steps)
      : Base(all, own, "Replicate<LocalSteps>", {}),
        steps_(steps),
        rule_(rule),
        outer_(rule),
        round_(static_cast<std::size_t>(all.size()), own.count) {}

  template <class Next>
  void around_fit(FitRun& phase, Next&& next) {
    struct Left {
      LocalStepsState& state;
      ~Left() {
        quietly([this] { state.weights_.put_shared(); });
        state.weights_.release();
      }
    } const left{*this};
    Base::around_fit(phase, [&] {
      // Each process holds weights and moments of its own, so all of them take part in a save.
      if (this->all_.size() > 1) {
        phase.run_state().together.whole_tensor = [](at::Tensor const& mine, TensorPart const&) {
          return mine;
        };
      }
      next();
      weights_.put_shared();
    });
  }

  void on_fit_begin(FitBegin& phase) {
    refuse_batch_norm(base_module(phase.module()));
    rule_.check();
    phase.compare_in_processes("Replicate<LocalSteps>::steps", static_cast<double>(steps_));
    rule_.compare([&](char const* name, double value) { phase.compare_in_processes(name, value); });
    run_ = &phase.run_state();
    weights_.begin(phase.parameters());
    phase.when_restored([this] { end_early(); });
    Base::on_fit_begin(phase);
  }

  template <class Next>
  void around_micro_batch(MicroBatchRun const& phase, Next&& next) {
    if (phase.first) begin_window(phase);
    Base::around_micro_batch(phase, std::forward<Next>(next));
  }

  /// Takes this process's gradients to the mean of its own micro-batches.
  void join(SharedWindow& phase) {
    begin_window(phase);  // it may have had no micro-batch
    Base::join(phase);
    round_.set_window(phase.records);
    double const all = round_.in_window();
    double const own = round_.in_window(this->all_.rank());
    if (own == 0 || own == all) return;
    at::NoGradGuard const no_gradients;
    std::vector<at::Tensor> gradients;
    for (at::Tensor const& each : phase.parameters().tensors) {
      if (each.grad().defined()) gradients.push_back(each.grad());
    }
    // The loop divides by the weight of all.
    if (!gradients.empty()) at::_foreach_mul_(gradients, all / own);
  }

  /// After the optimizer.
  void on_update(Update& phase) {
    if (!weights_.has_own()) return;  // of a trial
    RunState const& run = phase.run_state();
    if (run.window.skips_step()) return weights_.put_shared();
    round_.count_window();
    std::uint64_t const step = run.counters().step + 1;
    // The run's last step ends its round: validations and checkpoints have the final weights.
    bool const is_last =
        run.progress.horizon().total_steps && step == *run.progress.horizon().total_steps;
    if (step % steps_ == 0 || is_last) {
      end_round();
    } else {
      weights_.put_shared();
    }
  }

  void on_epoch_end(EpochEnd& phase) {
    // The number of steps was not known before, or windows were skipped.
    if (round_.is_open() && !phase.run_state().progress.has_steps_left()) {
      weights_.put_own(false);
      end_round();
    }
  }

  void on_validated(Validated& phase) {
    if (!round_.is_open()) return;
    phase.warn(
        "Replicate<LocalSteps>: a validation in the middle of a round measures the weights of the "
        "last outer step; a cadence that is a multiple of LocalSteps measures the newest");
  }

  void on_fit_end(FitEnd& phase) {
    if (round_.is_open() && !phase.preempted()) {
      weights_.put_own(false);
      end_round();
    }
    Base::on_fit_end(phase);
  }

  template <class Archive>
  void persist(Archive& archive) {
    if (run_ == nullptr) return;
    outer_.persist(archive, weights_.names());
    if constexpr (Archive::loading) {
      load(archive);
    } else {
      save(archive);
    }
  }

 private:
  static void refuse_batch_norm(torch::nn::Module& module) {
    bool found = has_compiled_batch_norms(module);
    each_batch_norm(module, [&](auto const& layer) { found = found || layer.is_training(); });
    if (!found) return;
    throw ModuleError({.what = "the module has BatchNorm in training",
                       .where = "Replicate<LocalSteps>",
                       .why =
                           "in the middle of a round its statistics are of weights that no other "
                           "process has, and the module has those of the last outer step",
                       .fix = "Use LayerNorm or GroupNorm, or put the layer in evaluation mode."});
  }

  void begin_window(Phase const& phase) {
    if (weights_.has_own()) return;
    weights_.require_same(phase.parameters());
    weights_.put_own(/*follows=*/!round_.is_open());
  }

  /// The outer step. The module has the own weights, and gets the shared ones.
  void end_round() {
    at::NoGradGuard const no_gradients;
    std::vector<double> const shares = LocalRound::shares_of(round_.weights());
    std::vector<at::Tensor> mean = weights_.in_module();
    for (at::Tensor& each : mean) {
      each = times(each, shares[static_cast<std::size_t>(this->all_.rank())]);
    }
    ExactSum sum(this->all_);
    if (this->all_.size() > 1) {
      std::vector<bool> counts;
      for (double const share : shares) counts.push_back(share != 0);
      bool const adds = counts[static_cast<std::size_t>(this->all_.rank())];
      sum.start(mean, adds ? mean : std::vector<at::Tensor>());
      mean = sum.sum(counts);
    }
    weights_.put_shared();
    if (this->saved_) compare_replicas();
    step_outer(mean);
  }
  /// What the processes have in common changes in outer steps alone.
  void compare_replicas() {
    this->replicas_.compare(
        this->all_, *run_, *std::exchange(this->saved_, {}),
        {.name = "momentum of the outer steps",
         .write = [this](StateWriter& writer) { outer_.persist(writer, weights_.names()); }});
  }
  void step_outer(std::vector<at::Tensor> const& mean) {
    outer_.step(weights_.in_module(), mean);
    round_.close();
    // Not always within a step: at an epoch's end, and on a resume by other processes.
    run_->observed.weights_have_changed();
  }

  static at::Tensor times(at::Tensor const& weights, double share) {
    return weights.to(type_of_sums(weights)) * share;
  }

  // ---- checkpoints ------------------------------------------------------------------------------

  static std::string row_name(std::size_t rank) { return "rank." + std::to_string(rank); }

  template <class Archive>
  void save(Archive& archive) {
    bool has_rows = false;
    if constexpr (std::is_same_v<Archive, StateWriter>) has_rows = static_cast<bool>(archive.whole);
    archive("in_round", round_.weights());
    archive("has_rows", has_rows);
    auto const row = static_cast<std::size_t>(this->all_.rank());
    if constexpr (std::is_same_v<Archive, StateWriter>) {
      if (has_rows) save_rows(archive);
      if (has_rows && row != 0) return;
    }
    if (!round_.is_open()) return;
    if (!has_rows) require_finite(row);
    if constexpr (std::is_same_v<Archive, StateWriter>) mark_row(archive, row);
    in_row(archive, row, [&](auto& inner) { persist_weights(inner); });
  }

  /// As collect_rows() of the weights that travel.
  void require_finite(std::size_t row) {
    if (auto const bad = first_non_finite(weights_.own())) {
      refuse_row(row, "weights/" + weights_.names()[*bad], run_->counters());
    }
  }

  /// A row of each process. The first one's moments are where a single process would have them.
  void save_rows(StateWriter& archive) {
    StateDict mine;
    StateWriter writer(mine, CopyTarget::live);
    if (round_.is_open()) persist_weights(writer);
    for (std::string_view const kind : own_kinds) run_->links.policies().persist_one(writer, kind);
    std::size_t marked = 0;
    auto const mark = [&](std::size_t rank) {
      if (std::exchange(marked, rank) != rank) mark_row(archive, rank);
    };
    collect_rows(
        this->all_, mine, run_->counters(), run_->settings.run_dir,
        [&](std::size_t rank, std::string const& path, StateDict::Value const& value) {
          mark(rank);
          auto const put = [&]<class T>(T const& each) {
            in_row(archive, rank, [&](auto& inner) {
              if constexpr (std::is_same_v<T, std::monostate>) {
                inner(path, at::Tensor());
              } else {
                inner(path, each);
              }
            });
          };
          std::visit(put, value);
        },
        [&](std::size_t rank, std::string const& path, at::Tensor const& tensor) {
          mark(rank);
          in_row(archive, rank, [&](auto& inner) { inner.give(path, tensor); });
        });
  }

  template <class Archive>
  void load(Archive& archive) {
    std::vector<double> saved;
    bool has_rows = false;
    archive("in_round", saved);
    archive("has_rows", has_rows);
    if (saved.empty()) {
      throw StateError({.what = "a saved state of Replicate is of no process",
                        .where = "Replicate<LocalSteps>",
                        .why = "it has no weight for any",
                        .fix = "Use another checkpoint."});
    }
    // Where they are not as many as those that have saved, several go on with the same moments.
    std::size_t const rank = static_cast<std::size_t>(this->all_.rank()) % saved.size();
    if (has_rows && rank != 0) {
      in_row(archive, rank, [&](auto& inner) {
        for (std::string_view const kind : own_kinds)
          run_->links.policies().persist_one(inner, kind);
      });
    }
    early_.clear();
    if (saved.size() == round_.weights().size()) {
      round_.weights() = saved;
      if (round_.is_open()) in_row(archive, rank, [&](auto& inner) { persist_weights(inner); });
    } else {
      round_.close();
      if (LocalRound::is_open(saved)) load_mean(archive, saved);
    }
  }
  /// Of the weights of all processes that have saved them, one parameter at a time.
  template <class Archive>
  void load_mean(Archive& archive, std::vector<double> const& saved) {
    at::NoGradGuard const no_gradients;
    std::vector<double> const shares = LocalRound::shares_of(saved);
    for (std::size_t i = 0; i < weights_.names().size(); ++i) {
      PairwiseSum tree;
      for (std::size_t row = 0; row < saved.size(); ++row) {
        at::Tensor& weight = weights_.own()[i];
        in_row(archive, row, [&](auto& inner) { persist_weight(inner, i, weight); });
        if (shares[row] == 0) {
          tree.add_nothing();
        } else {
          tree.add({times(weight, shares[row]).clone()});
        }
      }
      early_.push_back(tree.take().front());
    }
  }
  /// Other processes go on with the round of those that have saved it: it ends where they were.
  void end_early() {
    if (early_.empty()) return;
    step_outer(early_);
    early_.clear();
    run_->warn(
        "Replicate<LocalSteps>: the checkpoint is of the middle of a round of another number "
        "of processes; the round has ended there, with an outer step");
  }

  template <class Archive, class Body>
  static void in_row(Archive& archive, std::size_t rank, Body&& body) {
    archive.scope(row_name(rank), body);
  }
  /// Others need not read this row.
  static void mark_row(StateWriter& archive, std::size_t rank) {
    in_row(archive, rank, [](auto& inner) { inner("dispensable", true); });
  }
  template <class Archive>
  void persist_weights(Archive& archive) {
    for (std::size_t i = 0; i < weights_.names().size(); ++i) {
      persist_weight(archive, i, weights_.own()[i]);
    }
  }
  template <class Archive>
  void persist_weight(Archive& archive, std::size_t i, at::Tensor& weight) const {
    archive.scope("weights", [&](auto& inner) { inner(weights_.names()[i], weight); });
  }

  std::uint64_t steps_;
  OuterRule rule_;
  OuterOptimizer<OuterRule> outer_;
  LocalWeights weights_;
  RunState* run_ = nullptr;
  LocalRound round_;
  std::vector<at::Tensor> early_;  ///< the mean of a round that ends where it was saved
};

}  // namespace frugal::detail

#ifndef FRUGAL_COMPILED
#include <frugal/cluster/local_steps/state.ipp>
#endif
