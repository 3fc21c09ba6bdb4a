// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <frugal/compose/hooks.hpp>
#include <frugal/loop/counters.hpp>
#include <frugal/loop/horizon.hpp>
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

/// The norm of the last window's gradients before clipping, where a policy takes it.
class GradientNorm {
 public:
  void set(double norm) { host_ = norm; }
  void set(at::Tensor norm) { device_ = std::move(norm); }
  bool known() const { return host_ || device_.defined(); }
  /// NaN where nobody took it. Waits for a device if the norm is on one.
  double value() const {
    if (device_.defined()) return device_.item<double>();
    return host_.value_or(std::numeric_limits<double>::quiet_NaN());
  }

 private:
  std::optional<double> host_;
  at::Tensor device_;
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
  GradientNorm gradient_norm{};
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
