// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <type_traits>

#include <frugal/core/compose/composition.hpp>
#include <frugal/core/compose/list.hpp>
#include <frugal/core/compose/policy.hpp>
#include <frugal/policy/kinds.hpp>

namespace frugal {

namespace detail {

/// Can the trainer's policy of a kind be looked at? A slot that the recipe leaves open has a
/// default, and most of these have no settings.
template <class Kind, class Policies>
inline constexpr bool is_accessible = false;
template <class Kind, class Policies>
  requires has<Kind, Policies>
inline constexpr bool is_accessible<Kind, Policies> =
    !(is_null<slot_of<Kind, Policies>> && std::is_empty_v<slot_of<Kind, Policies>>);

/// The policy of a kind. If it is not accessible, a static_assert has failed already, and what this
/// returns is only there so that the compiler has nothing to add.
template <bool Accessible, class Kind, class Trainer>
auto& policy_if(Trainer& trainer) {
  if constexpr (Accessible) {
    return trainer.template policy<Kind>();
  } else {
    return trainer;
  }
}

/// The accessors that the kinds of a recipe's policies bring themselves, one for each kind.
template <class Trainer, class Kind>
struct accessors_of_kind {};
template <class Trainer, class Kind>
  requires requires { typename Kind::template accessors<Trainer>; }
struct accessors_of_kind<Trainer, Kind> : Kind::template accessors<Trainer> {};

template <class Trainer, class Kinds>
struct accessors_of_kinds;
template <class Trainer, class... Kinds>
struct accessors_of_kinds<Trainer, list<Kinds...>> : accessors_of_kind<Trainer, Kinds>... {};

/// Kinds of a list of policies, each once.
template <class Kinds, class... Ps>
struct kinds_once {
  using type = Kinds;
};
template <class... Kinds, class P, class... Ps>
struct kinds_once<list<Kinds...>, P, Ps...>
    : kinds_once<std::conditional_t<contains<typename P::kind, list<Kinds...>>, list<Kinds...>,
                                    list<Kinds..., typename P::kind>>,
                 Ps...> {};

}  // namespace detail

// C++ has neither a parameter for a member's name nor, before C++26, a computed text for a
// static_assert.
#define FRUGAL_ACCESSOR(name, constness, example)                                          \
  auto constness& name() constness {                                                       \
    constexpr bool there = detail::is_accessible<kinds::name, typename Trainer::policies>; \
    static_assert(there, "frugal: this trainer's recipe has no " #name ". Add " example    \
                         " to it, or remove the call.");                                   \
    return detail::policy_if<there, kinds::name>(static_cast<Trainer constness&>(*this));  \
  }
#define FRUGAL_ACCESSORS(name, example) \
  FRUGAL_ACCESSOR(name, , example)      \
  FRUGAL_ACCESSOR(name, const, example)

/// The policies of a trainer by the names of their kinds: `trainer.optimizer().lr = 3e-4`. Each is
/// what `trainer.policy<kinds::optimizer>()` is: the value that the next fit uses, as its user set
/// it. A kind that the recipe lacks is one sentence of the compiler.
///
/// A kind of your own may bring an accessor for every trainer that has it:
///
///     struct allowance : optional_kind {
///       static constexpr std::string_view name = "Allowance";
///       template <class Trainer>
///       struct accessors {
///         auto& allowance() {
///           return static_cast<Trainer&>(*this).template policy<my::allowance>();
///         }
///       };
///     };
template <class Trainer>
class Accessors {
 public:
  // Slots.
  FRUGAL_ACCESSORS(precision, "Precision<BF16>")
  FRUGAL_ACCESSORS(accumulate, "Accumulate<4>")
  FRUGAL_ACCESSORS(clip, "ClipNorm<1.0>")
  FRUGAL_ACCESSORS(optimizer, "Optimize<AdamW>")
  FRUGAL_ACCESSORS(schedule, "Schedule<Warmup<100>, Cosine>")
  FRUGAL_ACCESSORS(validate, "Validate<Every<1, Epoch>>")
  FRUGAL_ACCESSORS(execution, "CudaGraph<WholeStep>")
  // Observers.
  FRUGAL_ACCESSORS(activations, "Activations<BF16>")
  FRUGAL_ACCESSORS(audit, "Audit<>")
  FRUGAL_ACCESSORS(auto_batch, "AutoBatch")
  FRUGAL_ACCESSORS(average, "Average<>")
  FRUGAL_ACCESSORS(budget, "Budget<Usd<20>>")
  FRUGAL_ACCESSORS(burn_rate, "BurnRate<Usd<3>, PerHour>")
  FRUGAL_ACCESSORS(checkpoint, "Checkpoint<Every<500>>")
  FRUGAL_ACCESSORS(cost_meter, "CostMeter{}")
  FRUGAL_ACCESSORS(early_stop, "EarlyStop<Patience<3>>")
  FRUGAL_ACCESSORS(flush_denormals, "FlushDenormals")
  FRUGAL_ACCESSORS(keep_host_memory, "KeepHostMemory")
  FRUGAL_ACCESSORS(log, "Log<>")
  FRUGAL_ACCESSORS(profile, "Profile<>")
  FRUGAL_ACCESSORS(progress, "Progress<>")
  FRUGAL_ACCESSORS(recompute, "Recompute<>")
  FRUGAL_ACCESSORS(rollback, "Rollback<>")
  FRUGAL_ACCESSORS(skip_non_finite, "SkipNonFinite")
  FRUGAL_ACCESSORS(spot, "Spot<SigtermSave>")
  FRUGAL_ACCESSORS(start_on, "StartOn<Cpu, Epochs<1>>")
  FRUGAL_ACCESSORS(stop_after, "StopAfter<Hours<4>>")
  FRUGAL_ACCESSORS(throughput, "Throughput<>")
  FRUGAL_ACCESSORS(train_metrics, "TrainMetrics<Accuracy>")
};

#undef FRUGAL_ACCESSORS
#undef FRUGAL_ACCESSOR

}  // namespace frugal
