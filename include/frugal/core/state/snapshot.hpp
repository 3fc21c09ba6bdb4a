// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <torch/nn/module.h>

#include <optional>
#include <string>
#include <unordered_set>
#include <utility>
#include <variant>

#include <frugal/core/libtorch/generators.hpp>
#include <frugal/core/libtorch/layer_tensors.hpp>
#include <frugal/core/libtorch/modes.hpp>
#include <frugal/core/libtorch/quietly.hpp>
#include <frugal/core/state/cut_tensors.hpp>
#include <frugal/core/state/module_tensors.hpp>
#include <frugal/core/state/state_dict.hpp>
#include <frugal/core/state/state_reader.hpp>
#include <frugal/core/state/state_writer.hpp>
#include <frugal/core/state/tensor_places.hpp>
#include <frugal/error.hpp>

namespace frugal {

/// The parts of a run that a snapshot can hold.
enum class Part : unsigned {
  module = 1,       ///< parameters and buffers, on whichever device they are at restore
  modes = 2,        ///< training or evaluation, for each submodule
  states = 4,       ///< training progress, and every policy's state
  slots = 8,        ///< the states of the slots alone, and the results of the last step
  generators = 16,  ///< those that the run uses on its device
  window = 32,      ///< what the passes of a window change: buffers, counters, losses
  device = 64,      ///< the module's device
  resumable = module | states | generators,        ///< everything that going back restores
  outside = module | modes | device | generators,  ///< everything that belongs to the module's
                                                   ///< owner
  tried = module | modes | slots | generators,     ///< everything that trial steps must leave
                                                   ///< unchanged
  passes = window | generators,                    ///< everything that retrying a window restores
};
constexpr Part operator|(Part a, Part b) {
  return static_cast<Part>(static_cast<unsigned>(a) | static_cast<unsigned>(b));
}
constexpr bool holds(Part parts, Part one) {
  return (static_cast<unsigned>(parts) & static_cast<unsigned>(one)) != 0;
}

/// A run at one moment, or parts of it, in memory. Repeated snapshots reuse its memory.
///
/// `restore` may throw, because copying to a device may; it is a call, not a destructor's work.
/// Snapshots hold no gradients: a restored run has none.
///
/// A policy whose State keeps a snapshot archives it with `persist`. Part::states covers every
/// policy's state, that State included, but no snapshot that one of them keeps.
template <class Run>
class Snapshot {
 public:
  StateDict module;  ///< by name of parameter or buffer
  StateDict run;     ///< of Part::states or Part::slots, and of Part::generators
  /// Include the snapshots that policies keep, as a checkpoint does.
  bool with_kept = false;
  /// Leave out tensors that this process has whole, which another one saves.
  bool parts_alone = false;
  /// Names in `module` and paths in `run` of tensors that another process keeps.
  std::vector<std::string> module_elsewhere{}, run_elsewhere{};

  Snapshot() = default;
  // A copy would share tensors, which the next take() overwrites.
  Snapshot(Snapshot const&) = delete;
  Snapshot& operator=(Snapshot const&) = delete;
  Snapshot(Snapshot&&) = default;
  Snapshot& operator=(Snapshot&&) = default;
  ~Snapshot() = default;

  /// `floats`: the type for the module's floating-point tensors, or Undefined for their own.
  void take(Run& from, Part parts, CopyTarget copies = CopyTarget::on_host,
            at::ScalarType floats = at::ScalarType::Undefined) {
    at::NoGradGuard const no_gradients;
    // The old contents are lost from here on, so report a bad loss first.
    if (holds(parts, Part::states)) from.ledger.require_good();
    parts_ = parts;
    if (holds(parts, Part::module)) take_module(from, copies, floats);
    if (holds(parts, Part::modes)) modes_.take(from.root);
    if (keeps_run()) take_run(from, copies);
    if (holds(parts, Part::generators) && !keeps_run()) generators_.take(from.device);
    if (holds(parts, Part::window)) take_window(from);
    bool const waits = holds(parts, Part::module) || keeps_run();
    if (waits && (copies == CopyTarget::on_host || copies == CopyTarget::none))
      wait_for(from.device);
  }

  /// Makes this a copy in host memory of a snapshot taken with CopyTarget::live, before the run goes
  /// on. Reuses the memory of this one. For Part::resumable.
  void copy(Snapshot const& of, c10::Device device) {
    at::NoGradGuard const no_gradients;
    parts_ = of.parts_;
    device_ = of.device_;
    copy(of.module, module);
    copy(of.run, run);
    wait_for(device);
  }

  /// Restores the taken parts, or `only` some of them.
  void restore(Run& into, std::optional<Part> only = std::nullopt) {
    at::NoGradGuard const no_gradients;
    Part const parts = only.value_or(parts_);
    into.gradients.clear();
    into.parameters.reset_gradients();
    if (holds(parts, Part::device)) move_back(into.root);
    if (holds(parts, Part::module)) restore_module(into);
    if (holds(parts, Part::modes)) modes_.restore();
    if (holds(parts, Part::states) || holds(parts, Part::slots)) restore_run(into);
    if (holds(parts, Part::generators)) restore_generators(into);
    if (holds(parts, Part::window)) {
      buffers_.restore();
      into.counters = counters_;
      into.ledger.go_back(ledger_);
    }
  }

  /// True before the first take() or load.
  bool empty() const { return parts_ == Part{}; }

  /// Saves or loads a snapshot of Part::resumable, for a policy whose resumed run may have to go back to
  /// it. Does nothing if the archive is another snapshot's: otherwise each would nest all the
  /// others.
  template <class Archive>
  void persist(Archive& archive) {
    if (archive.of_a_snapshot) return;
    archive.scope("module", [&](auto& inner) { persist_state_dict(inner, module); });
    archive.scope("run", [&](auto& inner) { persist_state_dict(inner, run); });
    if (!Archive::loading) return;
    parts_ = module.values.empty() ? Part{} : Part::resumable;
    device_.reset();
  }

 private:
  /// Copies are asynchronous: waits once for all of them.
  static void wait_for(c10::Device device) {
    if (device.is_cpu()) return;
    c10::impl::VirtualGuardImpl const guard(device.type());
    guard.getStream(device).synchronize();
  }
  static void copy(StateDict const& from, StateDict& into) {
    StateWriter writer(into, CopyTarget::on_host);
    for (auto const& [path, tensor] : from.tensors) writer(path, tensor);
    writer.finish();
    into.values = from.values;
    forget(into);
  }

  bool keeps_run() const { return holds(parts_, Part::states) || holds(parts_, Part::slots); }

  void take_module(Run& from, CopyTarget copies, at::ScalarType floats) {
    module.values.clear();
    StateWriter rounding(module, copies, floats), exact(module, copies);
    module_elsewhere.clear();
    for (StateWriter* const each : {&rounding, &exact}) {
      if (with_kept) each->whole = from.whole_tensor;
      each->elsewhere = &module_elsewhere;
    }
    auto const keep_types = floats == at::ScalarType::Undefined
                                ? std::unordered_set<at::TensorImpl const*>()
                                : detail::tensors_that_keep_types(from.root);
    device_.reset();
    detail::visit_tensors(from.root, [&](std::string const& name, at::Tensor const& tensor) {
      if (!device_) device_ = tensor.device();
      StateWriter& writer = keep_types.contains(tensor.unsafeGetTensorImpl()) ? exact : rounding;
      if (auto const held = from.held_parts ? from.held_parts(tensor) : std::nullopt) {
        writer.part(name, held->mine, held->which);
      } else if (auto const part = part_of(tensor)) {
        writer.part(name, tensor, *part);
      } else if (!parts_alone || from.places.saves(name)) {
        writer(name, tensor);
      }
    });
    rounding.finish();
    exact.finish();
    forget(module);
  }
  void move_back(torch::nn::Module& into) const {
    bool moved = false;
    detail::visit_tensors(into, [&](std::string const&, at::Tensor const& tensor) {
      moved = moved || (device_ && tensor.device() != *device_);
    });
    if (moved) into.to(*device_);
  }
  void restore_module(Run& into) const {
    detail::visit_tensors(into.root, [&](std::string const& name, at::Tensor const& tensor) {
      auto const taken = module.tensors.find(name);
      if (taken == module.tensors.end()) refuse_new_tensor(name);
      auto const held = into.held_parts ? into.held_parts(tensor) : std::nullopt;
      (held ? held->mine : tensor).copy_(taken->second);
    });
  }

  [[noreturn]] static void refuse_new_tensor(std::string const& name) {
    throw StateError({.what = "the module has a tensor that it did not have at the snapshot",
                      .where = name,
                      .why = "the snapshot has no value for it",
                      .fix = "Register parameters and buffers before fit, or in on_module."});
  }

  void take_run(Run& from, CopyTarget copies) {
    run.values.clear();
    StateWriter writer(run, copies);
    writer.of_a_snapshot = !with_kept;
    writer.parts_alone = parts_alone;
    writer.places = &from.places;
    run_elsewhere.clear();
    writer.elsewhere = &run_elsewhere;
    if (with_kept) writer.whole = from.whole_tensor;
    if (holds(parts_, Part::states)) {
      from.persist(writer);
    } else {
      from.policies.persist_slots(writer);
      norm_ = from.gradient_norm;
    }
    if (holds(parts_, Part::generators)) {
      detail::persist_generators(writer, from.settings.device);
    }
    writer.finish();
    forget(run);
  }
  void restore_run(Run& into) {
    StateReader reader(run);
    reader.of_a_snapshot = !with_kept;
    if (holds(parts_, Part::states)) {
      into.persist(reader);
      return;
    }
    into.policies.persist_slots(reader);
    into.gradient_norm = norm_;
    into.overflow = {};
    into.window_loss = at::Tensor();
  }

  void restore_generators(Run& into) {
    if (keeps_run()) {
      StateReader reader(run);
      detail::persist_generators(reader, into.settings.device);
    } else {
      generators_.restore();
    }
  }

  void take_window(Run& from) {
    buffers_.take(from.root);
    counters_ = from.counters;
    ledger_ = from.ledger.mark();
  }

  // Drops the buffers of tensors that no longer exist, such as a policy's optional tensor.
  static void forget(StateDict& memory) {
    std::erase_if(memory.tensors, [&](auto const& entry) {
      auto const value = memory.values.find(entry.first);
      return value == memory.values.end() || std::holds_alternative<std::monostate>(value->second);
    });
  }

  Part parts_{};
  std::optional<c10::Device> device_;
  detail::Modes modes_;
  detail::GeneratorStates generators_;
  detail::BufferCopies buffers_;
  decltype(Run::counters) counters_{};
  decltype(std::declval<Run&>().ledger.mark()) ledger_{};
  decltype(Run::gradient_norm) norm_{};
};

namespace detail {

/// Calls `body`, then restores the run to `before`, even if `body` throws. An error of `body` takes
/// precedence over an error of the restore.
template <class Run, class Body>
void undone(Snapshot<Run>& before, Run& run, Body&& body) {
  try {
    body();
  } catch (...) {
    quietly([&] { before.restore(run); });
    throw;
  }
  before.restore(run);
}

}  // namespace detail
}  // namespace frugal
