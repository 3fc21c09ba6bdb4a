// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <type_traits>

#include <frugal/compose/legality.hpp>
#include <frugal/compose/services.hpp>

// What a policy is while fitting, and whether it keeps what it declares.
namespace frugal::detail {

/// What a policy that listens to nothing carries while fitting. One type a policy, since two
/// subobjects of one type, however empty, would have to have two addresses.
template <class P>
struct Stateless {
  Stateless() = default;
  explicit Stateless(P const&) {}
};

template <class P, class Context>
struct state_of {
  using type = typename P::template State<Context>;
};
template <class P, class Context>
  requires std::same_as<typename P::listens, list<>>
struct state_of<P, Context> {
  using type = Stateless<P>;
};

template <class P, class Context>
concept HasState = std::same_as<typename P::listens, list<>> ||
                   std::constructible_from<typename P::template State<Context>, P const&>;

/// Stands in for an archive where only the presence of persist() is asked for.
struct AnyArchive {
  template <class T>
  void operator()(char const*, T&) const {}
};

template <class State>
inline constexpr bool persists =
    requires(State& state, AnyArchive& archive) { state.persist(archive); };

template <class P, class Context>
constexpr bool well_formed(all_hooks hooks) {
  using Listens = typename P::listens;
  if constexpr (std::same_as<Listens, list<>>) {
    return rules::idle_observer::say<P::kind::slot, P>();
  } else if constexpr (!HasState<P, Context>) {
    return rules::no_state::say<false, P>();
  } else if constexpr (std::is_final_v<typename state_of<P, Context>::type>) {
    return rules::final_state::say<false, P>();
  } else {
    using State = typename state_of<P, Context>::type;
    constexpr bool keeps =
        std::is_empty_v<State> || persists<State> || requires { typename State::transient; };
    return agree<P, State, Context>(Listens{}, hooks) && rules::not_persistent::say<keeps, P>() &&
           delivers<P, State, Context>(typename provides_of<P>::type{});
  }
}

}  // namespace frugal::detail
