// SPDX-License-Identifier: Apache-2.0
// needs: recipes
// expect: frugal: vary<...>() sets numbers, bools and texts. Give the module a member of such a type, and make what you need of it in make().
#include <frugal/search/space.hpp>

#include <vector>

using namespace frugal;

struct Shape {
  int width = 1;
  std::vector<int> widths{};
};
auto const good = vary<&Shape::width>(Int{1, 4});
#ifdef FRUGAL_REJECT
auto const bad = vary<&Shape::widths>(Int{1, 4});
#endif
