// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ATen.h>
#include <c10/core/Device.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <frugal/core/compose/hooks.hpp>
#include <frugal/core/libtorch/parameters.hpp>
#include <frugal/core/run/check.hpp>
#include <frugal/core/run/event.hpp>
#include <frugal/core/run/processes.hpp>
#include <frugal/core/run/services.hpp>
#include <frugal/core/source/data_identity.hpp>

namespace frugal {

// What phases ask of others. Phases know no recipe: the run of one makes these of the policies that provide a
// service, and a null pointer stands for none.

/// The policy with which several processes train together (service::reduce), and that which divides their
/// windows (service::share); these answer for one process without the latter.
class ProcessesInterface {
 public:
  virtual double reduce(Quantity what, double value) = 0;
  virtual at::Tensor reduce(Quantity what, at::Tensor value) = 0;
  virtual bool is_first() const = 0;
  virtual Processes processes() const = 0;
  virtual EqualShare measures() const = 0;
  virtual std::string from_first(std::string const& text) = 0;
  virtual std::string first_of(std::string const& text) = 0;
  virtual std::vector<std::string> texts_of_all(std::string const& text) = 0;
  virtual std::vector<at::Tensor> norms(Parameters const& updated) = 0;
  virtual void collect_parts() = 0;

  virtual ~ProcessesInterface() = default;

 protected:
  ProcessesInterface() = default;
  ProcessesInterface(ProcessesInterface const&) = default;
  ProcessesInterface& operator=(ProcessesInterface const&) = default;
};

/// The policy that saves the run (service::save).
class SaverInterface {
 public:
  virtual bool save(CheckpointPhase& at) = 0;
  virtual double save_seconds() const = 0;

  virtual ~SaverInterface() = default;

 protected:
  SaverInterface() = default;
  SaverInterface(SaverInterface const&) = default;
  SaverInterface& operator=(SaverInterface const&) = default;
};

/// The policy that captures a step and replays it (service::capture).
class CaptureInterface {
 public:
  virtual bool capturing() const = 0;
  virtual void defer(std::function<void()> after_each_replay) = 0;
  virtual at::Tensor const& rate() const = 0;
  virtual void state_has_moved() = 0;

  virtual ~CaptureInterface() = default;

 protected:
  CaptureInterface() = default;
  CaptureInterface(CaptureInterface const&) = default;
  CaptureInterface& operator=(CaptureInterface const&) = default;
};

/// Operations that phases request from the loop, which has the sources; phases do not.
class LoopInterface {
 public:
  virtual bool validates() const = 0;
  virtual flow validate() = 0;
  virtual std::vector<Check> dry_run(std::size_t batches) = 0;
  virtual at::Tensor reevaluate() = 0;
  virtual void finish_set_up() = 0;
  virtual void move_to(c10::Device device) = 0;
  virtual void recorded(Event const& event) = 0;
  /// A checkpoint of a step is whole on disk.
  virtual void saved(std::filesystem::path const& folder, std::uint64_t step) = 0;
  /// Seconds that the run has waited for training data; nothing if the source does not measure it.
  virtual std::optional<double> waited_for_data() const { return std::nullopt; }
  /// What the training data and their order are, as far as the source says.
  virtual DataIdentity identify_data() const { return {}; }
  /// Samples of a batch of the training source, as it was set; nothing if the source does not say it.
  virtual std::optional<std::int64_t> batch_size() const { return std::nullopt; }
  /// The same of the validation sources, as a text; empty without.
  virtual std::string validation_batch_sizes() const { return {}; }
  /// Batches of one validation, of all its sources; nothing if a source does not know its size.
  virtual std::optional<std::uint64_t> validation_batches() const { return std::nullopt; }

 protected:
  LoopInterface() = default;
  LoopInterface(LoopInterface const&) = default;
  LoopInterface& operator=(LoopInterface const&) = default;
  ~LoopInterface() = default;
};

}  // namespace frugal
