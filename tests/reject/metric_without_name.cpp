// SPDX-License-Identifier: Apache-2.0
// needs: torch
// expect: frugal: a metric of this recipe has no name. The compiler's note names its type: write `static constexpr std::string_view name = "...";` in it, or `std::string own_name() const` if a member is in its name.
#include <frugal/policy/validate.hpp>

#include <string_view>

using namespace frugal;

struct Named {
  static constexpr std::string_view name = "named";
  template <class B>
  void add(Loss const&, B const&) {}
  double result() const { return 0; }
};
struct Nameless {
  template <class B>
  void add(Loss const&, B const&) {}
  double result() const { return 0; }
};
static_assert(sizeof(Validate<Every<1, Epoch>, Named>) != 0);
#ifdef FRUGAL_REJECT
static_assert(sizeof(Validate<Every<1, Epoch>, Nameless>) != 0);
#endif
