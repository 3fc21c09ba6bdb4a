// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <frugal/core/run/recipe_traits.hpp>

#include <tuple>
#include <type_traits>

namespace frugal_test::loop_recipe_traits {

using frugal::list;
using frugal::detail::RecipeTraits;

struct Plain {};
struct Four {
  static constexpr int micro_batches = 4;
};
struct AsManyAsFit {
  static constexpr int micro_batches = 0;
};
struct Searches {
  using properties = list<frugal::property::reevaluates>;
};
struct Measures {
  using metrics = list<int, long>;
};
struct MeasuresMore {
  using metrics = list<char>;
};
struct HasValues {
  using measures = list<int, long>;
  std::tuple<int, long> metrics{3, 4};
};
struct Together {};
struct Agrees {
  using provides = list<frugal::service::reduce>;
  using strategy = Together;
};

TEST_CASE("a recipe without requirements has one micro-batch per window and no other code") {
  using Traits = RecipeTraits<list<Plain>>;
  static_assert(Traits::micro_batches == 1 && Traits::batches == 1);
  static_assert(!Traits::splits && !Traits::reevaluates);
  static_assert(std::is_same_v<Traits::metrics, list<>>);
}

TEST_CASE("one policy's requirement is the recipe's") {
  static_assert(RecipeTraits<list<Plain, Four>>::batches == 4);
  static_assert(RecipeTraits<list<AsManyAsFit>>::splits);
  static_assert(RecipeTraits<list<AsManyAsFit>>::batches == 1, "one batch of the source, split");
  static_assert(RecipeTraits<list<Searches, Plain>>::reevaluates);
  static_assert(frugal::detail::facts_of<list<Plain, Agrees>>().shares);
  static_assert(!frugal::detail::facts_of<list<Plain, Four>>().shares);
  static_assert(std::is_same_v<frugal::detail::strategy_or<list<Plain, Agrees>, void>, Together>);
  static_assert(std::is_same_v<frugal::detail::strategy_or<list<Plain>, void>, void>);
  static_assert(std::is_same_v<RecipeTraits<list<Measures, Plain, MeasuresMore>>::metrics,
                               list<int, long, char>>);
}

TEST_CASE("metrics begin with the policy's values, or are default-made") {
  frugal::detail::Storage<Plain, HasValues, MeasuresMore> values;
  CHECK((frugal::detail::metrics_in(values) == std::tuple<int, long, char>{3, 4, '\0'}));
  static_assert(
      std::is_same_v<decltype(frugal::detail::metrics_in(frugal::detail::Storage<Plain>())),
                     std::tuple<>>);
}

}  // namespace frugal_test::loop_recipe_traits
