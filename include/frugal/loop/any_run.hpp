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
#include <frugal/libtorch/parameters.hpp>
#include <frugal/loop/counters.hpp>
#include <frugal/loop/event.hpp>
#include <frugal/loop/horizon.hpp>
#include <frugal/loop/ledger.hpp>
#include <frugal/loop/metrics.hpp>
#include <frugal/loop/settings.hpp>
#include <frugal/loop/speed.hpp>
#include <frugal/state/memory_reader.hpp>
#include <frugal/state/memory_writer.hpp>

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

/// An event that was broken off: which, and who has heard all of it. A resumed run tells the rest,
/// whoever they are by then.
struct Unfinished {
  std::string hook{};               ///< its name; empty: none
  std::vector<std::string> told{};  ///< by the names of their scopes
  /// In a checkpoint that has numbers in place of names: how many of the order have heard it.
  std::optional<std::uint64_t> first{};

  template <class Archive>
  void persist(Archive& archive) {
    archive("hook", hook);
    archive("told", told);
  }
};

/// A verdict of a rehearsal, one line each.
struct Check {
  std::string name;
  bool passed = false;
  std::string detail;
};

/// What phases ask of the loop itself, which knows the sources: a phase does not.
class LoopCalls {
 public:
  virtual bool validates() const = 0;
  virtual flow validate() = 0;
  virtual std::vector<Check> rehearse(std::size_t batches) = 0;
  virtual at::Tensor reevaluate() = 0;
  virtual void settle() = 0;
  virtual void move_to(c10::Device device) = 0;

 protected:
  LoopCalls() = default;
  LoopCalls(LoopCalls const&) = default;
  LoopCalls& operator=(LoopCalls const&) = default;
  ~LoopCalls() = default;
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

  void persist(MemoryWriter& archive) const { save_(engine_, archive, false); }
  void persist(MemoryReader& archive) const { load_(engine_, archive, false); }
  /// Of the slots alone.
  void persist_slots(MemoryWriter& archive) const { save_(engine_, archive, true); }
  void persist_slots(MemoryReader& archive) const { load_(engine_, archive, true); }

 private:
  template <class Engine, class Archive>
  static void call(void* engine, Archive& archive, bool slots_alone) {
    static_cast<Engine*>(engine)->persist(archive, slots_alone);
  }

  void* engine_ = nullptr;
  void (*save_)(void*, MemoryWriter&, bool) = nullptr;
  void (*load_)(void*, MemoryReader&, bool) = nullptr;
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
  std::vector<Event> events{};                   ///< for those who log, oldest first
  std::vector<std::function<void()>> loggers{};  ///< called when there is one more
  std::vector<std::filesystem::path> files{};    ///< what a checkpoint has to find on the disk
  std::optional<Resumed> resumed{};
  bool preempted = false;  ///< the machine goes; what could be saved is
  std::string unsaved{};   ///< why the last save that was asked for is not on the disk
  std::chrono::steady_clock::time_point began = std::chrono::steady_clock::now();
  double seconds_before = 0;  ///< of training, in processes before this one

  c10::Device device = settings.device;  ///< where batches are placed at this moment
  bool is_left = false;                  ///< after the event at hand
  std::string left_for{};                ///< kind of the first policy that asked for that
  PolicyStates policies{};
  LoopCalls* loop = nullptr;  ///< there from before the first event on
  at::Tensor window_loss{};   ///< for optimizers that reevaluate, alone

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

  /// What happened to the run itself, for those who log.
  void record(Event event) {
    event.at = counters;
    event.seconds = seconds();
    events.push_back(std::move(event));
    for (auto const& look : loggers) look();
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

  /// What is said stays said: a checkpoint has it, apart from the run's state, which may go back.
  /// Beside it stands what this process has said before it loads.
  template <class Archive>
  void persist_advice(Archive& archive) {
    if constexpr (Archive::loading) {
      if (!archive.holds("advice")) return;  // the checkpoint of an earlier version
      std::vector<std::string> const here = std::exchange(advice, {});
      archive("advice", advice);
      for (std::string const& text : here) advise(text);
    } else {
      archive("advice", advice);
    }
  }

 private:
  template <class Archive>
  void persist_all(Archive& archive) {
    archive.scope("counters", [&](auto& inner) { counters.persist(inner); });
    archive.scope("rate", [&](auto& inner) { rate.persist(inner); });
    archive.scope("ledger", [&](auto& inner) { ledger.persist(inner); });
    persist_unfinished(archive);
    archive.scope("run", [&](auto& inner) { persist_record(inner); });
    archive.scope("policies", [&](auto& inner) { policies.persist(inner); });
  }

  /// Checkpoints from before names were saved have numbers, of the hook and of the subscriber.
  template <class Archive>
  void persist_unfinished(Archive& archive) {
    if constexpr (Archive::loading) {
      unfinished = {};
      if (archive.has("unfinished")) {
        std::uint64_t hook = 0;
        std::uint64_t subscriber = 0;
        archive.scope("unfinished", [&](auto& inner) {
          inner("hook", hook);
          inner("subscriber", subscriber);
        });
        constexpr std::uint64_t step_was = 7;
        constexpr std::uint64_t epoch_end_was = 10;
        if (hook == step_was) unfinished.hook = on::step::name;
        if (hook == epoch_end_was) unfinished.hook = on::epoch_end::name;
        unfinished.first = subscriber;
        return;
      }
    }
    archive.scope("broken_off", [&](auto& inner) { unfinished.persist(inner); });
  }

  /// What the report tells of the whole run, however many processes it took.
  template <class Archive>
  void persist_record(Archive& archive) {
    archive("stopped_by", stopped_by);
    archive("epoch_loss", epoch_loss);
    std::uint64_t count = validations.size();  // NOLINT(misc-const-correctness): loading fills it
    archive("validations", count);
    if (Archive::loading) validations.clear();
    for (std::size_t i = 0; i < count; ++i) {
      if (Archive::loading) validations.emplace_back();  // one by one: the count may be damaged
      archive.scope("validation." + std::to_string(i),
                    [&](auto& inner) { validations[i].persist(inner); });
    }
  }
};

}  // namespace frugal
