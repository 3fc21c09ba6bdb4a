// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/base/number_text.hpp>
#include <frugal/core/compose/list.hpp>
#include <frugal/core/compose/policy.hpp>
#include <frugal/core/compose/written_name.hpp>
#include <frugal/error.hpp>
#include <frugal/recipes.hpp>
#include <frugal/search/results/winner_code.hpp>
#include <frugal/search/trials/candidate.hpp>

#include <boost/hana/for_each.hpp>
#include <boost/hana/type.hpp>

#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

namespace frugal {

namespace detail {

template <class>
struct member_parts;
template <class T, class C>
struct member_parts<T C::*> {
  using owner = C;
  using type = T;
};

template <auto Member>
struct MemberTag {};

template <class Tag, class... Tags>
constexpr int count_of_tag(list<Tags...>) {
  return (0 + ... + int{std::same_as<Tag, Tags>});
}
/// Whether no member is in two of the lists, or twice in one.
template <class... Lists>
constexpr bool are_different() {
  return []<class... Tags>(list<Tags...> all) {
    return (true && ... && (count_of_tag<Tags>(all) == 1));
  }(concat<Lists...>{});
}

/// "lr" of &Optimize<AdamW>::lr.
template <auto Member>
std::string member_name() {
  std::string_view const text = value_spelling<Member>();
  std::size_t const end = text.find_last_not_of(") ") + 1;
  std::size_t const colon = text.substr(0, end).rfind(':');
  return std::string(text.substr(colon + 1, end - colon - 1));
}

/// SettingsError unless every value of the distribution is one of T.
template <class T>
void require_fits(Distribution const& of, std::string const& name) {
  auto const refuse = [&](char const* why, char const* fix) {
    throw SettingsError({.what = "the setting '" + name + "' does not fit its member",
                         .where = "vary()",
                         .why = why,
                         .fix = fix});
  };
  bool const names = std::holds_alternative<Choice>(of);
  if constexpr (std::same_as<T, std::string>) {
    if (!names) refuse("the member is a text", "Write Choice{{\"a\", \"b\"}}.");
  } else if constexpr (std::same_as<T, bool>) {
    bool const whole = std::holds_alternative<Int>(of) && std::get<Int>(of).low >= 0 &&
                       std::get<Int>(of).high <= 1;
    if (!whole) refuse("the member is a bool", "Write Int{0, 1}.");
  } else {
    if (names)
      refuse("the member is a number, and a Choice has names", "Write Int, Uniform or LogUniform.");
    if constexpr (std::integral<T>) {
      if (!std::holds_alternative<Int>(of)) {
        refuse("the member is a whole number, and the values are real", "Write Int{low, high}.");
      }
      Int const& whole = std::get<Int>(of);
      if (!std::in_range<T>(whole.low) || !std::in_range<T>(whole.high)) {
        refuse("the member cannot hold all of the values", "Give a range that its type has.");
      }
    }
  }
}

template <class T>
struct settable {
  static constexpr bool value =
      std::same_as<T, std::string> || std::integral<T> || std::floating_point<T>;
  using type = T;
};
template <class T>
struct settable<std::optional<T>> : settable<T> {};

template <class T>
T setting_value(Distribution const& of, double value) {
  if constexpr (std::same_as<T, std::string>) {
    return std::get<Choice>(of).names.at(static_cast<std::size_t>(value));
  } else if constexpr (std::same_as<T, bool>) {
    return value != 0;
  } else {
    return static_cast<T>(value);
  }
}

}  // namespace detail

/// A setting of a search: members of policies, of the architecture or of the objective that get its value.
/// Made by vary().
template <auto... Members>
struct Vary {
  using members = list<detail::MemberTag<Members>...>;

  std::string name{};
  Distribution values{};

  /// Whether an object of this type has one of the members.
  template <class Object>
  static constexpr bool is_in =
      (false || ... ||
       std::derived_from<Object, typename detail::member_parts<decltype(Members)>::owner>);

  /// Sets the members that the object has.
  template <class Object>
  void set(Object& object, double value) const {
    [[maybe_unused]] auto const set_one = [&]<auto Member>() {
      using Parts = detail::member_parts<decltype(Member)>;
      if constexpr (std::derived_from<Object, typename Parts::owner>) {
        using T = typename detail::settable<typename Parts::type>::type;
        object.*Member = detail::setting_value<T>(values, value);
      }
    };
    (set_one.template operator()<Members>(), ...);
  }
  /// The names of the members that the object has.
  template <class Object>
  static std::vector<std::string> members_of() {
    std::vector<std::string> found;
    [[maybe_unused]] auto const take = [&]<auto Member>() {
      using Owner = typename detail::member_parts<decltype(Member)>::owner;
      if (std::derived_from<Object, Owner>) found.push_back(detail::member_name<Member>());
    };
    (take.template operator()<Members>(), ...);
    return found;
  }
  void require() const {
    require_values(values, name);
    (detail::require_fits<
         typename detail::settable<typename detail::member_parts<decltype(Members)>::type>::type>(
         values, name),
     ...);
  }
};

/// A setting that a search varies, named by its member or as given. A recipe has it if one of its policies has
/// the member; members of the architecture and of the objective belong to every recipe.
///
///     vary<&Optimize<AdamW>::lr>(LogUniform{1e-4, 1e-1})
///     vary<&Optimize<AdamW>::lr, &Optimize<SGD>::lr>(LogUniform{1e-4, 1e-1})
///     vary<&Shape::width>("channels", Int{32, 256, 32})
template <auto... Members>
Vary<Members...> vary(std::string name, Distribution values) {
  static_assert(sizeof...(Members) != 0,
                "frugal: vary<...>() names the members that it sets. Write "
                "vary<&Optimize<AdamW>::lr>(LogUniform{1e-4, 1e-1}).");
  static_assert((true && ... && std::is_member_object_pointer_v<decltype(Members)>),
                "frugal: vary<...>() takes pointers to members. Write "
                "vary<&Optimize<AdamW>::lr>(LogUniform{1e-4, 1e-1}).");
  static_assert(
      (true && ... &&
       (!std::is_member_object_pointer_v<decltype(Members)> ||
        detail::settable<typename detail::member_parts<decltype(Members)>::type>::value)),
      "frugal: vary<...>() sets numbers, bools and texts. Give the module a member of such a "
      "type, and make what you need of it in make().");
  return {std::move(name), std::move(values)};
}
template <auto First, auto... Members>
Vary<First, Members...> vary(Distribution values) {
  return vary<First, Members...>(detail::member_name<First>(), std::move(values));
}

/// The space of a search: recipes, a Hana sequence such as a product(), and settings.
///
///     SearchSpace space{product(Recipe<Optimize<AdamW>>{}, Axis<Without, ClipNorm<>>{}),
///                       vary<&Optimize<AdamW>::lr>(LogUniform{1e-4, 1e-1}),
///                       vary<&Shape::width>(Int{32, 256, 32})};
template <class Recipes, class... Settings>
struct SearchSpace {
  explicit SearchSpace(Recipes recipes_, Settings... settings_)
      : recipes(std::move(recipes_)), settings(std::move(settings_)...) {
    static_assert(detail::require_types<Recipes>() || true);
    static_assert(
        detail::are_different<typename Settings::members...>(),
        "frugal: two settings of a SearchSpace set the same member, and one of them would "
        "change nothing. Name each member in one vary<...>() only.");
  }

  Recipes recipes;
  std::tuple<Settings...> settings;
};

}  // namespace frugal

namespace frugal::detail {

/// The members of one recipe's trainer that the settings of a space set: those of its policies, of the
/// architecture and of the objective. A policy of a repeatable kind has none: a trainer may hold two of it.
///
/// `settings` is everywhere the tuple of SearchSpace, and `candidate` has one value for each of them.
template <class Policies, class Architecture, class Objective>
class SettingPlaces {
 public:
  /// Whether a trainer of this recipe has a member that the setting sets.
  template <class V>
  static constexpr bool has() {
    return V::template is_in<Architecture> || V::template is_in<Objective> ||
           []<class... Qs>(list<Qs...>) {
             return (false || ... || is_in_policy<V, Qs>);
           }(Policies{});
  }

  /// Sets the members of an architecture or of an objective.
  template <class... Vs, class Object>
  static void set(std::tuple<Vs...> const& settings, Candidate const& candidate, Object& object) {
    each_value(settings, candidate,
               [&](auto const& setting, double value) { setting.set(object, value); });
  }

  /// Sets the members of the trainer's policies.
  template <class... Vs, class Trainer>
  static void set_policies(std::tuple<Vs...> const& settings, Candidate const& candidate,
                           Trainer& trainer) {
    each_value(settings, candidate, [&]<class V>(V const& setting, double value) {
      each_policy_with<V>([&]<class Q>(std::type_identity<Q>) {
        setting.set(trainer.template policy<typename Q::kind>(), value);
      });
    });
  }

  /// "; width 32; depth 2": the candidate's architecture.
  template <class... Vs>
  static std::string architecture(std::tuple<Vs...> const& settings, Candidate const& candidate) {
    std::string text;
    each_value(settings, candidate, [&]<class V>(V const& setting, double value) {
      if constexpr (V::template is_in<Architecture>) {
        text += "; " + setting.name + " " + shortest_text(value);
      }
    });
    return text;
  }

  /// The places as code.
  template <class... Vs>
  static WinnerCode code(std::tuple<Vs...> const& settings, std::string recipe) {
    WinnerCode all{.recipe_type = std::move(recipe), .settings = {}, .architecture = "shape"};
    std::apply([&](auto const&... each) { (add_place(all, each), ...); }, settings);
    return all;
  }

 private:
  template <class V, class Q>
  static constexpr bool is_in_policy = V::template is_in<Q> && !Q::kind::repeatable;

  template <class... Vs, class Call>
  static void each_value(std::tuple<Vs...> const& settings, Candidate const& candidate,
                         Call&& call) {
    std::size_t i = 0;
    auto const one = [&](auto const& setting) {
      if (auto const value = candidate.values[i++]) call(setting, *value);
    };
    std::apply([&](auto const&... each) { (one(each), ...); }, settings);
  }

  /// Calls `call(std::type_identity<Q>{})` for each policy that has the setting.
  template <class V, class Call>
  static void each_policy_with(Call&& call) {
    auto const one = [&]<class Q>(std::type_identity<Q> policy) {
      if constexpr (is_in_policy<V, Q>) call(policy);
    };
    [&]<class... Qs>(list<Qs...>) { (one(std::type_identity<Qs>{}), ...); }(Policies{});
  }

  template <class V>
  static void add_place(WinnerCode& all, V const& setting) {
    auto const add = [&]<class Object>(std::string const& place, std::type_identity<Object>) {
      for (std::string& member : V::template members_of<Object>()) {
        all.settings.push_back(
            {.setting = setting.name, .place = place, .member = std::move(member)});
      }
    };
    add("architecture", std::type_identity<Architecture>{});
    add("trainer.objective()", std::type_identity<Objective>{});
    each_policy_with<V>([&]<class Q>(std::type_identity<Q> policy) {
      add("trainer.policy<" + written_name<Q>() + "::kind>()", policy);
    });
  }
};

}  // namespace frugal::detail
