// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/core/run/run_snapshot.hpp>

#include <ATen/core/grad_mode.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <frugal/core/libtorch/layer_tensors.hpp>
#include <frugal/core/run/run_state.hpp>
#include <frugal/core/state/cut_tensors.hpp>
#include <frugal/core/state/state_reader.hpp>
#include <frugal/core/state/state_writer.hpp>
#include <frugal/core/state/tensor_part.hpp>
#include <frugal/error.hpp>
#include <frugal/inline.hpp>

#include <unordered_set>
#include <utility>
#include <variant>

namespace frugal {

FRUGAL_INLINE void RunSnapshot::take(RunState& from, Part parts, CopyTarget copies,
                                     at::ScalarType floats) {
  at::NoGradGuard const no_gradients;
  // The old contents are lost from here on, so report a bad loss first.
  if (holds(parts, Part::states)) from.losses.require_good();
  parts_ = parts;
  if (holds(parts, Part::module)) take_module(from, copies, floats);
  if (holds(parts, Part::modes)) modes_.take(from.root);
  if (keeps_run()) take_run(from, copies);
  if (holds(parts, Part::generators) && !keeps_run()) generators_.take(from.device);
  if (holds(parts, Part::window)) take_window(from);
  bool const waits = holds(parts, Part::module) || keeps_run();
  if (waits && (copies == CopyTarget::on_host || copies == CopyTarget::none)) wait_for(from.device);
}

FRUGAL_INLINE void RunSnapshot::copy(RunSnapshot const& of, c10::Device device) {
  at::NoGradGuard const no_gradients;
  parts_ = of.parts_;
  device_ = of.device_;
  copy(of.module, module);
  copy(of.run, run);
  wait_for(device);
}

FRUGAL_INLINE void RunSnapshot::restore(RunState& into, std::optional<Part> only) {
  at::NoGradGuard const no_gradients;
  Part const parts = only.value_or(parts_);
  into.window.gradients().clear();
  into.parameters.reset_gradients();
  if (holds(parts, Part::device)) move_back(into.root);
  if (holds(parts, Part::module)) restore_module(into);
  if (holds(parts, Part::modes)) modes_.restore();
  if (holds(parts, Part::states) || holds(parts, Part::slots)) restore_run(into);
  if (holds(parts, Part::generators)) restore_generators(into);
  if (holds(parts, Part::window)) {
    buffers_.restore();
    into.progress.go_to(counters_);
    into.losses.go_back(ledger_);
  }
}

FRUGAL_INLINE void RunSnapshot::wait_for(c10::Device device) {
  if (device.is_cpu()) return;
  c10::impl::VirtualGuardImpl const guard(device.type());
  guard.getStream(device).synchronize();
}

FRUGAL_INLINE void RunSnapshot::copy(StateDict const& from, StateDict& into) {
  StateWriter writer(into, CopyTarget::on_host);
  for (auto const& [path, tensor] : from.tensors) writer(path, tensor);
  writer.finish();
  into.values = from.values;
  forget(into);
}

FRUGAL_INLINE void RunSnapshot::take_module(RunState& from, CopyTarget copies,
                                            at::ScalarType floats) {
  module.values.clear();
  StateWriter rounding(module, copies, floats), exact(module, copies);
  module_elsewhere.clear();
  for (StateWriter* const each : {&rounding, &exact}) {
    if (with_kept) each->whole = from.together.whole_tensor;
    each->elsewhere = &module_elsewhere;
  }
  auto const keep_types = floats == at::ScalarType::Undefined
                              ? std::unordered_set<at::TensorImpl const*>()
                              : detail::tensors_that_keep_types(from.root);
  device_.reset();
  detail::visit_tensors(from.root, [&](std::string const& name, at::Tensor const& tensor) {
    if (!device_) device_ = tensor.device();
    StateWriter& writer = keep_types.contains(tensor.unsafeGetTensorImpl()) ? exact : rounding;
    if (auto const held =
            from.together.held_parts ? from.together.held_parts(tensor) : std::nullopt) {
      writer.part(name, held->mine, held->which);
    } else if (auto const part = part_of(tensor)) {
      writer.part(name, tensor, *part);
    } else if (!parts_alone || from.together.places.saves(name)) {
      writer(name, tensor);
    }
  });
  rounding.finish();
  exact.finish();
  forget(module);
}

FRUGAL_INLINE void RunSnapshot::move_back(torch::nn::Module& into) const {
  bool moved = false;
  detail::visit_tensors(into, [&](std::string const&, at::Tensor const& tensor) {
    moved = moved || (device_ && tensor.device() != *device_);
  });
  if (moved) into.to(*device_);
}

FRUGAL_INLINE void RunSnapshot::restore_module(RunState& into) const {
  detail::visit_tensors(into.root, [&](std::string const& name, at::Tensor const& tensor) {
    auto const taken = module.tensors.find(name);
    if (taken == module.tensors.end()) refuse_new_tensor(name);
    auto const held = into.together.held_parts ? into.together.held_parts(tensor) : std::nullopt;
    (held ? held->mine : tensor).copy_(taken->second);
  });
}

FRUGAL_INLINE void RunSnapshot::refuse_new_tensor(std::string const& name) {
  throw StateError({.what = "the module has a tensor that it did not have at the snapshot",
                    .where = name,
                    .why = "the snapshot has no value for it",
                    .fix = "Register parameters and buffers before fit, or in on_module."});
}

FRUGAL_INLINE void RunSnapshot::take_run(RunState& from, CopyTarget copies) {
  run.values.clear();
  StateWriter writer(run, copies);
  writer.of_a_snapshot = !with_kept;
  writer.parts_alone = parts_alone;
  writer.places = &from.together.places;
  run_elsewhere.clear();
  writer.elsewhere = &run_elsewhere;
  if (with_kept) writer.whole = from.together.whole_tensor;
  if (holds(parts_, Part::states)) {
    from.persist(writer);
  } else {
    from.links.policies().persist_slots(writer);
    norm_ = from.window.norm();
  }
  if (holds(parts_, Part::generators)) {
    detail::persist_generators(writer, from.settings.device);
  }
  writer.finish();
  forget(run);
}

FRUGAL_INLINE void RunSnapshot::restore_run(RunState& into) {
  StateReader reader(run);
  reader.of_a_snapshot = !with_kept;
  if (holds(parts_, Part::states)) {
    into.persist(reader);
    return;
  }
  into.links.policies().persist_slots(reader);
  into.window.set_norm(norm_);
  into.window.forget_overflow();
  into.window.set_loss({});
}

FRUGAL_INLINE void RunSnapshot::restore_generators(RunState& into) {
  if (keeps_run()) {
    StateReader reader(run);
    detail::persist_generators(reader, into.settings.device);
  } else {
    generators_.restore();
  }
}

FRUGAL_INLINE void RunSnapshot::take_window(RunState& from) {
  buffers_.take(from.root);
  counters_ = from.counters();
  ledger_ = from.losses.mark();
}

FRUGAL_INLINE void RunSnapshot::forget(StateDict& memory) {
  std::erase_if(memory.tensors, [&](auto const& entry) {
    auto const value = memory.values.find(entry.first);
    return value == memory.values.end() || std::holds_alternative<std::monostate>(value->second);
  });
}

}  // namespace frugal
