// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ATen.h>

#include <string>
#include <utility>

#include <frugal/cluster/communicator.hpp>
#include <frugal/cluster/power_sgd.hpp>
#include <frugal/cluster/power_sgd/gradients.hpp>
#include <frugal/cluster/replicate/state.hpp>
#include <frugal/core/run/phases.hpp>
#include <frugal/core/run/services.hpp>
#include <frugal/core/run/window_phases.hpp>
#include <frugal/core/state/tensor_part.hpp>

namespace frugal::detail {

/// The State of Replicate with Wire<PowerSGD<R>>. It keeps errors and factors from step to step.
template <class Context, bool shards, class BatchNorms>
class PowerSGDState : public ReplicateState<Context, PowerSGDGradients, shards, BatchNorms> {
  using Base = ReplicateState<Context, PowerSGDGradients, shards, BatchNorms>;

 public:
  using dispensable = void;  // a run may go on with another wire, or get this one later

  PowerSGDState(Communicator& all, MicroBatches own, char const* name,
                PowerSGDGradients::Settings const& settings)
      : Base(all, own, name, {}, settings), settings_(settings.power) {}

  void on_fit_begin(FitBegin& phase) {
    require_power_sgd(settings_);
    // Processes with other ones would send other factors, or none.
    auto const compare = [&](char const* name, auto value) {
      phase.compare_in_processes(std::string("Wire<PowerSGD>::") + name,
                                 static_cast<double>(value));
    };
    compare("start_step", settings_.start_step);
    compare("min_compression_rate", settings_.min_compression_rate);
    compare("error_feedback", settings_.error_feedback);
    compare("warm_start", settings_.warm_start);
    compare("orthogonalization_epsilon", settings_.orthogonalization_epsilon);
    compare("seed", settings_.seed);
    compare("saved_errors", settings_.saved_errors);
    Base::on_fit_begin(phase);
  }

  template <class Next>
  void around_fit(FitRun& phase, Next&& next) {
    this->gradients_.memory().name(phase.parameters());
    Base::around_fit(phase, [&] {
      // All processes take part in a save: each has errors of its own.
      WholeTensor& whole = phase.run_state().together.whole_tensor;
      if (!whole && this->all_.size() > 1) {
        whole = [](at::Tensor const& mine, TensorPart const&) { return mine; };
      }
      next();
    });
  }

  template <class Next>
  void around_micro_batch(MicroBatchRun const& phase, Next&& next) {
    this->gradients_.at_step(phase.counters().step);
    Base::around_micro_batch(phase, std::forward<Next>(next));
  }
  void join(SharedWindow& phase) {
    this->gradients_.at_step(phase.counters().step);
    Base::join(phase);
  }

  template <class Archive>
  void persist(Archive& archive) {
    this->gradients_.memory().persist(archive);
    if constexpr (Archive::loading) this->gradients_.forget();
  }

 private:
  PowerSGDSettings settings_;
};

}  // namespace frugal::detail
