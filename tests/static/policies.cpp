// SPDX-License-Identifier: Apache-2.0
// needs: recipes
// Which of frugal's own policies combine, and in which order: all checked at compile time.
#include <doctest/doctest.h>

#include <frugal/recipes.hpp>

#include <boost/hana/all_of.hpp>
#include <boost/hana/equal.hpp>
#include <boost/hana/length.hpp>
#include <boost/hana/transform.hpp>

#include "conform/policies.hpp"

namespace frugal_test::static_policies {

using namespace frugal_test::conform;
namespace hana = boost::hana;
using frugal::list;
using frugal::Recipe;

template <class... Choices>
list<Choices...> choices_in(Axis<Choices...>);
template <class... As>
frugal::concat<decltype(choices_in(As{}))...> all_choices(list<As...>);

/// Neither Without nor a recipe of several policies that need each other.
template <class P>
constexpr bool is_policy = requires { typename P::kind; };

/// A format that skips windows itself does not combine with the policy that does.
template <class P, class Q>
constexpr bool skip_twice = std::same_as<P, frugal::SkipNonFinite> &&
                            frugal::detail::has_property<frugal::property::skips_overflows, Q>;

/// One policy with each of a list: legal with every other kind, and with its own if repeatable.
template <class P, class... Qs>
constexpr bool as_kinds_say(list<Qs...>) {
  return (... && [] {
    if constexpr (is_policy<P> && is_policy<Qs>) {
      bool const one_kind = P::kind::name == Qs::kind::name;
      bool const legal =
          (!one_kind || P::kind::repeatable) && !skip_twice<P, Qs> && !skip_twice<Qs, P>;
      return Recipe<P, Qs>::legal == legal &&
             (legal || !one_kind || Recipe<P, Qs>::fault == frugal::rules::duplicate::text);
    } else {
      return true;
    }
  }());
}
template <class... Ps>
constexpr bool all_as_kinds_say(list<Ps...> all) {
  return (... && as_kinds_say<Ps>(all));
}

TEST_CASE("two of frugal's policies combine unless they fill one slot") {
  constexpr bool as_they_say = all_as_kinds_say(decltype(all_choices(Axes{})){});
  CHECK(as_they_say);
}

TEST_CASE("the product over all optimizers, schedules and formats is legal, recipe by recipe") {
  constexpr auto all = frugal::product(
      Recipe<>{}, frugal::Axis<frugal::Optimize<frugal::AdamW>, frugal::Optimize<frugal::SGD>>{},
      frugal::Axis<Without, frugal::Schedule<frugal::Warmup<3>, frugal::Cosine>>{},
      frugal::Axis<frugal::Precision<frugal::FP32>, frugal::Precision<frugal::BF16>>{},
      frugal::Axis<frugal::Accumulate<1>, frugal::Accumulate<4>>{});
  CHECK(decltype(hana::length(all))::value == 16);
  CHECK(decltype(hana::all_of(all, frugal::is_legal))::value);
}

template <class... Choices>
constexpr auto with_each_of(list<Choices...>) {
  return frugal::product(Recipe<frugal::Optimize<frugal::AdamW>>{}, frugal::Axis<Choices...>{});
}

TEST_CASE("a recipe with each of frugal's policies converts to its policies and back") {
  constexpr auto all = with_each_of(decltype(all_choices(Axes{})){});
  CHECK(decltype(hana::length(all))::value > 50);
  constexpr auto back =
      hana::transform(hana::transform(all, frugal::to_policies), frugal::to_recipe);
  CHECK(decltype(hana::equal(back, all))::value);
}

template <class... Ps>
using order = frugal::Trainer<torch::nn::Linear, frugal::CrossEntropy, Ps...>::policies;

template <class K, class... Ps>
constexpr std::size_t place_of(list<Ps...>) {
  std::size_t at = 0;
  bool found = false;
  ((found = found || Ps::kind::name == K::name, at += !found), ...);
  return at;
}
/// Whether the first kind sees events before the second, in the largest possible recipe.
template <class First, class Second>
constexpr bool before =
    place_of<First>(order<frugal::Optimize<frugal::AdamW>, frugal::EarlyStop<>, frugal::Log<>,
                          frugal::Progress<>, frugal::DryRun<>, frugal::ClipNorm<>,
                          frugal::Precision<frugal::BF16>, frugal::Schedule<frugal::Plateau<>>>{}) <
    place_of<Second>(order<frugal::Optimize<frugal::AdamW>, frugal::EarlyStop<>, frugal::Log<>,
                           frugal::Progress<>, frugal::DryRun<>, frugal::ClipNorm<>,
                           frugal::Precision<frugal::BF16>, frugal::Schedule<frugal::Plateau<>>>{});

TEST_CASE("policies see events in the order that their meaning requires") {
  namespace k = frugal::kinds;
  CHECK(before<k::log, k::schedule>);         // a log line has the learning rate of its step
  CHECK(before<k::log, k::validate>);         // and is written before the validation that the step
                                              // triggers
  CHECK(before<k::schedule, k::validate>);    // a plateau lowers the factor that the curve has set
  CHECK(before<k::validate, k::early_stop>);  // a policy that watches a metric runs after the one
                                              // that measures it
  CHECK(before<k::optimizer, k::dry_run>);    // a dry run needs the optimizer
  CHECK(before<k::dry_run, k::log>);          // and nothing is written before it has passed
  CHECK(before<k::dry_run, k::progress>);
}

TEST_CASE("only Optimize<Any> of the built-in policies waits for the device in every step") {
  CHECK(frugal::Trainer<torch::nn::Linear, frugal::CrossEntropy, frugal::Optimize<frugal::AdamW>,
                        frugal::EarlyStop<>, frugal::Log<>, frugal::Progress<>, frugal::ClipNorm<>,
                        frugal::Precision<frugal::BF16>>::host_syncs_per_step == 0);
  CHECK(frugal::Trainer<torch::nn::Linear, frugal::CrossEntropy,
                        frugal::Optimize<frugal::Any>>::host_syncs_per_step == 1);
}

}  // namespace frugal_test::static_policies
