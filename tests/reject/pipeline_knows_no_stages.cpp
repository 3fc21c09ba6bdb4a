// SPDX-License-Identifier: Apache-2.0
// needs: torch
// expect: frugal: with Pipeline a process has the layers of its own stages alone, and a policy of this recipe needs the whole module: Rollback, Recompute, Activations, Lora, Freeze and others. The compiler's note names the policy. Remove it or Pipeline, or write `using properties = frugal::list<frugal::property::knows_stages>;` in a policy of your own that is right with a part of the module.
#include <frugal/cluster/pipeline.hpp>
#include <frugal/core/compose/recipe.hpp>
#include <frugal/policy/checkpoint.hpp>
#include <frugal/policy/clip.hpp>
#include <frugal/policy/rollback.hpp>

using namespace frugal;

/// Demands what Pipeline does, without the headers of LibTorch's process groups.
struct Divides {
  struct kind : optional_kind {
    static constexpr std::string_view name = "Divides";
  };
  using listens = list<on::fit_begin>;
  using demands = list<frugal::detail::KnowsStages>;
  using properties = list<property::knows_stages>;
  struct State {
    using transient = void;
    explicit State(Divides const&) {}
    void on_fit_begin(FitBegin&) {}
  };
};

template <class... Ps>
constexpr bool stands = frugal::detail::RecipeCheck<typename Recipe<Ps...>::policies>::require();

static_assert(stands<Divides, ClipNorm<>, Checkpoint<>>);
#ifdef FRUGAL_REJECT
static_assert(stands<Divides, Rollback<>>);
#endif
