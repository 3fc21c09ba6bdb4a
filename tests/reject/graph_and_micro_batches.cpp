// SPDX-License-Identifier: Apache-2.0
// needs: torch
// expect: frugal: CudaGraph<WholeStep> captures one micro-batch for all but the first of a window, and a policy of this recipe listens to around::micro_batch, which tells the first and last micro-batch. The compiler's note names the policy. Remove it or CudaGraph<WholeStep>.
#include <frugal/core.hpp>
#include <frugal/core/compose/recipe.hpp>
#include <frugal/policy/cuda_graph.hpp>

#include <torch/nn/modules/linear.h>

using namespace frugal;

template <class... Ps>
constexpr bool hears = frugal::detail::RecipeCheck<typename Recipe<Ps...>::policies>::require();

/// Around hooks that return nothing may return nothing; the others return the result of next().
struct EachEpoch {
  struct kind : optional_kind {
    static constexpr std::string_view name = "EachEpoch";
  };
  using listens = list<frugal::around::epoch>;
  struct State {
    explicit State(EachEpoch const&) {}
    template <class Next>
    void around_epoch(EpochRun const&, Next&& next) {
      next();
    }
  };
};
struct EachMicroBatch {
  struct kind : optional_kind {
    static constexpr std::string_view name = "EachMicroBatch";
  };
  using listens = list<frugal::around::micro_batch>;
  struct State {
    explicit State(EachMicroBatch const&) {}
    template <class Next>
    void around_micro_batch(MicroBatchRun const&, Next&& next) {
      next();
    }
  };
};

using Sound = frugal::Context<torch::nn::Linear, EachEpoch, EachMicroBatch>::engine;
static_assert(sizeof(Sound) >= 1);
static_assert(hears<EachEpoch, CudaGraph<WholeStep>>);
static_assert(hears<EachMicroBatch, Accumulate<4>>);
#ifdef FRUGAL_REJECT
static_assert(hears<EachMicroBatch, CudaGraph<WholeStep>>);
#endif
