// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ATen.h>

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include <frugal/core/run/run_snapshot.hpp>
#include <frugal/core/run/run_state.hpp>
#include <frugal/core/source/source.hpp>
#include <frugal/core/state/module_tensors.hpp>
#include <frugal/core/state/state_dict.hpp>
#include <frugal/core/state/state_reader.hpp>

namespace frugal::detail {

/// The part of the loop that a dry run uses.
class DryRunBatches {
 public:
  /// The result of one batch.
  struct Outcome {
    std::string shapes;
    double loss = 0;
  };
  virtual void seek_to(Cursor const& where) = 0;
  /// Forward and backward passes of the next batch; nothing if there is none.
  virtual std::optional<Outcome> pass_next() = 0;

 protected:
  DryRunBatches() = default;
  DryRunBatches(DryRunBatches const&) = default;
  DryRunBatches& operator=(DryRunBatches const&) = default;
  ~DryRunBatches() = default;
};

/// A dry run: a few batches forward and backward on the CPU, and a checkpoint's round trip. Then
/// everything is restored: parameters, buffers, gradients, generator, device, source position.
class DryRunner {
 public:
  explicit DryRunner(RunState& run) : run_(run) {}

  std::vector<Check> run(DryRunBatches& source, std::size_t batches);

 private:
  std::vector<Check> on_host(DryRunBatches& source, std::size_t batches);

  std::vector<Check> passes(DryRunBatches& source, std::size_t batches) const;

  Check gradients() const;

  Check round_trip();

  StateDict snapshot();
  template <class Archive>
  void visit(Archive& archive) {
    archive.scope("module", [&](auto& inner) {
      visit_tensors(run_.root,
                    // Not a reference: an archive that loads fills the handle.
                    // NOLINTNEXTLINE(performance-unnecessary-value-param)
                    [&](std::string const& name, at::Tensor tensor) { inner(name, tensor); });
    });
    archive.scope("run", [&](auto& inner) { run_.persist(inner); });
  }

  RunState& run_;
};

}  // namespace frugal::detail

#ifndef FRUGAL_COMPILED
#include <frugal/core/loop/dry_run.ipp>
#endif
