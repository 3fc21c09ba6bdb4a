// SPDX-License-Identifier: Apache-2.0
// expect: frugal: two kinds of this recipe have the same name. The order, messages and checkpoints tell kinds apart by name. Give your kind another name.
#include "../core/compose/stand_ins.hpp"

using namespace frugal_test::compose;

template <class... Ps>
constexpr bool hears =
    frugal::detail::RecipeCheck<typename frugal::Recipe<Ps...>::policies>::require();

struct namesake : optional_kind {
  static constexpr std::string_view name = alpha::name;
};

static_assert(hears<Setting<alpha>, Setting<beta>>);
static_assert(hears<Setting<namesake>>);
#ifdef FRUGAL_REJECT
static_assert(hears<Setting<alpha>, Setting<namesake>>);
#endif
