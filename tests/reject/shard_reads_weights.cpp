// SPDX-License-Identifier: Apache-2.0
// needs: torch
// expect: frugal: with Shard<States, Grads, Params> a process has the weights of a layer while that computes, and a policy of this recipe reads weights at other times. The compiler's note names the policy. Remove it, or use Shard<States, Grads>; in a policy of your own that looks at no weights, write `using properties = frugal::list<frugal::property::reads_no_weights>;`.
#include <frugal/cluster/replicate_options.hpp>
#include <frugal/core/compose/recipe.hpp>
#include <frugal/policy/average.hpp>
#include <frugal/policy/optimize.hpp>
#include <frugal/policy/stop_after.hpp>

using namespace frugal;

/// Demands what Shard<States, Grads, Params> does, without the headers of LibTorch's process groups.
struct DividesWeights {
  struct kind : optional_kind {
    static constexpr std::string_view name = "DividesWeights";
    using properties = list<property::reads_no_weights>;
  };
  using listens = list<on::fit_begin>;
  using demands = list<frugal::detail::WorksWithoutWeights>;
  struct State {
    using transient = void;
    explicit State(DividesWeights const&) {}
    void on_fit_begin(FitBegin&) {}
  };
};

template <class... Ps>
constexpr bool stands = frugal::detail::RecipeCheck<typename Recipe<Ps...>::policies>::require();

static_assert(stands<DividesWeights, Optimize<AdamW>, StopAfter<Hours<4>>>);
#ifdef FRUGAL_REJECT
static_assert(stands<DividesWeights, Optimize<AdamW>, Average<Ema<0.9>>>);
#endif
