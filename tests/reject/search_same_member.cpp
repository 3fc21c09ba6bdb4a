// SPDX-License-Identifier: Apache-2.0
// needs: recipes
// expect: frugal: two settings of a SearchSpace set the same member, and one of them would change nothing. Name each member in one vary<...>() only.
#include <frugal/search/space.hpp>

using namespace frugal;

struct Shape {
  int width = 1, depth = 1;
};
#ifdef FRUGAL_REJECT
auto const second = vary<&Shape::depth, &Shape::width>("second", Int{1, 4});
#else
auto const second = vary<&Shape::depth>("second", Int{1, 4});
#endif
SearchSpace const space{Axis<Without>{}, vary<&Shape::width>("first", Int{1, 4}), second};
