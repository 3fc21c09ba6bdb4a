// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <type_traits>
#include <utility>

#include <frugal/core/compose/policy.hpp>

namespace frugal::detail {

/// The order in which the policies of a recipe are called, as positions in the recipe. `sorted < N`
/// means that the rest form a cycle.
template <std::size_t N>
struct Order {
  std::array<std::size_t, N> position{};
  std::size_t sorted = 0;
};

/// The stage in which each policy comes: its own, or the earliest of the policies that it must
/// precede. So `before` moves a policy ahead, and not the other one back.
template <std::size_t N>
constexpr std::array<Stage, N> stages_of(std::array<PolicyInfo, N> const& infos) {
  std::array<Stage, N> stages{};
  for (std::size_t i = 0; i < N; ++i) stages[i] = infos[i].stage;
  // A chain of policies, each before the next one, has at most N links.
  for (std::size_t turn = 0; turn < N; ++turn) {
    for (std::size_t i = 0; i < N; ++i) {
      for (Edge const& edge : infos[i].before) {
        for (std::size_t j = 0; j < N; ++j) {
          if (infos[j].key == edge.key && stages[j] < stages[i]) stages[i] = stages[j];
        }
      }
    }
  }
  return stages;
}

/// Kahn's topological sort (1962). Of the policies that may come next, it takes the one of the
/// earliest stage, and among equals the alphabetically first kind name, so that all permutations of a
/// recipe have one order. Policies of one repeatable kind keep the order in which they were
/// written.
template <std::size_t N>
constexpr Order<N> order_of(std::array<PolicyInfo, N> const& infos) {
  Order<N> order;
  // Successors of each policy, and how many it waits for: each pair is examined once.
  bool follows[N + 1][N + 1] = {};
  std::size_t waits[N + 1] = {};
  for (std::size_t i = 0; i < N; ++i) {
    auto const all = [&](std::span<Edge const> edges, bool before) {
      for (Edge const& edge : edges) {
        for (std::size_t j = 0; j < N; ++j) {
          if (j == i || infos[j].key != edge.key) continue;
          std::size_t const first = before ? i : j;
          std::size_t const second = before ? j : i;
          if (!follows[first][second]) ++waits[second];
          follows[first][second] = true;
        }
      }
    };
    all(infos[i].before, true);
    all(infos[i].after, false);
  }
  std::array<Stage, N> const stages = stages_of(infos);
  auto const comes_first = [&](std::size_t one, std::size_t other) {
    return stages[one] != stages[other] ? stages[one] < stages[other]
                                        : infos[one].kind < infos[other].kind;
  };
  std::array<bool, N> done{};
  for (std::size_t turn = 0; turn < N; ++turn) {
    std::size_t next = N;
    for (std::size_t i = 0; i < N; ++i) {
      if (done[i] || waits[i] != 0) continue;
      if (next == N || comes_first(i, next)) next = i;
    }
    if (next == N) break;
    done[next] = true;
    order.position[order.sorted++] = next;
    for (std::size_t j = 0; j < N; ++j) waits[j] -= follows[next][j];
  }
  // A cycle: unsorted policies follow in the order in which they were written, for the message.
  std::size_t at = order.sorted;
  for (std::size_t i = 0; i < N; ++i) {
    if (!done[i]) order.position[at++] = i;
  }
  return order;
}

template <class... Ps>
inline constexpr std::array<PolicyInfo, sizeof...(Ps)> infos_of{info_of<Ps>...};

/// Their order; a variable template, so that it is computed once per recipe.
template <class... Ps>
inline constexpr Order<sizeof...(Ps)> order_in = order_of(infos_of<Ps...>);

/// Whether the kind is present. A slot always is: its null policy fills it.
template <std::size_t N>
constexpr bool has_kind(std::array<PolicyInfo, N> const& infos, std::uint64_t kind, bool slot) {
  if (slot) return true;
  for (PolicyInfo const& info : infos) {
    if (info.key == kind) return true;
  }
  return false;
}

/// Whether the kind is present and not null: a null policy transforms nothing, so nothing conflicts
/// with it.
template <std::size_t N>
constexpr bool has_active_kind(std::array<PolicyInfo, N> const& infos, std::uint64_t kind) {
  for (PolicyInfo const& info : infos) {
    if (info.key == kind && !info.null) return true;
  }
  return false;
}

template <std::size_t N>
constexpr bool repeats(std::array<PolicyInfo, N> const& infos, std::size_t which) {
  if (infos[which].repeatable) return false;
  for (std::size_t i = 0; i < which; ++i) {
    if (infos[i].key == infos[which].key) return true;
  }
  return false;
}

/// Whether an earlier policy has the same kind name for another kind.
template <std::size_t N>
constexpr bool shares_name(std::array<PolicyInfo, N> const& infos, std::size_t which) {
  for (std::size_t i = 0; i < which; ++i) {
    if (infos[i].key == infos[which].key &&
        infos[i].identity.data() != infos[which].identity.data()) {
      return true;
    }
  }
  return false;
}

/// Whether an earlier policy provides the service.
template <std::size_t N>
constexpr bool is_provided_before(std::array<PolicyInfo, N> const& infos, std::size_t which,
                                  std::uint64_t service) {
  for (std::size_t i = 0; i < which; ++i) {
    for (Edge const& edge : infos[i].provides) {
      if (edge.key == service) return true;
    }
  }
  return false;
}

/// The sentence of the first rule that a recipe breaks; empty if the recipe is legal.
template <std::size_t N>
constexpr std::string_view fault_of(std::array<PolicyInfo, N> const& infos, Order<N> const& order) {
  for (std::size_t i = 0; i < N; ++i) {
    if (shares_name(infos, i)) return rules::one_name::text;
    if (repeats(infos, i)) return rules::duplicate::text;
    for (Edge const& edge : infos[i].provides) {
      if (is_provided_before(infos, i, edge.key)) return edge.sentence;
    }
    for (Edge const& edge : infos[i].needs) {
      if (!has_kind(infos, edge.key, edge.slot)) return edge.sentence;
    }
    if (infos[i].null) continue;
    for (Edge const& edge : infos[i].conflicts) {
      if (has_active_kind(infos, edge.key)) return edge.sentence;
    }
  }
  return order.sorted == N ? std::string_view{} : rules::cycle::text;
}

/// Reports every broken rule of a recipe once, in the words of the policy concerned. The offenders
/// are template arguments, so that the compiler's notes name them.
template <class... Ps>
struct Diagnostics {
  static constexpr auto const& infos = infos_of<Ps...>;

  template <class P, class... Needs>
  static constexpr bool require_needs(list<Needs...>) {
    return (true & ... &
            edge<Needs, rules::missing_need>::sentence::template require<
                has_kind(infos, kind_key<typename edge<Needs, rules::missing_need>::kind>,
                         edge<Needs, rules::missing_need>::kind::slot),
                P, typename edge<Needs, rules::missing_need>::kind>());
  }
  template <class P, class... Conflicts>
  static constexpr bool require_conflicts(list<Conflicts...>) {
    return (true & ... &
            edge<Conflicts, rules::conflicting>::sentence::template require<
                info_of<P>.null ||
                    !has_active_kind(infos,
                                     kind_key<typename edge<Conflicts, rules::conflicting>::kind>),
                P, typename edge<Conflicts, rules::conflicting>::kind>());
  }
  template <class P, std::size_t I, class... Services>
  static constexpr bool require_provides(list<Services...>) {
    return (
        true & ... &
        Services::twice::template require<!is_provided_before(infos, I, kind_key<Services>), P>());
  }
  template <std::size_t... Is>
  static constexpr bool require(std::index_sequence<Is...>) {
    constexpr bool names = (true & ... & rules::one_name::require<!shares_name(infos, Is), Ps>());
    constexpr bool duplicates =
        (true & ... &
         rules::duplicate::require<shares_name(infos, Is) || !repeats(infos, Is), Ps>());
    // Before services: a conflict's sentence says more than that two policies provide one.
    constexpr bool conflicts =
        (true & ... & require_conflicts<Ps>(typename conflicts_of<Ps>::type{}));
    constexpr bool services =
        (true & ... & require_provides<Ps, Is>(typename provides_of<Ps>::type{}));
    constexpr bool needs = (true & ... & require_needs<Ps>(typename needs_of<Ps>::type{}));
    return names & duplicates & services & needs & conflicts & require_cycle();
  }
  // The offenders are the policies that could not be sorted: the cycle, and those that wait for it.
  static constexpr bool require_cycle() {
    constexpr auto const& order = order_in<Ps...>;
    if constexpr (order.sorted == sizeof...(Ps)) {
      return true;
    } else {
      return [&]<std::size_t... Rest>(std::index_sequence<Rest...>) {
        return rules::cycle::require<
            false, type_at<list<Ps...>, order.position[order.sorted + Rest]>...>();
      }(std::make_index_sequence<sizeof...(Ps) - order.sorted>{});
    }
  }
};

/// The demands of policies on every policy of their recipe, including kinds that they do not know.
/// Without a policy that demands something, nothing is checked.
template <class... Ps>
struct Demands {
  /// The sentence of the first unmet demand; empty if all are met.
  static constexpr std::string_view fault() {
    std::string_view unmet;
    (ask<Ps>(typename demands_of<Ps>::type{}, unmet), ...);
    return unmet;
  }
  static constexpr bool require() {
    return (true & ... & require_of<Ps>(typename demands_of<Ps>::type{}));
  }

 private:
  template <class P, class... Ds>
  static constexpr void ask(list<Ds...>, std::string_view& unmet) {
    (ask_all<Ds>(unmet), ...);
  }
  template <class Demand>
  static constexpr void ask_all(std::string_view& unmet) {
    bool const met = (true && ... && Demand::template met<Ps>);
    if (unmet.empty() && !met) unmet = Demand::sentence::text;
  }
  template <class P, class... Ds>
  static constexpr bool require_of(list<Ds...>) {
    return (true & ... & require_all<P, Ds>());
  }
  template <class P, class Demand>
  static constexpr bool require_all() {
    return (true & ... & Demand::sentence::template require<Demand::template met<Ps>, P, Ps>());
  }
};

/// Whether a declared hook of a policy has the right parameters and result. `Phases` are those of the loop.
template <class P, class State, class Phases, class Hook>
constexpr bool fits() {
  using Phase = typename Phases::template phase<Hook>;
  if constexpr (Hook::form == HookForm::around) {
    using Next = typename Phases::template continuation<Hook>;
    if constexpr (!Hook::template callable<State, Phase, Next>) {
      return Hook::mistyped::template require<false, P>();
    } else {
      using Result = decltype(Hook::call(std::declval<State&>(), std::declval<Phase&>(),
                                         std::declval<Next&>()));
      return Hook::misreturned::template require<
          std::convertible_to<Result, std::invoke_result_t<Next&>>, P>();
    }
  } else if constexpr (!Hook::template callable<State, Phase>) {
    return Hook::mistyped::template require<false, P>();
  } else {
    using Result = decltype(Hook::call(std::declval<State&>(), std::declval<Phase&>()));
    if constexpr (Hook::form == HookForm::query) {
      return Hook::misreturned::template require<std::same_as<Result, bool>, P>();
    } else {
      constexpr bool stops = std::same_as<Result, flow>;
      return Hook::cannot_stop::template require<Hook::may_stop || !stops, P>() &&
             Hook::misreturned::template require<stops || std::is_void_v<Result>, P>();
    }
  }
}

/// Whether the declaration and the implementation of one hook agree.
template <class P, class State, class Phases, class Hook>
constexpr bool agrees() {
  constexpr bool declared = contains<Hook, typename P::listens>;
  constexpr bool named = Hook::template named<State>;
  if constexpr (!declared) {
    return Hook::undeclared::template require<!named, P>();
  } else if constexpr (!named) {
    return Hook::unimplemented::template require<named, P>();
  } else {
    return fits<P, State, Phases, Hook>();
  }
}

/// Whether all hooks agree. If a State has exactly the declared names, only these are checked: a
/// function for each hook adds up.
template <class P, class State, class Phases, class... Listens, class... Hooks>
constexpr bool agree(list<Listens...>, list<Hooks...>) {
  constexpr bool known = (true && ... && contains<Listens, list<Hooks...>>);
  if constexpr (known && named_mask<State> == hook_mask<list<Listens...>>) {
    return (true & ... & fits<P, State, Phases, Listens>());
  } else {
    return rules::unknown_hook::require<known, P>() &&
           (true & ... & agrees<P, State, Phases, Hooks>());
  }
}

/// Whether a policy implements the services that it declares.
template <class P, class State, class... Services>
constexpr bool delivers(list<Services...>) {
  return (true & ... & Services::unmet::template require<Services::template met<P, State>, P>());
}

}  // namespace frugal::detail
