// SPDX-License-Identifier: Apache-2.0
// left to clang: pairs_first.cpp has the same templates
#include <doctest/doctest.h>

#include "conform/cover.hpp"

namespace frugal_test::conform_pairs {

/// The choices of an axis that combine with a policy.
template <class Extra, class A>
struct beside;
template <class Extra, class... Choices>
struct beside<Extra, Axis<Choices...>> {
  using type = frugal::concat<std::conditional_t<frugal::Recipe<Extra, Choices>::legal,
                                                 frugal::list<Choices>, frugal::list<>>...>;
};

/// One such choice from each axis: as many rows as the longest axis has choices cover all of them.
template <class Extra, std::size_t R, class... As>
auto row_beside(frugal::list<As...>) -> frugal::concat<
    frugal::list<Extra>,
    typename frugal::detail::policies_in<frugal::type_at<
        typename beside<Extra, As>::type, R % beside<Extra, As>::type::size>>::type...>;

constexpr std::size_t longest = *std::max_element(sizes.begin(), sizes.end());

// Not another axis: it excludes so much that the cover would need half as many rows again.
TEST_CASE("Audit trains with every policy that it combines with") {
  [&]<std::size_t... Rs>(std::index_sequence<Rs...>) {
    (train(decltype(row_beside<frugal::Audit<frugal::BitExact>, Rs>(Axes{})){}), ...);
  }(std::make_index_sequence<longest>{});
}

}  // namespace frugal_test::conform_pairs
