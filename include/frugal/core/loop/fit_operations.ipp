// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/core/loop/fit_operations.hpp>

#include <frugal/core/libtorch/devices.hpp>
#include <frugal/core/run/failure.hpp>
#include <frugal/core/state/state_writer.hpp>
#include <frugal/inline.hpp>

#include <cmath>
#include <exception>
#include <utility>

namespace frugal::detail {

FRUGAL_INLINE c10::Device dry_run_device(torch::nn::Module const& module) {
  auto const* const stays = dynamic_cast<StaysOnDevice const*>(&module);
  return stays != nullptr ? stays->own_device() : c10::Device(c10::kCPU);
}

FRUGAL_INLINE std::vector<Check> DryRunner::run(DryRunBatches& source, std::size_t batches) {
  std::vector<Check> checks;
  c10::Device const device = run_.device;
  RunSnapshot before;
  before.take(run_, Part::outside);
  auto const is_back = [&] { run_.device = device; };
  try {
    undone(before, run_, [&] { checks = on_its_device(source, batches); });
  } catch (...) {
    is_back();
    throw;
  }
  is_back();
  return checks;
}

FRUGAL_INLINE std::vector<Check> DryRunner::on_its_device(DryRunBatches& source,
                                                          std::size_t batches) {
  Cursor const start = run_.cursor();
  std::vector<Check> checks;
  try {
    c10::Device const device = dry_run_device(run_.root);
    if (run_.device != device) run_.root.to(device);
    run_.device = device;
    source.seek_to(start);
    checks = passes(source, batches, start);
    checks.push_back(gradients());
    checks.push_back(round_trip());
  } catch (c10::Error const& error) {
    checks.push_back({"forward and backward", false, error.what_without_backtrace()});
  } catch (std::exception const& error) {
    checks.push_back({"forward and backward", false, error.what()});
  }
  source.seek_to(start);
  return checks;
}

FRUGAL_INLINE std::vector<Check> DryRunner::passes(DryRunBatches& source, std::size_t batches,
                                                   Cursor start) {
  reached_.assign(run_.parameters.size(), false);
  not_finite_.assign(run_.parameters.size(), false);
  std::string shapes;
  std::string losses;
  bool finite = true;
  std::size_t count = 0;
  bool more = true;
  auto const pass = [&] {
    auto outcome = source.pass_next();
    more = outcome.has_value();
    if (!more) return;
    ++count;
    shapes = std::move(outcome->shapes);
    finite = finite && std::isfinite(outcome->loss);
    losses += (losses.empty() ? "" : ", ") + std::to_string(outcome->loss);
    look_at_gradients();
  };
  while (more && count < batches) {
    bool const is_first = count == 0;
    run_.hold.in_each_turn([&] {
      pass();
      // Each part has a turn, even if the source has fewer batches.
      if (more || !is_first || count == 0) return;
      source.seek_to(start);
      pass();
    });
  }
  if (count == 0) refuse_empty_source("training", run_.counters().epoch);
  return {{"forward and backward", true, std::to_string(count) + " batches, " + shapes},
          {"finite loss", finite, losses}};
}

FRUGAL_INLINE void DryRunner::look_at_gradients() {
  for (std::size_t i = 0; i < run_.parameters.size(); ++i) {
    at::Tensor const& gradient = run_.parameters.tensors[i].grad();
    if (!gradient.defined()) continue;
    reached_[i] = true;
    if (!gradient.isfinite().all().item<bool>()) not_finite_[i] = true;
  }
}

FRUGAL_INLINE Check DryRunner::gradients() const {
  std::string missing;
  for (std::size_t i = 0; i < run_.parameters.size(); ++i) {
    if (!run_.parameters.tensors[i].requires_grad()) continue;
    if (reached_[i] && !not_finite_[i]) continue;
    missing += (missing.empty() ? "" : ", ") + run_.parameters.names[i];
    if (not_finite_[i]) missing += " (not finite)";
  }
  return {"gradients reach every parameter", missing.empty(),
          missing.empty() ? std::to_string(run_.parameters.size()) + " parameters"
                          : "none at: " + missing};
}

FRUGAL_INLINE Check DryRunner::round_trip() {
  StateDict const saved = snapshot();
  StateReader reader(saved);
  visit(reader);
  bool const same = snapshot() == saved;
  std::size_t bytes = 0;
  for (auto const& [name, tensor] : saved.tensors) bytes += tensor.nbytes();
  return {"checkpoint round trip", same,
          std::to_string(saved.tensors.size()) + " tensors, " + std::to_string(bytes) + " bytes"};
}

FRUGAL_INLINE StateDict DryRunner::snapshot() {
  StateDict memory;
  StateWriter writer(memory);
  visit(writer);
  writer.finish();
  return memory;
}

}  // namespace frugal::detail
