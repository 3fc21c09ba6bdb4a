// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <concepts>
#include <cstdint>
#include <span>
#include <string_view>

#include <frugal/base/name_hash.hpp>
#include <frugal/core/compose/declared.hpp>
#include <frugal/core/compose/diagnostic.hpp>
#include <frugal/core/compose/hooks.hpp>
#include <frugal/core/compose/list.hpp>
#include <frugal/core/compose/options.hpp>
#include <frugal/core/compose/services.hpp>

namespace frugal {

/// When a policy is called within each event: after all policies of earlier stages, whose effects it
/// sees. In an around-hook the first is the outermost. Within a stage the order is that of the
/// kinds' names. `before` and `after` are stronger than stages, and are for the rest.
enum class Stage {
  enclose,    ///< times or traces all that follows: Profile
  prepare,    ///< sets the process or the device up: FlushDenormals, StartOn
  transform,  ///< changes data, passes or gradients: Precision, Recompute, Curriculum
  update,     ///< changes the weights, and what follows from them: Clip, Optimize, Average
  measure,    ///< measures the step: CostMeter, Throughput, Budget
  publish,    ///< writes what was measured: Log, Csv, TensorBoard
  decide,     ///< validates, and decides from the results: Schedule, Validate, EarlyStop
  keep,       ///< keeps the state for the run itself: Rollback
  save,       ///< saves all that the event did: Checkpoint
  leave,      ///< needs the save: Spot, HtmlReport
};

// once_per_run: where processes train together, only the first one calls the policy, because its
// files and lines are the run's.
//
// agreed_verdicts (false if it is not there): where processes divide each window, the policy asks to
// stop in all of them or in none, because it decides by what is equal in all. So it needs no message.

/// A slot is filled exactly once in every recipe. If the recipe does not fill it, its null policy
/// does (null_policy below), which transforms nothing and costs nothing.
struct slot_kind {
  static constexpr bool slot = true;
  static constexpr bool repeatable = false;
  static constexpr bool once_per_run = false;
  static constexpr Stage stage = Stage::transform;
};

/// An observer only watches. A recipe has at most one of each kind.
struct optional_kind {
  static constexpr bool slot = false;
  static constexpr bool repeatable = false;
  static constexpr bool once_per_run = false;
  static constexpr Stage stage = Stage::measure;
};

/// An observer of which a recipe may have several (two logs with two cadences).
struct repeatable_kind {
  static constexpr bool slot = false;
  static constexpr bool repeatable = true;
  static constexpr bool once_per_run = false;
  static constexpr Stage stage = Stage::measure;
};

/// The identity of a policy, whatever its parameters. Kinds are compared by name. It also labels
/// the policy's part of a checkpoint and breaks ties in the order, so it must be unique.
template <class K>
concept Kind = requires {
  { K::name } -> std::convertible_to<std::string_view>;
  { K::slot } -> std::convertible_to<bool>;
  { K::repeatable } -> std::convertible_to<bool>;
  { K::stage } -> std::convertible_to<Stage>;
};

/// The policy that fills a slot which the recipe leaves open. Specialised next to each null policy.
template <class Kind>
struct null_policy;

/// A kind that a policy requires or excludes, with a sentence that says why and what to write
/// instead. A bare kind in `needs` or `conflicts` gets a generic sentence.
template <class Kind, class Sentence>
struct need {
  using kind = Kind;
  using sentence = Sentence;
};
template <class Kind, class Sentence>
struct conflict {
  using kind = Kind;
  using sentence = Sentence;
};

/// A policy: a value type that declares its kind and the hooks that its State implements.
///
///    using kind = kinds::early_stop;               required
///    using listens = list<on::validated>;          required; list<> for a plain setting
///    using needs, conflicts = list<...>;           kinds, need<...>, conflict<...>
///    using before, after = list<...>;              kinds, where the stages do not order them
///    using demands = list<...>;                    on every policy: `met<P>` and a `sentence`
///    using source_demands = list<...>;             on the training source: `met<Source>` and a
///                                                  `sentence`
///    using provides = list<...>;                   services that it provides
///    using properties = list<...>;                 what it declares about itself, of namespace property
///    class State;                                  constructed from the policy's value, and from
///                                                  RecipeFacts if it asks for them; a template over
///                                                  Context where it must know the recipe
template <class P>
concept Policy =
    requires {
      typename P::kind;
      typename P::listens;
    } && Kind<typename P::kind> && is_list<typename P::listens> && std::default_initializable<P> &&
    std::copyable<P>;

namespace rules {

FRUGAL_DIAGNOSTIC(
    not_a_policy,
    "frugal: a type in this recipe is not a policy. A policy is a copyable, default-"
    "constructible type with `using kind` and `using listens`. Optimizers, curves and "
    "metrics are options of one: write Optimize<AdamW>, not AdamW.");
FRUGAL_DIAGNOSTIC(missing_need,
                  "frugal: a policy of this recipe needs a kind that the recipe lacks. The "
                  "compiler's note names both. Add a policy of that kind.");
FRUGAL_DIAGNOSTIC(
    conflicting,
    "frugal: two policies of this recipe exclude each other. The compiler's note names "
    "the policy and the kind that it excludes. Remove one of them.");
FRUGAL_DIAGNOSTIC(duplicate,
                  "frugal: this recipe has two policies of one kind, and a recipe takes one. The "
                  "compiler's note names the second. Keep one of the two.");
FRUGAL_DIAGNOSTIC(one_name,
                  "frugal: two kinds of this recipe have the same name. The order, messages and "
                  "checkpoints tell kinds apart by name. Give your kind another name.");
FRUGAL_DIAGNOSTIC(
    cycle,
    "frugal: the order of these policies is a cycle: each must come after another one. "
    "Remove one `before` or `after`.");
FRUGAL_DIAGNOSTIC(
    unknown_hook,
    "frugal: this policy's `listens` has a type that is not a hook. frugal::all_hooks "
    "lists the hooks.");
FRUGAL_DIAGNOSTIC(
    no_property,
    "frugal: `properties` of this policy, or of its kind, has a type that is not a property, or is "
    "no list. frugal::property::all lists them: `using properties = "
    "frugal::list<frugal::property::capturable>;`.");
FRUGAL_DIAGNOSTIC(
    property_as_bool,
    "frugal: this policy declares a property as a bool member, which nobody reads. Write `using "
    "properties = frugal::list<frugal::property::capturable>;`, with the property's name; "
    "frugal::property::all lists them.");
FRUGAL_DIAGNOSTIC(idle_observer,
                  "frugal: this observer listens to no hook and would never be called. Name its "
                  "hooks in `listens`.");
FRUGAL_DIAGNOSTIC(no_state,
                  "frugal: this policy listens to hooks and has no State that is "
                  "constructible from the policy's value. Write one, with `explicit State(Policy "
                  "const&)`.");
FRUGAL_DIAGNOSTIC(final_state,
                  "frugal: this policy's State is final, and its hooks are found by deriving from "
                  "it. Remove `final`.");
FRUGAL_DIAGNOSTIC(not_persistent,
                  "frugal: this policy's State carries data that no checkpoint would keep. Give it "
                  "`template <class Archive> void persist(Archive&)`, or `using transient = void` "
                  "when a resumed run may start without it.");

}  // namespace rules

namespace detail {

/// Splits an edge into its kind and its sentence; a bare kind gets the generic one.
template <class Edge, class General>
struct edge {
  using kind = Edge;
  using sentence = General;
};
template <class Kind, class Sentence, class General>
struct edge<need<Kind, Sentence>, General> : need<Kind, Sentence> {};
template <class Kind, class Sentence, class General>
struct edge<conflict<Kind, Sentence>, General> : conflict<Kind, Sentence> {};

/// An edge as a value, so that rules over recipes are loops instead of templates. Its key is the
/// hash of the kind's name, for cheap comparison of each pair of policies.
struct Edge {
  std::string_view kind;
  bool slot;
  std::string_view sentence;
  std::uint64_t key = detail::name_hash(kind);
};
template <class K>
inline constexpr std::uint64_t kind_key = detail::name_hash(K::name);

template <class List, class General>
struct edges;
template <class... Es, class General>
struct edges<list<Es...>, General> {
  static constexpr std::array<Edge, sizeof...(Es)> value{
      Edge{edge<Es, General>::kind::name, edge<Es, General>::kind::slot,
           edge<Es, General>::sentence::text, kind_key<typename edge<Es, General>::kind>}...};
};

// A type that is not a hook has no bit, so that the engine can report it.
template <class Hook>
inline constexpr unsigned hook_bit = 0;
template <class Hook>
  requires contains<Hook, all_hooks>
inline constexpr unsigned hook_bit<Hook> = 1U << Hook::index;

template <class List>
inline constexpr unsigned hook_mask = 0;
template <class... Hooks>
inline constexpr unsigned hook_mask<list<Hooks...>> = (0U | ... | hook_bit<Hooks>);

template <class P>
inline constexpr bool is_null = false;
template <class P>
  requires requires { typename null_policy<typename P::kind>::type; }
inline constexpr bool is_null<P> =
    std::same_as<typename canonical_of<P>::type,
                 typename canonical_of<typename null_policy<typename P::kind>::type>::type>;

/// Everything that legality and order need of a policy, as a value. One template instantiation per
/// policy; the rest is constexpr arithmetic on an array of these.
struct PolicyInfo {
  std::string_view kind;
  bool slot;
  bool repeatable;
  Stage stage;
  bool null;
  unsigned listens;
  std::span<Edge const> needs;
  std::span<Edge const> conflicts;
  std::span<Edge const> before;
  std::span<Edge const> after;
  std::span<Edge const> provides{};
  std::span<char const> identity{};  ///< of the kind's type: two types must not share a name
  std::uint64_t key = detail::name_hash(kind);
  bool once_per_run = false;
  bool agreed_verdicts = false;
};

template <class Kind>
consteval bool is_once_per_run() {
  if constexpr (requires { Kind::once_per_run; }) {
    return Kind::once_per_run;
  } else {
    return false;
  }
}

template <class Kind>
inline constexpr char identity_of[1] = {};

template <class Kind>
consteval bool has_agreed_verdicts() {
  if constexpr (requires { Kind::agreed_verdicts; }) {
    return Kind::agreed_verdicts;
  } else {
    return false;
  }
}

template <class List>
struct service_edges;
template <class... Ss>
struct service_edges<list<Ss...>> {
  static constexpr std::array<Edge, sizeof...(Ss)> value{Edge{Ss::name, false, Ss::twice::text}...};
};

template <class P>
inline constexpr PolicyInfo info_of{
    P::kind::name,
    P::kind::slot,
    P::kind::repeatable,
    P::kind::stage,
    is_null<P>,
    hook_mask<typename P::listens>,
    edges<typename needs_of<P>::type, rules::missing_need>::value,
    edges<typename conflicts_of<P>::type, rules::conflicting>::value,
    edges<typename before_of<P>::type, rules::cycle>::value,
    edges<typename after_of<P>::type, rules::cycle>::value,
    service_edges<typename provides_of<P>::type>::value,
    identity_of<typename P::kind>,
    kind_key<typename P::kind>,
    is_once_per_run<typename P::kind>(),
    has_agreed_verdicts<typename P::kind>()};

}  // namespace detail
}  // namespace frugal
