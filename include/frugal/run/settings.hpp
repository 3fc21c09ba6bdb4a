// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <stop_token>
#include <string>

#include <frugal/run/device_spec.hpp>

namespace frugal {

/// What a run needs beside its recipe.
struct Settings {
  /// Folder of the run; policies that write files need it. Empty: nothing is written.
  std::filesystem::path run{};
  /// Passes over the training data. Left open: as many as `steps` takes, or one without it.
  std::optional<std::uint64_t> epochs{};
  /// Optimizer steps after which the run ends, whatever the epoch.
  std::optional<std::uint64_t> steps{};
  /// Keys the order of the data, and seeds LibTorch's generators when fit begins.
  std::uint64_t seed = 0;
  /// The one place that says where the run is: "cuda:0", torch::kCUDA, a torch::Device. The module
  /// is moved there, and batches are placed there. Left out: where the module's parameters are.
  DeviceSpec device{};
  /// A stop that is requested of its source preempts the run after the step at hand: a policy such
  /// as Checkpoint saves it, and the next start goes on with it.
  std::stop_token stop{};
  /// What the run is called in tables and messages. Empty: what its recipe is called (recipe_name).
  std::string name{};
};

}  // namespace frugal
