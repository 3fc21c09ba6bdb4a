// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>

#include <frugal/core/compose/list.hpp>

namespace frugal::property {

/// What a policy, or the kind of policies, may declare: `using properties = frugal::list<frugal::property::capturable>;`. What
/// neither declares is not assumed. The list of a derived policy or kind takes the
/// place of its base's; one without a list has its base's.
///
/// `adapt(module)` changes the module for good.
struct adapts {};
/// Its `around_validate` adds no metric to a validation.
struct adds_no_metrics {};
/// It works within a captured step, although it listens there.
struct capturable {};
/// It starts the run in several processes.
struct has_ranks {};
/// It comes out the same in all processes that train together.
struct knows_ranks {};
/// It does the same with a module of which each process has shards (tensor parallelism). One that listens to
/// on::gradients or on::update must work on parts as well.
struct knows_shards {};
/// It is right with a part of the module (Pipeline): it treats each parameter by itself, or sees losses and
/// norms of all stages, and its State saves what belongs to a parameter under its name (TensorPlaces).
struct knows_stages {};
/// It looks at no weights but by way of a layer's call, the optimizer or a checkpoint: with Shard<States,
/// Grads, Params> a process has them only then.
struct reads_no_weights {};
/// An optimizer that computes a window's loss more than once.
struct reevaluates {};
/// It skips windows with bad gradients itself, as Precision<FP16> does.
struct skips_overflows {};
/// It changes what layers compute or keep, or calls them itself, so that it has no effect on a module whose
/// layers run as compiled code (StepPackage).
struct works_in_layers {};
/// It treats elements one by one, or takes norms by `phase.norms()`, so that it works with Shard.
struct works_on_parts {};

using all =
    list<adapts, adds_no_metrics, capturable, has_ranks, knows_ranks, knows_shards, knows_stages,
         reads_no_weights, reevaluates, skips_overflows, works_in_layers, works_on_parts>;

}  // namespace frugal::property

// The lists that a policy may declare, as types: `needs_of<P>::type` is P::needs, or list<> if P
// does not declare it.
namespace frugal::detail {

// C++ has no template parameter for a member's name.
#define FRUGAL_DECLARED(member)               \
  template <class P>                          \
  struct member##_of {                        \
    using type = list<>;                      \
  };                                          \
  template <class P>                          \
    requires requires { typename P::member; } \
  struct member##_of<P> {                     \
    using type = typename P::member;          \
  };

FRUGAL_DECLARED(needs)
FRUGAL_DECLARED(conflicts)
FRUGAL_DECLARED(before)
FRUGAL_DECLARED(after)
FRUGAL_DECLARED(demands)
FRUGAL_DECLARED(source_demands)
FRUGAL_DECLARED(provides)
FRUGAL_DECLARED(metrics)
FRUGAL_DECLARED(properties)
FRUGAL_DECLARED(watches)

#undef FRUGAL_DECLARED

/// Of a policy that has values of metrics as a member `metrics`, the types are `measures`.
template <class P>
  requires requires { typename P::measures; }
struct metrics_of<P> {
  using type = typename P::measures;
};

/// Whether a policy or its kind declares the property.
template <class Property, class P>
inline constexpr bool has_property = contains<Property, typename properties_of<P>::type>;
template <class Property, class P>
  requires requires { typename P::kind; }
inline constexpr bool has_property<Property, P> =
    contains<Property, typename properties_of<P>::type> ||
    contains<Property, typename properties_of<typename P::kind>::type>;

/// Whether a policy has a bool that is called like a property.
template <class P>
constexpr bool has_property_as_bool() {
#define FRUGAL_IS_BOOL(member) requires { requires std::same_as<decltype(P::member), bool const>; }
  return FRUGAL_IS_BOOL(adapts) || FRUGAL_IS_BOOL(adds_metrics) || FRUGAL_IS_BOOL(capturable) ||
         FRUGAL_IS_BOOL(has_ranks) || FRUGAL_IS_BOOL(knows_ranks) || FRUGAL_IS_BOOL(knows_shards) ||
         FRUGAL_IS_BOOL(knows_stages) || FRUGAL_IS_BOOL(reads_no_weights) ||
         FRUGAL_IS_BOOL(reevaluates) || FRUGAL_IS_BOOL(skips_overflows) ||
         FRUGAL_IS_BOOL(works_in_layers) || FRUGAL_IS_BOOL(works_on_parts);
#undef FRUGAL_IS_BOOL
}

template <class List>
inline constexpr bool are_properties = false;
template <class... Ps>
inline constexpr bool are_properties<list<Ps...>> = (... && contains<Ps, property::all>);

}  // namespace frugal::detail
