// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/nn/module.h>

#include <cstdint>
#include <string>

namespace frugal {

/// The hash of the fixed tensors of a run's module. No file has these tensors, so a checkpoint has
/// their hash. They are hashed once: later saves only look whether something has written to them.
class FixedIdentity {
 public:
  /// Empty if the module has no fixed tensors. StateError if one has changed since the first call.
  std::string const& identify(torch::nn::Module const& module);

  /// StateError unless the module's fixed tensors are those of a checkpoint.
  void require(torch::nn::Module const& module, std::string const& saved);

 private:
  bool known_ = false;
  std::string identity_;
  std::uint64_t versions_ = 0;
};

}  // namespace frugal

#ifndef FRUGAL_COMPILED
#include <frugal/core/run/fixed_identity.ipp>
#endif
