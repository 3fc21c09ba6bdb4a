// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/core/run/fixed_identity.hpp>

#include <frugal/core/libtorch/fixed_tensors.hpp>
#include <frugal/error.hpp>
#include <frugal/inline.hpp>

#include <utility>

namespace frugal {

FRUGAL_INLINE std::string const& FixedIdentity::identify(torch::nn::Module const& module) {
  std::uint64_t const versions = fixed_versions(module);
  if (!known_) {
    identity_ = fixed_identity(module);
    versions_ = versions;
    known_ = true;
  } else if (versions != versions_) {
    throw StateError(
        {.what = "a fixed tensor of the module was written to during the run",
         .where = "checkpoint",
         .why = "checkpoints do not include fixed tensors (Freeze, Lora): the change would be lost",
         .fix = "Do not write to fixed tensors during a fit, or do not fix them."});
  }
  return identity_;
}

FRUGAL_INLINE void FixedIdentity::require(torch::nn::Module const& module,
                                          std::string const& saved) {
  std::string const& here = identify(module);
  if (saved == here) return;
  std::string why = "their hash is " + saved + " there, and " + here + " here";
  if (saved.empty()) why = "its run had none, and this module has some";
  if (here.empty()) why = "its run had some, and this module has none";
  throw StateError({.what = "the module's fixed tensors are not those of the checkpoint's run",
                    .where = "fixed tensors",
                    .why = std::move(why),
                    .fix = "Before fit, load the weights that the run began with, and adapt the "
                           "module as that run did (Freeze, Lora)."});
}

}  // namespace frugal
