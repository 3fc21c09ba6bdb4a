// SPDX-License-Identifier: Apache-2.0
#include <frugal/recipes.hpp>

#include <boost/hana/length.hpp>

#include <iostream>

struct Fast {};
struct Small {};

// Composes two policies that are none of frugal's; this tests that the component brings Boost.Hana.
int main() {
  namespace hana = boost::hana;
  constexpr auto recipes = frugal::product(frugal::Recipe<>{}, frugal::Axis<Fast, Small>{},
                                           frugal::Axis<frugal::Without, Fast>{});
  constexpr auto last = frugal::to_policies(recipes[hana::size_c<3>]);
  std::cout << decltype(hana::length(recipes))::value << " recipes, the last one with "
            << decltype(hana::length(last))::value << " policies\n";
  return decltype(hana::length(recipes))::value == 4 ? 0 : 1;
}
