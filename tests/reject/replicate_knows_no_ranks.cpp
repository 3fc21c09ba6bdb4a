// SPDX-License-Identifier: Apache-2.0
// needs: torch
// expect: frugal: Replicate runs a recipe in several processes, and a policy of this recipe does not know of the others: it would write the same file in each, or come to another state in each. The compiler's note names the policy. Remove it or Replicate, or write `using properties = frugal::list<frugal::property::knows_ranks>;` in a policy of your own that does the same in every process.
#include <frugal/cluster/replicate_options.hpp>
#include <frugal/core/compose/recipe.hpp>
#include <frugal/policy/clip.hpp>
#include <frugal/policy/importance.hpp>

using namespace frugal;

/// Demands what Replicate does, without the headers of LibTorch's process groups.
struct Divides {
  struct kind : optional_kind {
    static constexpr std::string_view name = "Divides";
  };
  using listens = list<on::fit_begin>;
  using demands = list<frugal::detail::KnowsRanks>;
  using properties = list<property::knows_ranks>;
  struct State {
    using transient = void;
    explicit State(Divides const&) {}
    void on_fit_begin(FitBegin&) {}
  };
};

template <class... Ps>
constexpr bool stands = frugal::detail::RecipeCheck<typename Recipe<Ps...>::policies>::require();

static_assert(stands<Divides, ClipNorm<>>);
#ifdef FRUGAL_REJECT
static_assert(stands<Divides, Importance<>>);
#endif
