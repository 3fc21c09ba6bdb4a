// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/core/compose/about.hpp>
#include <frugal/core/compose/composition.hpp>
#include <frugal/core/compose/outcome.hpp>
#include <frugal/core/compose/policy.hpp>
#include <frugal/core/libtorch/batch_norms.hpp>
#include <frugal/core/libtorch/layer_tensors.hpp>
#include <frugal/core/libtorch/module_hold.hpp>
#include <frugal/core/libtorch/parameters.hpp>
#include <frugal/core/libtorch/quietly.hpp>
#include <frugal/core/run/failure.hpp>
#include <frugal/core/run/forward_batch.hpp>
#include <frugal/core/run/judged.hpp>
#include <frugal/core/run/phases.hpp>
#include <frugal/core/run/run_state.hpp>
#include <frugal/core/source/batch.hpp>
#include <frugal/core/source/range.hpp>
#include <frugal/core/source/source.hpp>
#include <frugal/core/state/cut_tensors.hpp>
#include <frugal/data/refused_source.hpp>
#include <frugal/policy/average/rules.hpp>
#include <frugal/policy/average/weights.hpp>
#include <frugal/policy/kinds.hpp>

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace frugal {

namespace detail {

/// For its lifetime, resets the statistics of the BatchNorm layers that update them, and accumulates
/// them as the plain mean over batches. After ModuleHold::train(): a layer that is frozen, or that is in
/// evaluation mode while the module is not, computes with those that it has.
class [[nodiscard]] FreshStatistics {
 public:
  explicit FreshStatistics(torch::nn::Module& module);
  FreshStatistics(FreshStatistics const&) = delete;
  FreshStatistics& operator=(FreshStatistics const&) = delete;
  ~FreshStatistics();
  /// Restores the previous statistics; may throw, because copying to a device may.
  void undo();
  /// Restores those of layers that no pass has called: nothing is known of their inputs.
  void undo_unseen();
  bool empty() const { return before_.empty(); }

 private:
  struct Before {
    torch::nn::Module* layer;
    at::Tensor mean, variance, batches;
    std::optional<double> momentum;
  };

  template <class Layer>
  static void restore(Layer& layer, Before const& each) {
    layer.running_mean.copy_(each.mean);
    layer.running_var.copy_(each.variance);
    layer.num_batches_tracked.copy_(each.batches);
  }
  template <class Use>
  void each_layer(Use const& use) {
    for (Before const& each : before_) {
      each_batch_norm(*each.layer, [&](auto& layer) { use(layer, each); });
    }
  }

  std::vector<Before> before_;
};

[[noreturn]] void refuse_cadence_in_graph();

/// Applies the module to a batch's data.
struct ForwardData {
  template <class Module, HasData B>
  void operator()(Module& module, B const& batch) const {
    forward_batch(module, batch);
  }
};

}  // namespace detail

/// Recomputes the running statistics of every BatchNorm layer of a module for its current weights:
/// the mean over the batches of a source, in training mode and without gradients. Averaged weights
/// need this, because averaged statistics are not the statistics of the averaged weights. Frozen layers
/// (Freeze) keep theirs, and so do those that are in evaluation mode while the module is in training mode,
/// and those that no pass calls.
///
/// `pass(module, batch)` runs the module on a batch; an objective works too. Restores modes and
/// momenta; if something throws, the statistics too. EmptySourceError for a source without a batch.
/// Values as torch.optim.swa_utils.update_bn.
template <class Module, class Data, class Pass = detail::ForwardData>
void update_batch_norm(Module& module, Data&& data, Pass&& pass = {}) {
  auto&& source = as_source(std::forward<Data>(data));
  torch::nn::Module& base = base_module(module);
  at::NoGradGuard const no_gradients;
  detail::ModuleHold hold(base);
  hold.train();
  detail::FreshStatistics fresh(base);
  if (fresh.empty()) return;
  c10::Device const device = detail::device_of_tensors(base);
  bool any = false;
  try {
    source.seek(Cursor{});
    while (auto batch = source.next()) {
      batch_to(*batch, device);
      pass(module, std::as_const(*batch));
      any = true;
    }
    if (!any) detail::refuse_empty_source("batch-norm", 0);
    fresh.undo_unseen();
  } catch (...) {
    detail::quietly([&] { fresh.undo(); });
    throw;
  }
}

/// Keeps an average of the weights: an exponential moving average (EMA), or from some step on their
/// mean (SWA).
///
/// Lever   runs to convergence: the average of the last steps is close to where a lower learning
///         rate would have taken the weights, at no extra training.
/// Cost    memory for a second copy of the parameters, in FP32 of those of 16 bits; at its cadence
///         one grouped operator, no host sync. A validation with the averages exchanges pointers,
///         and copies nothing but weights of 16 bits. The end of the run copies the averages into
///         the module.
/// State   the averages and the number of weights in them; they survive a resume. A checkpoint has
///         them in averaged.safetensors, a state dict of the whole module.
/// Errors  a decay that is not between 0 and 1 does not compile, or throws SettingsError if it is
///         given at run time. weights() throws StateError if there is no average.
/// Source  Polyak and Juditsky, "Acceleration of stochastic approximation by averaging" (1992);
///         Izmailov et al., "Averaging weights leads to wider optima and better generalization"
///         (2018). Values as torch.optim.swa_utils.AveragedModel with get_ema_multi_avg_fn and
///         get_swa_multi_avg_fn: the first update takes the weights as they are.
///
/// Averages parameters only: a validation, and weights(), use the module's own buffers.
///
/// The module has the trained weights during the run, and at its end the weights that validations
/// have measured: see at_end.
template <class Rule = Ema<>>
struct Average {
  static_assert(AverageRule<Rule>,
                "frugal: Average<...>: unknown rule. Options: Ema<decay>, Swa<From<N, Epoch>>, or "
                "an AverageRule of your own.");
  using kind = kinds::average;
  using listens = list<around::fit, on::fit_begin, on::update, on::step, around::validate,
                       on::epoch_end, on::fit_end>;
  // The average that is validated includes this step.
  using after = list<kinds::optimizer>;

  static constexpr About about{Term::runs_to_convergence,
                               "the parameters once more, and one operator at its cadence"};
  // works_on_parts: it reads the weights, after they are collected.
  using properties =
      list<property::capturable, property::works_on_parts, property::adds_no_metrics>;

  Rule rule{};
  bool validate = true;  ///< validate the averaged weights once there are some; otherwise the
                         ///< trained ones
  /// The weights in the module when the run has ended; weights() has the averages in any case. The
  /// best weights of EarlyStop take precedence. After a preemption always the trained ones.
  Weights at_end = Weights::validated;
  Outcome<AveragedWeights> averaged{};  ///< set by fit

  /// The averaged weights of the last completed fit.
  AveragedWeights const& weights() const {
    if (AveragedWeights const* const found = averaged.get()) return *found;
    throw StateError({.what = "there are no averaged weights",
                      .where = "Average::weights",
                      .why = "no fit has ended, or the last one ended before its first average",
                      .fix = "Call fit first, and choose a start of Swa within the run."});
  }
  /// Copies the averaged weights into a module:
  /// `trainer.policy<kinds::average>().copy_into(trainer.module())`.
  template <class Module>
  void copy_into(Module& module) const {
    weights().copy_into(module);
  }

  /// What a run of this length does not come to; empty if there is nothing to say.
  std::string outlook(RunLimits const& horizon) const {
    if constexpr (requires { rule.outlook(horizon); }) return rule.outlook(horizon);
    return {};
  }

  template <class Context>
  class State;
};

template <class Rule>
template <class Context>
class Average<Rule>::State {
  using Cadence = typename Rule::cadence;
  // CudaGraph can only capture work that is the same in every step. Whether FP16 skips a step is
  // decided on the host.
  using precision = detail::slot_of<kinds::precision, typename Context::policies>;
  static constexpr bool within_step =
      captures_steps<typename Context::policies> && std::same_as<Cadence, Every<1>> &&
      requires { Rule::steady; } && !requires(precision const& each) { each.scaling; };

 public:
  explicit State(Average const& settings)
      : rule_(settings.rule),
        validate_(settings.validate),
        at_end_(settings.at_end),
        averaged_(&settings.averaged) {
    if constexpr (requires { settings.rule.every; }) every_ = settings.rule.every;
  }

  /// After the last save, so that a finished run with more epochs continues from the trained
  /// weights.
  template <class Next>
  void around_fit(FitRun& phase, Next&& next) {
    next();
    bool const wanted =
        at_end_ == Weights::averaged || (at_end_ == Weights::validated && validate_);
    if (!wanted || taken_ == 0 || phase.preempted() || phase.restored_step()) return;
    at::NoGradGuard const no_gradients;
    at::_foreach_copy_(parameters_, averages_);  // rounds those in FP32
  }

  void on_fit_begin(FitBegin& phase) {
    rule_.check();
    if constexpr (within_step) {
      if (every_.count() != 1) detail::refuse_cadence_in_graph();
    }
    if constexpr (requires { rule_.outlook(phase.horizon()); }) {
      std::string const text = rule_.outlook(phase.horizon());
      if (!text.empty()) phase.warn_of_plan("Average: " + text);
    }
    detail::compare_numbers(phase, "Average::rule.", rule_);
    averaged_->clear();
    run_ = &phase.run_state();
    Parameters const& all = phase.parameters();
    for (std::size_t i = 0; i < all.size(); ++i) {
      // Integers have no mean of their own type, so they are not averaged.
      if (detail::type_of_average(all.tensors[i]) == at::ScalarType::Undefined) continue;
      widens_ = widens_ || detail::type_of_average(all.tensors[i]) != all.tensors[i].scalar_type();
      names_.push_back(all.names[i]);
      parameters_.push_back(all.tensors[i]);
    }
  }

  void on_update(Update& phase) {
    if constexpr (within_step) {
      average();
      phase.on_host([this](Update&) { count(taken_ + 1); });
    }
  }

  void on_step(Step& phase) {
    if constexpr (!Cadence::per_epoch && !within_step) {
      if (every_.due_at_step(phase.counters())) take(phase.counters());
    }
  }
  void on_epoch_end(EpochEnd& phase) {
    if (every_.due_at_epoch_end(phase.counters())) take(phase.counters());
  }

  template <class Next>
  Metrics around_validate(ValidationRun const&, Next&& next) {
    detail::Lent lent(parameters_);
    if (validate_ && taken_ != 0) lent.lend(widens_ ? as(parameters_, averages_) : averages_);
    return next();
  }

  void on_fit_end(FitEnd& phase) {
    if (taken_ == 0) {
      phase.warn("Average: the run ended before the first average");
      return;
    }
    AveragedWeights found{.tensors = {}, .taken = taken_};
    for (std::size_t i = 0; i < names_.size(); ++i) found.tensors.emplace(names_[i], averages_[i]);
    torch::nn::Module& module = base_module(phase.module());
    auto const add = [&](std::string const& name, at::Tensor const& tensor) {
      if (!found.tensors.contains(name)) found.tensors.emplace(name, tensor.detach().clone());
    };
    Parameters const& all = phase.parameters();
    for (std::size_t i = 0; i < all.size(); ++i) add(all.names[i], all.tensors[i]);
    for (auto const& item : module.named_buffers()) {
      if (item.value().defined()) add(item.key(), item.value());
    }
    averaged_->set(std::move(found));
  }

  template <class Archive>
  void persist(Archive& archive) {
    archive("taken", taken_);
    if (Archive::loading) count(taken_);
    if (taken_ == 0) return;
    if (Archive::loading) make_room();
    // Checkpoint writes them to a file of their own: see detail::averages_path.
    archive.scope("weights", [&](auto& inner) {
      for (std::size_t i = 0; i < names_.size(); ++i) {
        if (auto const part = part_of(parameters_[i])) {
          inner.part(names_[i], averages_[i], *part);
        } else {
          inner(names_[i], averages_[i]);
        }
      }
    });
  }

 private:
  [[no_unique_address]] Cadence every_{};

  void take(Counters const& now) {
    if (!rule_.begun(now)) return;
    average();
    count(taken_ + 1);
  }

  void count(std::uint64_t taken) {
    taken_ = taken;
    // A dry run loads before there is a run.
    if (run_ != nullptr) run_->observed.set_averaged(validate_ ? taken : 0);
  }

  void average() {
    at::NoGradGuard const no_gradients;
    if (taken_ == 0) {
      make_room();
      at::_foreach_copy_(averages_, parameters_);
    } else if (widens_) {
      at::_foreach_lerp_(averages_, as(averages_, parameters_), rule_.weight(taken_));
    } else {
      at::_foreach_lerp_(averages_, parameters_, rule_.weight(taken_));
    }
  }
  /// `from` in the types of `types`.
  static std::vector<at::Tensor> as(std::vector<at::Tensor> const& types,
                                    std::vector<at::Tensor> const& from) {
    std::vector<at::Tensor> all;
    all.reserve(from.size());
    for (std::size_t i = 0; i < from.size(); ++i) {
      all.push_back(from[i].detach().to(types[i].scalar_type()));
    }
    return all;
  }

  void make_room() {
    if (!averages_.empty()) return;
    averages_.reserve(parameters_.size());
    for (at::Tensor const& parameter : parameters_) {
      averages_.push_back(at::empty_like(
          parameter,
          at::TensorOptions().dtype(detail::type_of_average(parameter)).requires_grad(false),
          at::MemoryFormat::Preserve));
    }
  }

  Rule rule_;
  bool validate_;
  Weights at_end_;
  RunState* run_ = nullptr;
  Outcome<AveragedWeights> const* averaged_;
  std::vector<std::string> names_;
  std::vector<at::Tensor> parameters_;
  std::vector<at::Tensor> averages_;
  bool widens_ = false;  ///< an average has more bits than its parameter
  std::uint64_t taken_ = 0;
};

}  // namespace frugal

#ifndef FRUGAL_COMPILED
#include <frugal/policy/average.ipp>
#endif
