// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/core/compose/about.hpp>
#include <frugal/core/compose/list.hpp>
#include <frugal/core/compose/options.hpp>
#include <frugal/core/compose/rational.hpp>
#include <frugal/core/compose/recipe_facts.hpp>
#include <frugal/core/compose/scope.hpp>
#include <frugal/core/run/counters.hpp>
#include <frugal/core/run/recipe_traits.hpp>
#include <frugal/core/state/state_dict.hpp>
#include <frugal/core/state/state_reader.hpp>
#include <frugal/error.hpp>
#include <frugal/policy/checkpoint/options.hpp>
#include <frugal/policy/checkpoint/state_file.hpp>

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <initializer_list>
#include <map>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace frugal::detail {

/// A type's name without namespaces of frugal, and without arguments: the part that compilers spell
/// alike.
constexpr std::string_view bare_name(std::string_view name) {
  name = name.substr(0, name.find('<'));
  constexpr std::string_view own = "frugal::";
  return name.starts_with(own) ? name.substr(own.size()) : name;
}

/// A type as the compiler spells it, with what compilers are known to differ in taken out.
constexpr std::string portable_name(std::string_view name) {
  std::string out;
  for (std::size_t i = 0; i < name.size(); ++i) {
    char const c = name[i];
    bool const in_number = !out.empty() && out.back() >= '0' && out.back() <= '9';
    if (c == ' ' || (in_number && (c == 'u' || c == 'U' || c == 'l' || c == 'L'))) continue;
    out += c;
    if (out.ends_with("frugal::")) out.resize(out.size() - 8);
    if (out.ends_with("Automatic()") || out.ends_with("Automatic{}")) {
      out.replace(out.size() - 11, 11, "Auto");
    }
  }
  return out;
}

/// An argument that is a value: numbers and enumerators by their digits, 0.5 as "1/2".
template <auto Value>
constexpr std::string name_of_value() {
  using T = std::remove_const_t<decltype(Value)>;
  if constexpr (std::same_as<T, bool>) {
    return Value ? "true" : "false";
  } else if constexpr (std::is_enum_v<T>) {
    return name_of_value<static_cast<std::underlying_type_t<T>>(Value)>();
  } else if constexpr (std::is_integral_v<T>) {
    std::string digits;
    // Not std::to_string, which is no constant expression.
    bool const negative = std::cmp_less(Value, 0);
    auto rest = static_cast<std::uint64_t>(Value);
    if (negative) rest = 0 - rest;
    do {
      digits.insert(digits.begin(), static_cast<char>('0' + rest % 10));
      rest /= 10;
    } while (rest != 0);
    if (negative) digits.insert(digits.begin(), '-');
    return digits;
  } else if constexpr (std::same_as<T, Rational>) {
    if constexpr (Value.denominator == 1) return name_of_value<Value.numerator>();
    return name_of_value<Value.numerator>() + "/" + name_of_value<Value.denominator>();
  } else if constexpr (std::same_as<T, Automatic>) {
    return "Auto";
  } else if constexpr (std::convertible_to<T, std::string_view>) {
    return "'" + std::string(std::string_view(Value)) + "'";
  } else {
    return std::string(bare_name(type_name<T>()));
  }
}

/// The policy in a slot, as a checkpoint names it: "Schedule<Warmup<10>, CosineDecay<1/10, 0>>".
///
/// A user-defined policy may name itself, in a `static constexpr std::string_view identity`.
/// Mixtures of template arguments that are not handled here get the compiler's spelling. A policy
/// whose options come in any order has the type `canonical`, with the order that is saved.
template <class T>
constexpr std::string saved_name();

constexpr std::string joined_name(std::string_view bare,
                                  std::initializer_list<std::string> arguments) {
  std::string out(bare);
  char const* before = "<";
  for (std::string const& each : arguments) {
    out += before;
    out += each;
    before = ", ";
  }
  if (arguments.size() == 0) out += before;
  return out += '>';
}

// Which shape a template has; of those that fit, the one of the higher rank.
template <int Rank>
struct NameShape : NameShape<Rank - 1> {};
template <>
struct NameShape<0> {};

template <template <class...> class P, class... Ts>
constexpr std::string name_by_shape(std::type_identity<P<Ts...>>, NameShape<4>) {
  return joined_name(bare_name(type_name<P<Ts...>>()), {saved_name<Ts>()...});
}
template <template <auto...> class P, auto... Vs>
constexpr std::string name_by_shape(std::type_identity<P<Vs...>>, NameShape<3>) {
  return joined_name(bare_name(type_name<P<Vs...>>()), {name_of_value<Vs>()...});
}
template <template <auto, class...> class P, auto V, class... Ts>
constexpr std::string name_by_shape(std::type_identity<P<V, Ts...>>, NameShape<2>) {
  return joined_name(bare_name(type_name<P<V, Ts...>>()),
                     {name_of_value<V>(), saved_name<Ts>()...});
}
template <template <class, auto...> class P, class T, auto... Vs>
constexpr std::string name_by_shape(std::type_identity<P<T, Vs...>>, NameShape<1>) {
  return joined_name(bare_name(type_name<P<T, Vs...>>()),
                     {saved_name<T>(), name_of_value<Vs>()...});
}
template <class T>
constexpr std::string name_by_shape(std::type_identity<T>, NameShape<0>) {
  return portable_name(type_name<T>());
}

template <class T>
constexpr std::string saved_name() {
  if constexpr (requires { std::string_view(T::identity); }) {
    return std::string(std::string_view(T::identity));
  } else {
    return name_by_shape(std::type_identity<typename canonical_of<T>::type>{}, NameShape<4>{});
  }
}

/// The name of the policy in each slot of a recipe, by the slot's kind.
using Slots = std::map<std::string, std::string>;

/// The kind of a policy in a slot, and what gives its name; of an observer the latter is null.
struct SlotName {
  std::string_view kind;
  std::string (*name)();
};
template <class P>
inline constexpr SlotName slot_name_of = {P::kind::name, nullptr};
template <class P>
  requires(P::kind::slot)
inline constexpr SlotName slot_name_of<P> = {P::kind::name, &saved_name<P>};

Slots slots_from(std::span<SlotName const> policies);

/// Another policy in a slot makes another run; of observers only the persisted state is compared.
/// Micro-batches that are given at run time are named as those in a type: "Accumulate<8>".
template <class... Ps>
Slots slots_of(list<Ps...>, RecipeFacts const& facts) {
  static constexpr std::array<SlotName, sizeof...(Ps)> policies{slot_name_of<Ps>...};
  Slots slots = slots_from(policies);
  [[maybe_unused]] auto const name = [&]<class P>(std::type_identity<P>) {
    if constexpr (gives_micro_batches<P>) {
      slots[std::string(P::kind::name)] =
          joined_name(bare_name(type_name<P>()), {std::to_string(facts.batches)});
    }
  };
  (name(std::type_identity<Ps>{}), ...);
  return slots;
}

}  // namespace frugal::detail

namespace frugal {
struct RunState;
}  // namespace frugal

namespace frugal::detail {

/// The allowed differences between a run and the checkpoint that it resumes from.
struct RecipeRules {
  ChangedRecipe changed = ChangedRecipe::Refuse;
  /// Kinds whose state starts fresh where the checkpoint's does not fit.
  std::vector<std::string> start_fresh{};
  /// Names of a DataIdentity whose values may differ.
  std::vector<std::string> changed_data{};

  bool keeps() const { return changed == ChangedRecipe::KeepWhatFits; }
};

/// SettingsError for rules without an effect.
void require_rules(RecipeRules const& rules);

[[noreturn]] void refuse_checkpoint(std::filesystem::path const& where, std::string why,
                                    std::string fix);
[[noreturn]] void refuse_checkpoint(std::filesystem::path const& where, std::string why);
/// Where the recipe differs. `kind`: whose part it is; the optimizer's must match.
[[noreturn]] void refuse_recipe(std::filesystem::path const& where, std::string_view kind,
                                std::string why);

/// "EarlyStop" of "policies/EarlyStop/best"; nothing for a path that is no policy's.
std::string_view scope_in(std::string_view path);

/// A slot that is filled otherwise than in the checkpoint.
struct SlotChange {
  std::string slot;
  std::string there;
  std::string here;
};

std::vector<SlotChange> changed_slots(StateFile const& state, Slots const& recipe);

/// Loads the policies' states from a checkpoint of a possibly different recipe. Policies without a
/// saved state start fresh; so do those in `start_fresh` whose state does not fit. Returns each
/// difference in words. StateError names a state that does not fit and is not in `start_fresh`.
class FittingStates {
 public:
  /// `changed`: of the slots of `recipe`, those that differ.
  FittingStates(RunState& run, StateReader& reader, StateDict const& memory,
                RecipeRules const& rules, Slots const& recipe,
                std::vector<SlotChange> const& changed);

  std::vector<std::string> load(std::filesystem::path const& where);

 private:
  void load_one(std::string const& scope, std::filesystem::path const& where);

  void start_fresh(std::string const& scope);

  [[noreturn]] static void refuse(std::string const& scope, StateError const& error,
                                  std::filesystem::path const& where);

  RunState& run_;
  StateReader& reader_;
  RecipeRules const& rules_;
  std::vector<std::string> changes_;
  std::vector<SavedScope> scopes_;  ///< of which the checkpoint has a state
  std::set<std::string> replaced_;  ///< slots of another type
  std::set<std::string> fresh_;
};

}  // namespace frugal::detail

#ifndef FRUGAL_COMPILED
#include <frugal/policy/checkpoint/saved_recipe.ipp>
#endif
