// SPDX-License-Identifier: Apache-2.0
// needs: torch
// expect: frugal: Shard<States> gives each process a part of the elements of gradients and weights, and a policy of this recipe takes whole tensors when it clips or updates. The compiler's note names the policy. Use ClipNorm, ClipValue, and Optimize with AdamW, Adam, SGD or Adagrad, or remove Shard; in a policy of your own that treats each element by itself, write `using properties = frugal::list<frugal::property::works_on_parts>;`, and in an optimizer call `phase.collect_parts()` after the update.
#include <frugal/cluster/replicate_options.hpp>
#include <frugal/core/compose/recipe.hpp>
#include <frugal/policy/clip.hpp>
#include <frugal/policy/optimize.hpp>

using namespace frugal;

/// Demands what Shard<States> does, without the headers of LibTorch's process groups.
struct DividesStates {
  struct kind : optional_kind {
    static constexpr std::string_view name = "DividesStates";
  };
  using listens = list<on::fit_begin>;
  using demands = list<frugal::detail::WorksOnParts>;
  struct State {
    using transient = void;
    explicit State(DividesStates const&) {}
    void on_fit_begin(FitBegin&) {}
  };
};

template <class... Ps>
constexpr bool stands = frugal::detail::RecipeCheck<typename Recipe<Ps...>::policies>::require();

static_assert(stands<DividesStates, ClipNorm<>, Optimize<AdamW>>);
static_assert(stands<DividesStates, ClipValue<1.0>, Optimize<SGD>>);
#ifdef FRUGAL_REJECT
static_assert(stands<DividesStates, ClipNorm<>, Optimize<Any>>);
#endif
