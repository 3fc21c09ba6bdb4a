// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <frugal/compose/hooks.hpp>
#include <frugal/loop/counters.hpp>
#include <frugal/loop/ledger.hpp>
#include <frugal/loop/metrics.hpp>
#include <frugal/loop/parameters.hpp>
#include <frugal/loop/settings.hpp>

namespace frugal {

/// The learning rate of the coming step, as a factor of what each parameter group asks for.
/// Schedule writes it, optimizers multiply with it; it never waits for a device.
struct LearningRate {
  double factor = 1.0;

  template <class Archive>
  void persist(Archive& archive) {
    archive("factor", factor);
  }
};

/// How long the run is, as far as its source and settings tell.
struct Horizon {
  std::optional<std::uint64_t> steps_per_epoch;  ///< nothing for a source without a size
  std::optional<std::uint64_t> total_steps;      ///< steps until the run ends by itself
};

/// One validation: when it was and what it found.
struct Validation {
  std::uint64_t epoch = 0;  ///< complete epochs
  std::uint64_t step = 0;   ///< optimizer steps
  Metrics metrics;
};

/// A verdict of a rehearsal, one line each.
struct Check {
  std::string name;
  bool passed = false;
  std::string detail;
};

/// What changes while fitting and belongs to no policy. Every phase refers to one of these.
template <class Context>
struct Run {
  typename Context::module_type& module;
  Settings const& settings;
  Parameters parameters;
  Horizon horizon;
  Counters counters{};
  LearningRate rate{};
  LossLedger ledger{};
  GradientList gradients{};
  std::vector<Validation> validations{};
  std::string stopped_by{};  ///< kind of the first policy that asked to stop
  std::vector<std::string> advice{};

  c10::Device device = settings.device;  ///< where batches are placed at this moment
  typename Context::engine* engine = nullptr;
  std::function<flow()> validate{};                                   ///< empty without data
  std::function<std::vector<Check>(std::size_t batches)> rehearse{};  ///< see policy/smoke.hpp
  std::function<at::Tensor()> reevaluate{};  ///< see policy/optimize/any.hpp
  at::Tensor window_loss{};                  ///< likewise; kept for such optimizers alone

  /// A hint worth one line, given once however often it is noticed; never an exception.
  void advise(std::string const& text) {
    for (std::string const& known : advice) {
      if (known == text) return;
    }
    advice.push_back(text);
  }

  /// Everything but the module's own tensors and the generators: where training stands, and
  /// each policy's state in a scope of its own.
  template <class Archive>
  void persist(Archive& archive) {
    archive.scope("counters", [&](auto& inner) { counters.persist(inner); });
    archive.scope("rate", [&](auto& inner) { rate.persist(inner); });
    archive.scope("ledger", [&](auto& inner) { ledger.persist(inner); });
    archive.scope("policies", [&](auto& inner) { engine->persist(inner); });
  }
};

}  // namespace frugal
