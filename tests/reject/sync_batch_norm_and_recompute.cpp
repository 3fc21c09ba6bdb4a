// SPDX-License-Identifier: Apache-2.0
// needs: torch
// expect: frugal: Recompute calls layers a second time in the backward pass, and SyncBatchNorm exchanges statistics in each call, which a process without a micro-batch would count twice. Remove one of them.
#include <frugal/cluster/replicate_options.hpp>
#include <frugal/core/compose/recipe.hpp>
#include <frugal/policy/clip.hpp>
#include <frugal/policy/recompute.hpp>

using namespace frugal;

/// Has the conflicts of Replicate<Ring, SyncBatchNorm>, without the headers of LibTorch's process
/// groups.
struct Syncs {
  struct kind : optional_kind {
    static constexpr std::string_view name = "Syncs";
  };
  using listens = list<on::fit_begin>;
  using conflicts = frugal::detail::SyncBatchNormConflicts;
  struct State {
    using transient = void;
    explicit State(Syncs const&) {}
    void on_fit_begin(FitBegin&) {}
  };
};

template <class... Ps>
constexpr bool stands = frugal::detail::RecipeCheck<typename Recipe<Ps...>::policies>::require();

static_assert(stands<Syncs, ClipNorm<>>);
#ifdef FRUGAL_REJECT
static_assert(stands<Syncs, Recompute<>>);
#endif
