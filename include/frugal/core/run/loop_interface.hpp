// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ATen.h>
#include <c10/core/Device.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <frugal/core/compose/hooks.hpp>
#include <frugal/core/run/check.hpp>
#include <frugal/core/run/event.hpp>
#include <frugal/data/data_identity.hpp>

namespace frugal {

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
