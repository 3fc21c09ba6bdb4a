// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <stop_token>
#include <string>

#include <frugal/core/run/device_spec.hpp>

namespace frugal {

/// The settings of a run that are not part of its recipe.
struct Settings {
  /// Folder of the run; policies that write files need it. Empty: nothing is written.
  std::filesystem::path run_dir{};
  /// Passes over the training data. Default: as many as `steps` needs, or one without `steps`.
  std::optional<std::uint64_t> epochs{};
  /// Optimizer steps after which the run ends, in whatever epoch.
  std::optional<std::uint64_t> steps{};
  /// Keys the order of the data, and seeds LibTorch's generators when fit begins; when it ends,
  /// they are as they were before it.
  std::uint64_t seed = 0;
  /// The device of the run: "cuda:0", torch::kCUDA, a torch::Device. The module and the batches are
  /// moved there. Default: the device of the module's parameters.
  DeviceSpec device{};
  /// A stop request preempts the run after the current step: a policy such as Checkpoint saves it,
  /// and the next start resumes it.
  std::stop_token stop{};
  /// Name of the run in tables and messages. Empty: the name of its recipe (recipe_name).
  std::string name{};
};

}  // namespace frugal
