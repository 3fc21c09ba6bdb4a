// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ATen.h>
#include <c10/core/Device.h>
#include <torch/nn/module.h>

#include <optional>
#include <string>
#include <vector>

#include <frugal/core/libtorch/generators.hpp>
#include <frugal/core/libtorch/modes.hpp>
#include <frugal/core/libtorch/quietly.hpp>
#include <frugal/core/run/counters.hpp>
#include <frugal/core/run/gradient_norm.hpp>
#include <frugal/core/run/loss_accumulator.hpp>
#include <frugal/core/state/module_tensors.hpp>
#include <frugal/core/state/part.hpp>
#include <frugal/core/state/state_dict.hpp>

namespace frugal {

struct RunState;

/// A run at one moment, or parts of it, in memory. Repeated snapshots reuse its memory.
///
/// `restore` may throw, because copying to a device may; it is a call, not a destructor's work.
/// Snapshots hold no gradients: a restored run has none.
///
/// A policy whose State keeps a snapshot archives it with `persist`. Part::states covers every
/// policy's state, that State included, but no snapshot that one of them keeps.
class RunSnapshot {
 public:
  StateDict module;  ///< by name of parameter or buffer
  StateDict run;     ///< of Part::states or Part::slots, and of Part::generators
  /// Include the snapshots that policies keep, as a checkpoint does.
  bool with_kept = false;
  /// Leave out tensors that this process has whole, which another one saves.
  bool parts_alone = false;
  /// Names in `module` and paths in `run` of tensors that another process keeps.
  std::vector<std::string> module_elsewhere{}, run_elsewhere{};

  RunSnapshot() = default;
  // A copy would share tensors, which the next take() overwrites.
  RunSnapshot(RunSnapshot const&) = delete;
  RunSnapshot& operator=(RunSnapshot const&) = delete;
  RunSnapshot(RunSnapshot&&) = default;
  RunSnapshot& operator=(RunSnapshot&&) = default;
  ~RunSnapshot() = default;

  /// `floats`: the type for the module's floating-point tensors, or Undefined for their own.
  void take(RunState& from, Part parts, CopyTarget copies = CopyTarget::on_host,
            at::ScalarType floats = at::ScalarType::Undefined);

  /// Makes this a copy in host memory of a snapshot taken with CopyTarget::live, before the run goes
  /// on. Reuses the memory of this one. For Part::resumable.
  void copy(RunSnapshot const& of, c10::Device device);

  /// Restores the taken parts, or `only` some of them.
  void restore(RunState& into, std::optional<Part> only = std::nullopt);

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
  static void wait_for(c10::Device device);
  static void copy(StateDict const& from, StateDict& into);

  bool keeps_run() const { return holds(parts_, Part::states) || holds(parts_, Part::slots); }

  void take_module(RunState& from, CopyTarget copies, at::ScalarType floats);
  void move_back(torch::nn::Module& into) const;
  void restore_module(RunState& into) const;

  [[noreturn]] static void refuse_new_tensor(std::string const& name);

  void take_run(RunState& from, CopyTarget copies);
  void restore_run(RunState& into);

  void restore_generators(RunState& into);

  void take_window(RunState& from);

  // Drops the buffers of tensors that no longer exist, such as a policy's optional tensor.
  static void forget(StateDict& memory);

  Part parts_{};
  std::optional<c10::Device> device_;
  detail::Modes modes_;
  detail::GeneratorStates generators_;
  detail::BufferCopies buffers_;
  Counters counters_{};
  LossAccumulator::Mark ledger_{};
  GradientNorm norm_{};
};

namespace detail {

/// Calls `body`, then restores the run to `before`, even if `body` throws. An error of `body` takes
/// precedence over an error of the restore.
template <class Body>
void undone(RunSnapshot& before, RunState& run, Body&& body) {
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

#ifndef FRUGAL_COMPILED
#include <frugal/core/run/run_snapshot.ipp>
#endif
