// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/core/run/settings.hpp>

#include <frugal/base/io_error.hpp>
#include <frugal/error.hpp>
#include <frugal/inline.hpp>

#include <string>
#include <system_error>

namespace frugal::detail {

FRUGAL_INLINE c10::Device device_of_run(DeviceSpec const& asked, torch::nn::Module const& module) {
  if (asked.is_given()) return with_index(asked);
  std::optional<c10::Device> found;
  for (at::Tensor const& each : module.parameters()) {
    if (!each.defined() || found == each.device()) continue;
    if (found) {
      throw DeviceError({.what = "the module's parameters are on " + found->str() + " and on " +
                                 each.device().str(),
                         .where = "Settings::device",
                         .why = "a run is on one device, and none is named",
                         .fix = "Set Settings::device; the module is moved there."});
    }
    found = each.device();
  }
  return found.value_or(c10::Device(c10::kCPU));
}

FRUGAL_INLINE void put_on(c10::Device device, torch::nn::Module& module) {
  require_device(device);
  for (at::Tensor const& each : module.parameters()) {
    if (!each.defined() || each.device() == device) continue;
    module.to(device);
    return;
  }
}

}  // namespace frugal::detail

namespace frugal {

FRUGAL_INLINE std::filesystem::path fresh(std::filesystem::path const& given) {
  // "runs/x/" is "runs/x".
  std::filesystem::path const name = given.has_filename() ? given : given.parent_path();
  if (!name.has_filename()) {
    throw SettingsError({.what = "a folder of runs has no name",
                         .where = "fr::fresh(\"" + given.string() + "\")",
                         .why = "it gets a number behind its name",
                         .fix = "Give one, such as \"runs/x\"."});
  }
  std::error_code failure;
  if (name.has_parent_path()) std::filesystem::create_directories(name.parent_path(), failure);
  for (int number = 1; !failure; ++number) {
    std::filesystem::path folder = name;
    folder += "-" + std::to_string(number);
    // True if this call has made it: of two programs that start together each gets its own.
    if (std::filesystem::create_directory(folder, failure)) return folder;
    if (failure == std::errc::file_exists) failure.clear();  // a file has that name
  }
  throw detail::folder_error(name, detail::first_missing(name), failure.value());
}

}  // namespace frugal
