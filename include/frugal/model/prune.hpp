// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <frugal/core/compose/about.hpp>
#include <frugal/core/compose/diagnostic.hpp>
#include <frugal/core/compose/options.hpp>
#include <frugal/core/compose/outcome.hpp>
#include <frugal/core/compose/policy.hpp>
#include <frugal/core/run/phases.hpp>
#include <frugal/error.hpp>
#include <frugal/model/masked_weights.hpp>
#include <frugal/policy/average/rules.hpp>
#include <frugal/policy/kinds.hpp>
#include <frugal/policy/options.hpp>

namespace frugal {

namespace detail {

FRUGAL_DIAGNOSTIC(
    prune_with_average,
    "frugal: Prune changes its masks during this run, and an average keeps a share of "
    "weights from before they were pruned: it would not be sparse. Prune when the run "
    "begins, without From, Cubic and Movement, or remove Average.");

FRUGAL_DIAGNOSTIC(
    prune_with_lora,
    "frugal: Lora fixes the weights that Prune would mask. Prune in a run without Lora, or name "
    "what AlsoTrain trains: Prune<..., Where<\"head.*\">>.");

void require_sparsity(double sparsity);

}  // namespace detail

/// Which weights a run has pruned.
struct PrunedWeights {
  std::map<std::string, at::Tensor> masks;  ///< by parameter; of bool, true is kept
  double sparsity = 0;                      ///< share of pruned elements of these parameters
};

/// Sets weights to zero, by a rule, and keeps them there.
///
/// Lever   bytes at rest: a pruned model compresses well, and 2 of 4 is what sparse tensor cores
///         multiply. On a CPU dense kernels multiply zeros as well: for speed see prune_structured.
/// Cost    two products with the masks per step (gradients, weights), and a byte per weight;
///         Movement one more tensor of the weights' size, in FP32 of those of 16 bits, and two operators
///         per step.
/// State   the masks, as bits, and Movement's scores; they survive a resume.
/// Errors  SettingsError for a pattern that matches nothing, a module without layers to prune, a
///         sparsity out of range, inputs that are no multiple of M in NofM<N, M>.
/// Source  Han et al., "Learning both weights and connections" (2015); Zhu and Gupta, "To prune, or
///         not to prune" (2017); Sanh, Wolf and Rush, "Movement pruning" (2020). Masks as
///         torch.nn.utils.prune and torch.ao.pruning.
///
///     Prune<Magnitude, Sparsity<0.9>>                                      // when the run begins
///     Prune<Magnitude, Sparsity<0.9>, From<200>, Cubic<1000>, Every<50>>   // step 200 to 1200
///     Prune<Movement, Sparsity<0.85>, Cubic<1000>, Global>
///     Prune<NofM<2, 4>, Where<"encoder.*">>
///
/// The weights are masked after each update, before any policy reads them: momentum and weight decay
/// cannot revive one. Their gradients are masked before they are clipped.
template <class Rule, class... Options>
struct Prune {
 private:
  using classes = list<detail::option::sparsity, detail::option::from, detail::option::cubic,
                       detail::option::cadence, detail::option::global, detail::option::where>;
  static constexpr bool n_of_m = detail::is_n_of_m<Rule>;
  static constexpr bool movement = std::same_as<Rule, Movement>;
  template <class Class>
  static constexpr bool with = (false || ... || Class::template has<Options>);

  static_assert(detail::PruningRule<Rule>,
                "frugal: Prune<Rule, ...>: the rule is Magnitude, Movement or NofM<N, M>. Write "
                "Prune<Magnitude, Sparsity<0.9>>.");
  static_assert(detail::options_known<classes, Options...>,
                "frugal: Prune<Rule, ...>: unknown option. Options: Sparsity<0.9>, From<N>, "
                "Cubic<N>, a cadence such as Every<50>, Global, Where<\"pattern\">.");
  static_assert(detail::options_unique<classes, Options...>,
                "frugal: Prune<Rule, ...>: the same option twice. Keep one of each.");
  static_assert(n_of_m || with<detail::option::sparsity>,
                "frugal: Prune needs the share of weights to prune. Write Sparsity<0.9>.");
  static_assert(!n_of_m || (!with<detail::option::sparsity> && !with<detail::option::cubic> &&
                            !with<detail::option::global>),
                "frugal: NofM<N, M> keeps N of each M weights, and takes no Sparsity, Cubic or "
                "Global. Remove them.");
  static_assert(
      !movement || with<detail::option::cubic> || with<detail::option::from>,
      "frugal: Movement prunes by what the steps have done, and at the beginning there are "
      "none. Add Cubic<1000>, or From<1000>.");
  static_assert(with<detail::option::cubic> || !with<detail::option::cadence>,
                "frugal: Prune without Cubic prunes once, and a cadence changes nothing. Add "
                "Cubic<1000>, or remove the cadence.");

  using Start = detail::option_of<detail::option::from, From<0>, Options...>;
  using Cadence = detail::option_of<detail::option::cadence, Every<1>, Options...>;
  using Curve = detail::option_of<detail::option::cubic, void, Options...>;
  static_assert(std::same_as<typename Start::unit, OptimizerStep>,
                "frugal: Prune begins at a step. Write From<200>.");
  static_assert(!Cadence::per_epoch,
                "frugal: Prune raises its sparsity between steps. Write Every<50>.");
  static constexpr bool curved = !std::is_void_v<Curve>;
  static constexpr bool changes = Start{}.count() > 0 || curved;
  static constexpr std::uint64_t steps_of_curve() {
    if constexpr (curved) return Curve::steps;
    return 0;
  }
  static constexpr double final_sparsity() {
    if constexpr (n_of_m)
      return 1 - static_cast<double>(Rule::kept) / Rule::of;
    else
      return detail::option_of<detail::option::sparsity, void, Options...>::value;
  }

 public:
  using kind = kinds::prune;
  using listens =
      list<around::fit, on::fit_begin, on::ready, on::gradients, on::update, on::step, on::fit_end>;
  using before = list<kinds::clip, kinds::average>;
  using after = list<kinds::optimizer>;
  using conflicts =
      concat<std::conditional_t<changes, list<conflict<kinds::average, detail::prune_with_average>>,
                                list<>>,
             std::conditional_t<with<detail::option::where>, list<>,
                                list<conflict<kinds::lora, detail::prune_with_lora>>>>;

  static constexpr About about{Term::none, "two products with the masks per step"};
  using properties = list<property::capturable>;

  double sparsity = final_sparsity();      ///< share of pruned weights at the end; of NofM fixed
  Start from{};                            ///< the step at which it begins
  std::uint64_t steps = steps_of_curve();  ///< of Cubic, from there to the end; 0 without
  Cadence every{};                         ///< of Cubic
  Outcome<PrunedWeights> pruned{};         ///< set by fit

  /// What the last completed fit has pruned.
  PrunedWeights const& result() const {
    if (PrunedWeights const* const found = pruned.get()) return *found;
    throw StateError({.what = "nothing has been pruned",
                      .where = "Prune::result",
                      .why = "no fit has ended",
                      .fix = "Call fit first."});
  }

  /// What a run of this length does not come to; empty if there is nothing to say.
  std::string outlook(RunLimits const& horizon) const {
    if (!horizon.total_steps || *horizon.total_steps >= from.count() + steps) return {};
    return "the last weights are pruned at step " + std::to_string(from.count() + steps) +
           ", and the run ends at step " + std::to_string(*horizon.total_steps);
  }

  class State;
};

template <class Rule, class... Options>
class Prune<Rule, Options...>::State {
 public:
  explicit State(Prune const& settings) : settings_(settings), pruned_(&settings.pruned) {}

  template <class Next>
  void around_fit(FitRun& phase, Next&& next) {
    next();
    // EarlyStop puts weights back after all others have seen the end.
    if (!phase.restored_step() || masked_.holds()) return;
    phase.warn("Prune: the weights that were restored are those of step " +
               std::to_string(*phase.restored_step()) +
               ", from before the last ones were pruned: give EarlyStop a GraceEpochs that covers "
               "the pruning");
  }

  void on_fit_begin(FitBegin& phase) {
    if constexpr (!n_of_m) detail::require_sparsity(settings_.sparsity);
    if (!changes && settings_.from.count() != 0) {
      throw SettingsError(
          {.what = "pruning is to begin at step " + std::to_string(settings_.from.count()),
           .where = "Prune::from",
           .why = "the type says that it begins with the run, and others rely on it",
           .fix = "Write From<200> into Prune, and set the step by `from`."});
    }
    if (movement && !curved && settings_.from.count() == 0) {
      throw SettingsError({.what = "Movement is to prune at step 0",
                           .where = "Prune::from",
                           .why = "it prunes by what the steps have done",
                           .fix = "Give a later step."});
    }
    if (curved != (settings_.steps != 0)) {
      throw SettingsError({.what = "steps is " + std::to_string(settings_.steps),
                           .where = "Prune",
                           .why = "it is the length of Cubic's curve, and there is none without",
                           .fix = "Set 1 or more with Cubic<N>, and leave it without."});
    }
    if (std::string const text = settings_.outlook(phase.horizon()); !text.empty()) {
      phase.warn("Prune: " + text);
    }
    pruned_->clear();
    masked_.select(base_module(phase.module()), phase.parameters(), patterns(), "Prune");
    place_ = 0;
    scores_.clear();
    if constexpr (movement) {
      for (at::Tensor const& weight : masked_.weights) {
        // In 16 bits what a step adds to a sum is soon less than half of its last bit, and lost.
        at::ScalarType const type = at::promote_types(weight.scalar_type(), at::kFloat);
        scores_.push_back(
            at::zeros_like(weight, at::TensorOptions().dtype(type).requires_grad(false)));
      }
    }
  }

  // Not in on_fit_begin: a checkpoint's weights may come after that.
  void on_ready(Ready& phase) {
    advance(phase.counters());
    masked_.mask_weights();
    phase.set_gauge("sparsity", masked_.sparsity());
  }

  void on_gradients(Gradients& phase) {
    if constexpr (movement) {
      at::NoGradGuard const no_gradients;
      at::Tensor const& overflow = phase.overflow();
      for (std::size_t i = 0; i < scores_.size(); ++i) {
        at::Tensor const& gradient = masked_.weights[i].grad();
        if (!gradient.defined()) continue;
        at::Tensor product = gradient.to(scores_[i].scalar_type()) * masked_.weights[i];
        // The gradients of a skipped window are not finite.
        if (overflow.defined())
          product = at::where(overflow == 0, product, at::zeros({}, product.options()));
        scores_[i].sub_(product);
      }
    }
    masked_.mask_gradients();
  }

  void on_update(Update&) { masked_.mask_weights(); }

  void on_step(Step& phase) {
    if (!advance(phase.counters())) return;
    masked_.mask_weights();
    phase.set_gauge("sparsity", masked_.sparsity());
  }

  void on_fit_end(FitEnd&) {
    PrunedWeights found{.masks = {}, .sparsity = masked_.sparsity()};
    for (std::size_t i = 0; i < masked_.names.size(); ++i) {
      found.masks.emplace(masked_.names[i], masked_.masks[i]);
    }
    pruned_->set(std::move(found));
  }

  template <class Archive>
  void persist(Archive& archive) {
    archive("place", place_);
    masked_.persist(archive);
    if constexpr (movement) {
      archive.scope("scores", [&](auto& inner) {
        for (std::size_t i = 0; i < scores_.size(); ++i) inner(masked_.names[i], scores_[i]);
      });
    }
  }

 private:
  static std::optional<NamePatterns> patterns() {
    using Which = detail::option_of<detail::option::where, void, Options...>;
    if constexpr (std::is_void_v<Which>)
      return std::nullopt;
    else
      return NamePatterns(Which{});
  }

  /// Where on its curve the sparsity is at a step: 0 before the start, then one more than the steps
  /// after it.
  std::uint64_t place_at(Counters const& now, std::uint64_t before) const {
    if (now.step < settings_.from.count()) return 0;
    if constexpr (std::is_void_v<Curve>) {
      return 1;
    } else {
      std::uint64_t const step = now.step - settings_.from.count();
      if (step >= settings_.steps) return settings_.steps + 1;
      Counters from_start = now;
      from_start.step = step;
      return settings_.every.due_at_step(from_start) ? step + 1 : before;
    }
  }
  double share() const {
    if constexpr (std::is_void_v<Curve>)
      return settings_.sparsity;
    else
      return settings_.sparsity * Curve::share(place_ - 1, settings_.steps);
  }

  /// True if the masks have changed.
  bool advance(Counters const& now) {
    std::uint64_t const place = place_at(now, place_);
    if (place <= place_) return false;
    place_ = place;
    if constexpr (n_of_m) {
      detail::prune_n_of_m(masked_, Rule::kept, Rule::of);
    } else {
      detail::prune_lowest(masked_, movement ? scores_ : detail::magnitudes_of(masked_), share(),
                           with<detail::option::global>);
    }
    return true;
  }

  Prune settings_;
  Outcome<PrunedWeights> const* pruned_;
  detail::MaskedWeights masked_;
  std::vector<at::Tensor> scores_;  ///< of Movement
  std::uint64_t place_ = 0;
};

}  // namespace frugal

#ifndef FRUGAL_COMPILED
#include <frugal/model/prune.ipp>
#endif
