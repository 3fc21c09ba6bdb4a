// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <type_traits>
#include <utility>

#include <frugal/core/compose/policy.hpp>
#include <frugal/core/compose/recipe.hpp>

namespace frugal::detail {

// [[no_unique_address]] lets an empty policy share its neighbours' address; the index distinguishes
// two leaves of one type.
template <std::size_t I, class T>
struct Leaf {
  [[no_unique_address]] T value{};

  Leaf() = default;
  template <class From>
  explicit Leaf(std::in_place_t, From const& from) : value(from) {}
  /// The second one for what asks for it.
  template <class From, class Also>
  Leaf(std::in_place_t, From const& from, Also const&) : value(from) {}
  template <class From, class Also>
    requires std::constructible_from<T, From const&, Also const&>
  Leaf(std::in_place_t, From const& from, Also const& also) : value(from, also) {}
};

template <std::size_t I, class T>
constexpr T& get(Leaf<I, T>& leaf) {
  return leaf.value;
}
template <std::size_t I, class T>
constexpr T const& get(Leaf<I, T> const& leaf) {
  return leaf.value;
}

template <class Indices, class... Ts>
struct Leaves;

template <std::size_t... Is, class... Ts>
struct Leaves<std::index_sequence<Is...>, Ts...> : Leaf<Is, Ts>... {
  Leaves() = default;

  /// Constructs each leaf in place from the leaf at the same position: States need not be movable.
  template <class From>
  explicit Leaves(std::in_place_t, From const& from)
      : Leaf<Is, Ts>(std::in_place, get<Is>(from))... {}
  template <class From, class Also>
  Leaves(std::in_place_t, From const& from, Also const& also)
      : Leaf<Is, Ts>(std::in_place, get<Is>(from), also)... {}
};

template <class... Ts>
using Storage = Leaves<std::index_sequence_for<Ts...>, Ts...>;

}  // namespace frugal::detail

// Sets of a recipe's policies as one bit for each, in their order. Recipes with the same set share what is
// instantiated for it.
namespace frugal::detail {

constexpr std::uint64_t bits_of(std::initializer_list<bool> set) {
  std::uint64_t bits = 0;
  std::size_t i = 0;
  for (bool const each : set) bits |= std::uint64_t{each} << i++;
  return bits;
}

/// The policies that listen to a hook, by its number.
constexpr std::uint64_t subscribers_of(std::span<PolicyInfo const> infos, std::size_t hook) {
  std::uint64_t bits = 0;
  for (std::size_t i = 0; i < infos.size(); ++i) {
    bits |= std::uint64_t{(infos[i].listens >> hook) & 1U} << i;
  }
  return bits;
}

/// The position of set bit number `n`, counted from 0.
constexpr std::size_t nth_bit(std::uint64_t bits, std::size_t n) {
  while (n-- != 0) bits &= bits - 1;
  return static_cast<std::size_t>(std::countr_zero(bits));
}

template <std::uint64_t Bits, class Numbers>
struct positions_of;
template <std::uint64_t Bits, std::size_t... Ns>
struct positions_of<Bits, std::index_sequence<Ns...>> {
  using type = std::index_sequence<nth_bit(Bits, Ns)...>;
};

/// The positions of the set bits, as an index_sequence.
template <std::uint64_t Bits>
using set_bits = typename positions_of<Bits, std::make_index_sequence<std::popcount(Bits)>>::type;

template <class Slot, class... Ps>
inline constexpr bool fills = (false || ... || (kind_key<typename Ps::kind> == kind_key<Slot>));

/// Whether the list has a policy of the kind.
template <class Kind, class List>
inline constexpr bool has = false;
template <class Kind, class... Ps>
inline constexpr bool has<Kind, list<Ps...>> = fills<Kind, Ps...>;

/// A recipe with the null policy in every slot that it leaves open.
template <class Slots, class Policies>
struct complete;
template <class... Slots, class... Ps>
struct complete<list<Slots...>, list<Ps...>> {
  using type = concat<list<Ps...>, std::conditional_t<fills<Slots, Ps...>, list<>,
                                                      list<typename null_policy<Slots>::type>>...>;
};

template <class Policies>
struct in_order;
template <class... Ps>
struct in_order<list<Ps...>> {
  static constexpr auto const& order = order_in<Ps...>;

  template <std::size_t... Is>
  static list<type_at<list<Ps...>, order.position[Is]>...> pick(std::index_sequence<Is...>);
  using type = decltype(pick(std::index_sequence_for<Ps...>{}));
};

/// The policies of a recipe, slots completed, in an order that is the same for all permutations.
template <class Slots, class Policies>
using composed = typename in_order<typename complete<Slots, Policies>::type>::type;

template <class List>
struct storage_of;
template <class... Ps>
struct storage_of<list<Ps...>> {
  using type = Storage<Ps...>;
};

/// An illegal recipe is not composed, so that its sentences are the only errors.
template <bool Legal, class Slots, class Policies>
struct composed_if {
  using type = composed<Slots, list<>>;
};
template <class Slots, class Policies>
struct composed_if<true, Slots, Policies> {
  using type = composed<Slots, Policies>;
};
template <bool Legal, class Slots, class Policies>
using composed_if_legal = typename composed_if<Legal, Slots, Policies>::type;

/// The position of the policy with that kind.
template <class K, class... Ps>
consteval std::size_t index_of(list<Ps...>) {
  constexpr auto const& infos = infos_of<Ps...>;
  std::size_t index = 0;
  while (index < infos.size() && infos[index].kind != K::name) ++index;
  return index;
}

/// The position of number I of the policies of a kind; the length of the list without one.
template <class K, class... Ps>
consteval std::size_t index_of_nth(std::size_t nth, list<Ps...>) {
  constexpr auto const& infos = infos_of<Ps...>;
  for (std::size_t index = 0; index < infos.size(); ++index) {
    if (infos[index].kind == K::name && nth-- == 0) return index;
  }
  return infos.size();
}

/// The policy in a slot.
template <class K, class List>
using slot_of = type_at<List, index_of<K>(List{})>;

/// Refuses, for each policy that watches validation, a fit without validation data.
template <class... Ps>
constexpr bool require_validation(list<Ps...>) {
  return (true & ... & []<class P>(std::type_identity<P>) {
    if constexpr (requires { typename P::watches_validation; }) {
      if constexpr (!std::is_void_v<typename P::watches_validation>) {
        return P::watches_validation::template require<false, P>();
      }
    }
    return true;
  }(std::type_identity<Ps>{}));
}

/// Refuses a training source that a policy's `source_demands` do not take, and one which says, with
/// `trained_with`, the kind of a policy that the recipe lacks. `Order` is the source's order_type.
template <class Source, class Order, class... Ps>
constexpr bool require_source(list<Ps...>) {
  constexpr auto met = []<class P, class... Ds>(std::type_identity<P>, list<Ds...>) {
    return (true & ... & Ds::sentence::template require<Ds::template met<Source>, P, Source>());
  };
  bool all = (true & ... & met(std::type_identity<Ps>{}, typename source_demands_of<Ps>::type{}));
  if constexpr (requires { typename Order::trained_with; }) {
    constexpr bool has =
        (false || ... || std::same_as<typename Ps::kind, typename Order::trained_with>);
    all = Order::trained_without::template require<has, Source>() && all;
  }
  return all;
}

template <class Objective, class Demand, class... Ps>
constexpr bool require_demand() {
  return (true & ... &
          Demand::sentence::template require<Demand::template met<Ps>, Objective, Ps>());
}

/// Refuses an objective which says, with `trained_with`, the kind of a policy that the recipe lacks, and one
/// whose `demands` a policy does not meet.
template <class Objective, class... Ps>
constexpr bool require_objective(list<Ps...>) {
  bool const all = []<class... Ds>(list<Ds...>) {
    return (true & ... & require_demand<Objective, Ds, Ps...>());
  }(typename demands_of<Objective>::type{});
  if constexpr (requires { typename Objective::trained_with; }) {
    constexpr bool has =
        (false || ... || std::same_as<typename Ps::kind, typename Objective::trained_with>);
    return Objective::trained_without::template require<has, Objective>() && all;
  }
  return all;
}

/// Assigns a policy's value to the first unassigned leaf of its type.
template <class... Ps>
class Assignment {
 public:
  explicit Assignment(Storage<Ps...>& storage) : storage_(storage) {}

  // A Recipe passed as a value only names types; it has no settings.
  template <class... Rs>
  Assignment& operator<<(Recipe<Rs...> const&) {
    return *this;
  }
  template <class P>
  Assignment& operator<<(P const& value) {
    constexpr std::uint64_t places = bits_of({std::same_as<P, Ps>...});
    static_assert(places != 0,
                  "frugal: this policy value is not in the trainer's recipe. Name its type in the "
                  "Trainer, or let the types be deduced from the values.");
    assign(value, set_bits<places>{});
    return *this;
  }

 private:
  template <class P, std::size_t... Is>
  void assign(P const& value, std::index_sequence<Is...>) {
    bool assigned = false;
    (assign_at<Is>(value, assigned), ...);
  }
  template <std::size_t I, class P>
  void assign_at(P const& value, bool& assigned) {
    if (assigned || taken_[I]) return;
    get<I>(storage_) = value;
    assigned = taken_[I] = true;
  }

  Storage<Ps...>& storage_;
  bool taken_[sizeof...(Ps) + 1] = {};
};

template <class... Ps>
Assignment<Ps...> assignment_to(Storage<Ps...>& storage, list<Ps...>) {
  return Assignment<Ps...>(storage);
}

}  // namespace frugal::detail
