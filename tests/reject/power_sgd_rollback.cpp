// SPDX-License-Identifier: Apache-2.0
// needs: torch
// expect: frugal: Rollback keeps a copy of the run, and with Wire<PowerSGD<R>> each process would have errors of its own in it, which no checkpoint can hold. Remove Wire or Rollback.
#include <frugal/cluster/power_sgd.hpp>
#include <frugal/core/compose/recipe.hpp>
#include <frugal/policy/clip.hpp>
#include <frugal/policy/rollback.hpp>

using namespace frugal;

/// Has the conflicts of Wire<PowerSGD<R>>, without the headers of LibTorch's process groups.
struct Compresses {
  struct kind : optional_kind {
    static constexpr std::string_view name = "Compresses";
  };
  using listens = list<on::fit_begin>;
  using conflicts = typename Wire<PowerSGD<4>>::conflicts;
  struct State {
    using transient = void;
    explicit State(Compresses const&) {}
    void on_fit_begin(FitBegin&) {}
  };
};

template <class... Ps>
constexpr bool stands = frugal::detail::RecipeCheck<typename Recipe<Ps...>::policies>::require();

static_assert(stands<Compresses, ClipNorm<>>);
#ifdef FRUGAL_REJECT
static_assert(stands<Compresses, Rollback<>>);
#endif
