// SPDX-License-Identifier: Apache-2.0
// needs: torch
// expect: frugal: a metric of this recipe has no result(). The compiler's note names its type: write `double result() const` in it, the value over all batches that add() was given.
// expect: Resultless
#include <frugal/policy/validate.hpp>

#include <string_view>

using namespace frugal;

struct Measured {
  static constexpr std::string_view name = "measured";
  template <class B>
  void add(Loss const&, B const&) {}
  double result() const { return 0; }
};
struct Resultless {
  static constexpr std::string_view name = "resultless";
  template <class B>
  void add(Loss const&, B const&) {}
  double compute() const { return 0; }
};
static_assert(sizeof(Validate<Every<1, Epoch>, Measured>) != 0);
#ifdef FRUGAL_REJECT
static_assert(sizeof(Validate<Every<1, Epoch>, Resultless>) != 0);
#endif
