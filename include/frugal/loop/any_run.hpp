// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ATen.h>
#include <torch/nn/module.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <frugal/compose/hooks.hpp>
#include <frugal/loop/counters.hpp>
#include <frugal/loop/event.hpp>
#include <frugal/loop/horizon.hpp>
#include <frugal/loop/ledger.hpp>
#include <frugal/state/memory_reader.hpp>
#include <frugal/state/memory_writer.hpp>
#include <frugal/loop/metrics.hpp>
#include <frugal/libtorch/parameters.hpp>
#include <frugal/loop/settings.hpp>
#include <frugal/loop/speed.hpp>

namespace frugal {

/// The learning rate of the coming step, as a factor of what each parameter group asks for.
/// Schedule writes it, optimizers multiply with it; it never waits for a device.
struct LearningRate {
  double factor = 1.0;
  double scale = 1.0;  ///< on top of it, whatever the schedule says: Rollback lowers it

  template <class Archive>
  void persist(Archive& archive) {
    archive("factor", factor);
    archive("scale", scale);
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

/// Whether the window's gradients are finite, for those who scale the loss. In a recipe where
/// nobody does there is no flag, and nothing is asked.
struct Overflow {
  at::Tensor found{};  ///< a float scalar where the gradients are: 1 if one is not finite
  bool skip = false;   ///< this window is not counted as a step
};

/// One validation: when it was and what it found.
struct Validation {
  std::uint64_t epoch = 0;  ///< complete epochs
  std::uint64_t step = 0;   ///< optimizer steps
  Metrics metrics;

  template <class Archive>
  void persist(Archive& archive) {
    archive("epoch", epoch);
    archive("step", step);
    metrics.persist(archive);
  }
};

/// An event that was broken off: which, and at which subscriber. A resumed run tells it on.
struct Unfinished {
  static constexpr std::uint64_t none = std::numeric_limits<std::uint64_t>::max();

  std::uint64_t hook = none;     ///< its index among all_hooks
  std::uint64_t subscriber = 0;  ///< a place in the computed order

  template <class Archive>
  void persist(Archive& archive) {
    archive("hook", hook);
    archive("subscriber", subscriber);
  }
};

/// A verdict of a rehearsal, one line each.
struct Check {
  std::string name;
  bool passed = false;
  std::string detail;
};

/// The persist() of a recipe's states, for those who do not know the recipe: one call for each of
/// the two archives that there are.
class PolicyStates {
 public:
  template <class Engine>
  static PolicyStates of(Engine& engine) {
    PolicyStates states;
    states.engine_ = &engine;
    states.save_ = &call<Engine, MemoryWriter>;
    states.load_ = &call<Engine, MemoryReader>;
    return states;
  }

  void persist(MemoryWriter& archive) const { save_(engine_, archive); }
  void persist(MemoryReader& archive) const { load_(engine_, archive); }

 private:
  template <class Engine, class Archive>
  static void call(void* engine, Archive& archive) {
    static_cast<Engine*>(engine)->persist(archive);
  }

  void* engine_ = nullptr;
  void (*save_)(void*, MemoryWriter&) = nullptr;
  void (*load_)(void*, MemoryReader&) = nullptr;
};

/// What changes while fitting and belongs to no policy, whatever the module's type and the recipe.
/// What is done seldom (begin, rehearse, save, resume, move) is written for this, so that a file
/// compiles it once, however many recipes are in it.
struct AnyRun {
  torch::nn::Module& root;  ///< the module itself, behind its holder or pointer
  Settings const& settings;
  Horizon horizon{};
  Parameters parameters = Parameters::of(root);
  Counters counters{};
  LearningRate rate{};
  LossLedger ledger{};
  GradientList gradients{};
  GradientNorm gradient_norm{};
  Overflow overflow{};
  std::optional<Speed> speed{};  ///< the last that a policy has measured
  std::vector<Validation> validations{};
  std::string stopped_by{};  ///< kind of the first policy that asked to stop
  double epoch_loss = std::numeric_limits<double>::quiet_NaN();  ///< of the last epoch, or its part
  Unfinished unfinished{};
  std::vector<std::string> advice{};
  std::vector<Event> events{};                 ///< for those who log, oldest first
  std::vector<std::filesystem::path> files{};  ///< what a checkpoint has to find on the disk
  std::optional<Resumed> resumed{};
  bool preempted = false;  ///< the machine goes; what could be saved is
  std::chrono::steady_clock::time_point began = std::chrono::steady_clock::now();
  double seconds_before = 0;  ///< of training, in processes before this one

  c10::Device device = settings.device;  ///< where batches are placed at this moment
  PolicyStates policies{};
  std::function<flow()> validate{};        ///< empty without data
  std::function<double()> save_seconds{};  ///< that the last one took; empty likewise
  std::function<bool()> save{};  ///< a checkpoint now; empty in a recipe without Checkpoint
  std::function<std::vector<Check>(std::size_t batches)> rehearse{};  ///< see policy/smoke.hpp
  std::function<void()> settle{};  ///< see policy/auto_batch.hpp; empty in a recipe without it
  std::function<at::Tensor()> reevaluate{};  ///< see policy/optimize/any.hpp
  at::Tensor window_loss{};                  ///< likewise; kept for such optimizers alone

  /// Wall time of training, that before a resume included.
  double seconds() const {
    std::chrono::duration<double> const spent = std::chrono::steady_clock::now() - began;
    return seconds_before + spent.count();
  }

  /// A hint worth one line, given once however often it is noticed; never an exception.
  void advise(std::string const& text) {
    for (std::string const& known : advice) {
      if (known == text) return;
    }
    advice.push_back(text);
  }

  /// What happened to the run itself; those who log write it with their next line.
  void record(Event event) {
    event.at = counters;
    event.seconds = seconds();
    events.push_back(std::move(event));
  }

  /// Training goes on from a checkpoint at which it had taken `seconds`.
  void go_on(Resumed from, double seconds) {
    resumed = std::move(from);
    seconds_before = seconds;
    began = std::chrono::steady_clock::now();
  }

  /// Everything but the module's own tensors and the generators: where training stands, and
  /// each policy's state in a scope of its own.
  void persist(MemoryWriter& archive) { persist_all(archive); }
  void persist(MemoryReader& archive) { persist_all(archive); }

 private:
  template <class Archive>
  void persist_all(Archive& archive) {
    archive.scope("counters", [&](auto& inner) { counters.persist(inner); });
    archive.scope("rate", [&](auto& inner) { rate.persist(inner); });
    archive.scope("ledger", [&](auto& inner) { ledger.persist(inner); });
    archive.scope("unfinished", [&](auto& inner) { unfinished.persist(inner); });
    archive.scope("run", [&](auto& inner) { persist_record(inner); });
    archive.scope("policies", [&](auto& inner) { policies.persist(inner); });
  }

  /// What the report tells of the whole run, however many processes it took.
  template <class Archive>
  void persist_record(Archive& archive) {
    archive("stopped_by", stopped_by);
    archive("epoch_loss", epoch_loss);
    std::uint64_t count = validations.size();  // NOLINT(misc-const-correctness): loading fills it
    archive("validations", count);
    validations.resize(count);
    for (std::size_t i = 0; i < validations.size(); ++i) {
      archive.scope("validation." + std::to_string(i),
                    [&](auto& inner) { validations[i].persist(inner); });
    }
  }
};

}  // namespace frugal
