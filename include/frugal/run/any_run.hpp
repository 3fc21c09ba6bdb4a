// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ATen.h>
#include <torch/nn/module.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <frugal/libtorch/parameters.hpp>
#include <frugal/run/counters.hpp>
#include <frugal/run/event.hpp>
#include <frugal/run/gradient_norm.hpp>
#include <frugal/run/horizon.hpp>
#include <frugal/run/learning_rate.hpp>
#include <frugal/run/ledger.hpp>
#include <frugal/run/loop_calls.hpp>
#include <frugal/run/metrics.hpp>
#include <frugal/run/policy_states.hpp>
#include <frugal/run/settings.hpp>
#include <frugal/run/speed.hpp>
#include <frugal/run/unfinished.hpp>
#include <frugal/state/state_reader.hpp>
#include <frugal/state/state_writer.hpp>

namespace frugal {

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
  Validation train_metrics{};  ///< the last of the training batches; none where nobody measures
  std::string stopped_by{};    ///< kind of the first policy that asked to stop
  double epoch_loss = std::numeric_limits<double>::quiet_NaN();  ///< of the last epoch, or its part
  Unfinished unfinished{};
  std::vector<std::string> advice{};
  std::vector<Event> events{};  ///< for those who log, oldest first
  bool tells_events = false;
  std::vector<std::filesystem::path> files{};  ///< what a checkpoint has to find on the disk
  std::optional<Resumed> resumed{};
  bool preempted = false;  ///< the machine goes; what could be saved is
  std::string unsaved{};   ///< why the last save that was asked for is not on the disk
  std::chrono::steady_clock::time_point began = std::chrono::steady_clock::now();
  double seconds_before = 0;  ///< of training, in processes before this one

  c10::Device device = settings.device;  ///< where batches are placed at this moment
  bool is_preempting = false;            ///< after the event at hand
  bool epoch_begun = false;              ///< its subscribers have heard of this epoch
  std::string_view at_hand{};            ///< the event that may be broken off; empty between two
  std::size_t telling = 0;               ///< who is told of it: a place in the order
  std::string preempted_by{};            ///< kind of the first policy that asked for that
  PolicyStates policies{};
  LoopCalls* loop = nullptr;  ///< there from before the first event on
  at::Tensor window_loss{};   ///< for optimizers that reevaluate, alone

  /// Wall time of training, that before a resume included.
  double seconds() const {
    std::chrono::duration<double> const spent = std::chrono::steady_clock::now() - began;
    return seconds_before + spent.count();
  }

  /// Kind of the policy that ended the run, or has it left; empty: it ran to its end. A run that is
  /// left has not ended, and so this is nothing to save.
  std::string const& ended_by() const {
    return stopped_by.empty() && preempted ? preempted_by : stopped_by;
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
    if (loop == nullptr || tells_events) return;
    // One that is recorded meanwhile is told after this one.
    tells_events = true;
    try {
      for (std::size_t i = events.size() - 1; i < events.size(); ++i) {
        Event const next = events[i];
        loop->recorded(next);
      }
    } catch (...) {
      tells_events = false;
      throw;
    }
    tells_events = false;
  }

  /// A window, or what follows it, has ended in an error: nothing of it is left behind.
  void broken_off() {
    parameters.reset_gradients();
    gradients.clear();
    ledger.reset();
    overflow = {};
    unfinished = {};
    at_hand = {};
  }
  /// The run has gone back to before it was stopped, or was to be left.
  void take_back_stop() {
    is_preempting = false;
    stopped_by.clear();
    preempted_by.clear();
  }

  /// Training goes on from a checkpoint at which it had taken `seconds`.
  void go_on(Resumed from, double seconds) {
    resumed = std::move(from);
    seconds_before = seconds;
    began = std::chrono::steady_clock::now();
  }

  /// Everything but the module's own tensors and the generators: where training stands, and
  /// each policy's state in a scope of its own.
  void persist(StateWriter& archive) {
    ledger.require_good();
    persist_all(archive);
  }
  void persist(StateReader& archive) { persist_all(archive); }

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
  void persist_train_metrics(Archive& archive) {
    if constexpr (Archive::loading) {
      if (archive.moves_to()) return;
      train_metrics = {};
      if (!archive.has("train_metrics")) return;  // nobody had measured
    } else {
      if (train_metrics.metrics.empty()) return;
    }
    archive.scope("train_metrics", [&](auto& inner) { train_metrics.persist(inner); });
  }

  template <class Archive>
  void persist_epoch_begun(Archive& archive) {
    if constexpr (Archive::loading) {
      epoch_begun = counters.position != 0;
      if (!archive.holds("epoch_begun")) return;  // the checkpoint of an earlier version
    }
    archive("epoch_begun", epoch_begun);
  }

  template <class Archive>
  void persist_all(Archive& archive) {
    archive.scope("counters", [&](auto& inner) { counters.persist(inner); });
    archive.scope("rate", [&](auto& inner) { rate.persist(inner); });
    archive.scope("ledger", [&](auto& inner) { ledger.persist(inner); });
    unfinished.persist(archive);
    archive.scope("run", [&](auto& inner) { persist_record(inner); });
    archive.scope("policies", [&](auto& inner) { policies.persist(inner); });
  }

  /// What the report tells of the whole run, however many processes it took.
  template <class Archive>
  void persist_record(Archive& archive) {
    archive("stopped_by", stopped_by);
    archive("epoch_loss", epoch_loss);
    persist_epoch_begun(archive);
    persist_train_metrics(archive);
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
