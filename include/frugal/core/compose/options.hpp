// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <type_traits>

#include <frugal/core/compose/list.hpp>

// Options of a policy, in any order: `Checkpoint<Keep<3>, Every<500>>`. Each class of options is a
// type with a `has<O>`, so that options are identified by type rather than position:
//
//     struct patience { template <class O> static constexpr bool has = is_patience<O>; };
//     using limit = option_of<patience, Patience<3>, Options...>;
namespace frugal::detail {

/// False for every type: for a static_assert in a template that must not be instantiated.
template <class T>
inline constexpr bool never = false;

/// The first option of a class, or `Default`.
template <class Class, class Default, class... Options>
struct option_in {
  using type = Default;
};
template <class Class, class Default, class O, class... Rest>
struct option_in<Class, Default, O, Rest...> : option_in<Class, Default, Rest...> {};
template <class Class, class Default, class O, class... Rest>
  requires(Class::template has<O>)
struct option_in<Class, Default, O, Rest...> {
  using type = O;
};
template <class Class, class Default, class... Options>
using option_of = typename option_in<Class, Default, Options...>::type;

/// All options of a class, in the order in which they are written.
template <class Class, class... Options>
using options_of =
    concat<std::conditional_t<Class::template has<Options>, list<Options>, list<>>...>;

/// Whether every option is of one of the classes.
template <class Classes, class... Options>
inline constexpr bool options_known = false;
template <class... Classes, class... Options>
inline constexpr bool options_known<list<Classes...>, Options...> =
    (true && ... && []<class O>(std::type_identity<O>) {
      return (false || ... || Classes::template has<O>);
    }(std::type_identity<Options>{}));

/// Whether there is at most one option of each class.
template <class Classes, class... Options>
inline constexpr bool options_unique = false;
template <class... Classes, class... Options>
inline constexpr bool options_unique<list<Classes...>, Options...> =
    (true && ... && []<class C>(std::type_identity<C>) {
      return (0 + ... + int{C::template has<Options>}) <= 1;
    }(std::type_identity<Classes>{}));

/// A policy with its options in a canonical order, defaults included: its `canonical` if declared,
/// otherwise the policy itself. Policies with one canonical type are the same policy.
template <class P>
struct canonical_of {
  using type = P;
};
template <class P>
  requires requires { typename P::canonical; }
struct canonical_of<P> {
  using type = typename P::canonical;
};

}  // namespace frugal::detail
