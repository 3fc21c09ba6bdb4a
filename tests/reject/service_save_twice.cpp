// SPDX-License-Identifier: Apache-2.0
// needs: torch
// expect: frugal: two policies of this recipe save the run, and its folder holds one series of checkpoints. Remove one of them.
// expect: Saver
#include <frugal/core/compose/recipe.hpp>
#include <frugal/policy/checkpoint.hpp>

using namespace frugal;

template <class... Ps>
constexpr bool hears = frugal::detail::RecipeCheck<typename Recipe<Ps...>::policies>::require();

struct Saver {
  struct kind : optional_kind {
    static constexpr std::string_view name = "Saver";
  };
  using listens = list<frugal::on::step>;
  using provides = list<frugal::service::save>;
};

static_assert(hears<Saver>);
#ifdef FRUGAL_REJECT
static_assert(hears<Checkpoint<Every<500>>, Saver>);
#endif
