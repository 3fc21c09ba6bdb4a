// SPDX-License-Identifier: Apache-2.0
// needs: recipes
// expect: frugal: vary<...>() names the members that it sets. Write vary<&Optimize<AdamW>::lr>(LogUniform{1e-4, 1e-1}).
#include <frugal/search/space.hpp>

using namespace frugal;

struct Shape {
  int width = 1;
};
auto const good = vary<&Shape::width>("width", Int{1, 4});
#ifdef FRUGAL_REJECT
auto const bad = vary<>("width", Int{1, 4});
#endif
