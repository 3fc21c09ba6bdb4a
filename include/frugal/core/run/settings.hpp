// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <c10/core/Device.h>
#include <torch/nn/module.h>

#include <concepts>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <stop_token>
#include <string>

#include <frugal/core/libtorch/devices.hpp>

namespace frugal {

/// The device of a run, as in PyTorch: "cuda:0", "cuda", torch::kCUDA or a torch::Device. Default:
/// the device of the module's parameters.
///
///     Settings{.device = "cuda:0"}
///     Settings{.device = torch::cuda::is_available() ? "cuda" : "cpu"}
///
/// Throws DeviceError, which lists the available devices, for an invalid name. Whether the device
/// is available is checked when it is used.
class DeviceSpec {
 public:
  DeviceSpec() = default;
  // Implicit on purpose: Settings::device is written as any of these.
  template <std::convertible_to<c10::Device> D>
    requires(!std::convertible_to<D, std::string> && !std::same_as<D, DeviceSpec>)
  DeviceSpec(D const& device) : asked_(device) {}  // NOLINT(google-explicit-constructor)
  DeviceSpec(std::string const& name)              // NOLINT(google-explicit-constructor)
      : asked_(detail::device_from_name(name, "Settings::device")) {}
  DeviceSpec(char const* name)  // NOLINT(google-explicit-constructor)
      : DeviceSpec(std::string(name)) {}

  /// Whether it names a device.
  bool is_given() const { return asked_.has_value(); }

  /// The device; the CPU if none is given. The settings of a phase always have one.
  c10::Device value() const { return asked_.value_or(c10::Device(c10::kCPU)); }
  operator c10::Device() const { return value(); }  // NOLINT(google-explicit-constructor)

  bool is_cpu() const { return value().is_cpu(); }
  bool is_cuda() const { return value().is_cuda(); }
  bool has_index() const { return value().has_index(); }
  c10::DeviceType type() const { return value().type(); }
  c10::DeviceIndex index() const { return value().index(); }
  std::string str() const { return value().str(); }

  friend bool operator==(DeviceSpec const&, DeviceSpec const&) = default;
  friend bool operator==(DeviceSpec const& a, c10::Device b) { return a.value() == b; }

 private:
  std::optional<c10::Device> asked_{};
};

namespace detail {

/// The device of a run: the given one, or else that of the parameters. "cuda" becomes the current
/// device, with its number. DeviceError if none is given and the parameters are on several devices.
c10::Device device_of_run(DeviceSpec const& asked, torch::nn::Module const& module);

/// Moves a module to a device, unless its parameters are there. DeviceError if the device is not
/// available; the module is then unchanged.
void put_on(c10::Device device, torch::nn::Module& module);

}  // namespace detail

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
  /// What apply() has set from outside, by name; in the checkpoints, the logs and the Report.
  std::map<std::string, std::string> options{};
};

/// A folder for a run of its own: "runs/x-1", or the first number that is free, which it makes. A program that is
/// started again to resume must name its folder instead.
///
///     Settings{.run_dir = fr::fresh("runs/x")}
///
/// Throws IoError if the folder cannot be made, SettingsError for an empty name.
std::filesystem::path fresh(std::filesystem::path const& given);

}  // namespace frugal

#ifndef FRUGAL_COMPILED
#include <frugal/core/run/settings.ipp>
#endif
