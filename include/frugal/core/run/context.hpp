// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <type_traits>

#include <frugal/core/compose/engine.hpp>
#include <frugal/core/compose/hooks.hpp>
#include <frugal/core/compose/list.hpp>
#include <frugal/core/run/metrics.hpp>
#include <frugal/core/run/objective.hpp>
#include <frugal/core/run/phases.hpp>
#include <frugal/core/run/window_phases.hpp>

namespace frugal {

namespace detail {

template <class Hook, class Context>
struct phase_of;
template <class C>
struct phase_of<on::module, C> : std::type_identity<ModuleSetup<C>> {};
template <class C>
struct phase_of<around::fit, C> : std::type_identity<FitRun<C>> {};
template <class C>
struct phase_of<on::ready, C> : std::type_identity<Ready<C>> {};
template <class C>
struct phase_of<around::epoch, C> : std::type_identity<EpochRun<C>> {};
template <class C>
struct phase_of<on::window, C> : std::type_identity<WindowBegin<C>> {};
template <class C>
struct phase_of<around::micro_batch, C> : std::type_identity<MicroBatchRun<C>> {};
template <class C>
struct phase_of<on::preempt, C> : std::type_identity<Preemption<C>> {};
template <class C>
struct phase_of<on::recorded, C> : std::type_identity<Recorded<C>> {};
template <class C>
struct phase_of<query::stop_requested, C> : std::type_identity<Phase<C>> {};
template <class C>
struct phase_of<on::fit_begin, C> : std::type_identity<FitBegin<C>> {};
template <class C>
struct phase_of<on::epoch_begin, C> : std::type_identity<EpochBegin<C>> {};
template <class C>
struct phase_of<around::forward, C> : std::type_identity<Forward<C>> {};
template <class C>
struct phase_of<on::loss, C> : std::type_identity<LossReady<C>> {};
template <class C>
struct phase_of<on::backward, C> : std::type_identity<Backward<C>> {};
template <class C>
struct phase_of<on::gradients, C> : std::type_identity<Gradients<C>> {};
template <class C>
struct phase_of<on::update, C> : std::type_identity<Update<C>> {};
template <class C>
struct phase_of<on::step, C> : std::type_identity<Step<C>> {};
template <class C>
struct phase_of<around::validate, C> : std::type_identity<ValidationRun<C>> {};
template <class C>
struct phase_of<on::validated, C> : std::type_identity<Validated<C>> {};
template <class C>
struct phase_of<on::epoch_end, C> : std::type_identity<EpochEnd<C>> {};
template <class C>
struct phase_of<on::fit_end, C> : std::type_identity<FitEnd<C>> {};
template <class C>
struct phase_of<on::undo, C> : std::type_identity<WindowRetry<C>> {};

// The result type of an around-hook's `next`.
template <class Hook>
struct Continuation {
  void operator()() const;
};
template <>
struct Continuation<around::forward> {
  Loss operator()() const;
};
template <>
struct Continuation<around::validate> {
  Metrics operator()() const;
};

}  // namespace detail

/// The types that a policy's State is written against: the module, the recipe, the phases.
template <class Module, class... Ps>
struct Context {
  using module_type = Module;
  using policies = list<Ps...>;
  using engine = Engine<Context, Ps...>;
  template <class Hook>
  using phase = typename detail::phase_of<Hook, Context>::type;
  template <class Hook>
  using continuation = detail::Continuation<Hook>;
};

}  // namespace frugal
