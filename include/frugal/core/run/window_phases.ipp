// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/core/run/window_phases.hpp>

#include <frugal/core/run/failure.hpp>
#include <frugal/core/run/interfaces.hpp>
#include <frugal/core/run/norm_accumulator.hpp>
#include <frugal/core/run/run_state.hpp>
#include <frugal/inline.hpp>

#include <cmath>

namespace frugal {

FRUGAL_INLINE void WindowBegin::move_to(c10::Device device) { run().links.loop()->move_to(device); }

FRUGAL_INLINE void WindowBegin::set_learning_rate_factor(double factor) {
  run().rate.set_factor(factor, run().counters());
}

FRUGAL_INLINE double const& MicroBatchRun::gradient_unit() const {
  return run().window.gradient_unit();
}

FRUGAL_INLINE bool Captured::is_being_captured() const {
  return run().links.capture() != nullptr && run().links.capture()->capturing();
}

FRUGAL_INLINE void Captured::after_each_replay(std::function<void()> call) {
  run().links.capture()->defer(std::move(call));
}

FRUGAL_INLINE std::vector<at::Tensor> const& Gradients::gradients() const {
  return run().window.gradients().tensors();
}

FRUGAL_INLINE std::vector<at::Tensor> Gradients::norms() const {
  return run().links.facts().divides ? run().links.others()->norms(run().updated())
                                     : at::_foreach_norm(gradients(), 2);
}

FRUGAL_INLINE void Gradients::report_norm(double norm) {
  bool const guards = counts_ && !overflow().defined();
  on_host([norm, guards](Gradients& now) {
    if (guards) now.look_at_norm(norm);
    now.run().window.set_norm(norm);
  });
}

FRUGAL_INLINE void Gradients::report_norm(at::Tensor norm) {
  bool const guards = counts_ && !overflow().defined();
  if (run().links.capture() != nullptr) {
    return on_host([norm, guards](Gradients& now) {
      // The next replay writes to the tensor.
      if (guards) now.look_at_norm(norm.clone());
      now.run().window.set_norm(norm);
    });
  }
  if (guards) look_at_norm(norm);
  run().window.set_norm(std::move(norm));
}

FRUGAL_INLINE void Gradients::report_overflow(at::Tensor found) {
  run().window.set_overflow(std::move(found));
}

FRUGAL_INLINE at::Tensor const& Gradients::overflow() const { return run().window.overflow(); }

FRUGAL_INLINE void Gradients::skip_step() { run().window.skip_step(); }

FRUGAL_INLINE void Gradients::look_at_norm(double norm) {
  if (!std::isfinite(norm)) [[unlikely]]
    throw detail::non_finite_gradient(norm, run().window.place());
}

FRUGAL_INLINE void Gradients::look_at_norm(at::Tensor const& norm) {
  run().losses.add_norm(norm, run().window.place(), this->counters());
}

FRUGAL_INLINE at::Tensor const& Update::learning_rate_tensor() const {
  return run().links.capture()->rate();
}

FRUGAL_INLINE void Update::state_has_moved() const {
  if (run().links.capture() != nullptr) run().links.capture()->state_has_moved();
}

FRUGAL_INLINE void Update::report_group_factor(std::size_t group, double factor) {
  run().rate.set_group_factor(group, factor);
}

FRUGAL_INLINE GradientList const& Update::gradients() const { return run().window.gradients(); }

FRUGAL_INLINE void Update::collect_parts() {
  if (run().links.facts().divides) run().links.others()->collect_parts();
}

FRUGAL_INLINE at::Tensor const& Update::overflow() const { return run().window.overflow(); }

FRUGAL_INLINE at::Tensor const& Update::loss() const { return run().window.loss(); }

FRUGAL_INLINE at::Tensor Update::reevaluate() { return run().links.loop()->reevaluate(); }

}  // namespace frugal
