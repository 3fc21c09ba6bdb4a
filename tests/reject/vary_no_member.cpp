// SPDX-License-Identifier: Apache-2.0
// needs: recipes
// expect: frugal: vary<...>() takes pointers to members. Write vary<&Optimize<AdamW>::lr>(LogUniform{1e-4, 1e-1}).
#include <frugal/search/space.hpp>

using namespace frugal;

struct Shape {
  int width = 1;
  int twice() const { return 2 * width; }
};
auto const good = vary<&Shape::width>(Int{1, 4});
#ifdef FRUGAL_REJECT
auto const bad = vary<&Shape::twice>("width", Int{1, 4});
#endif
