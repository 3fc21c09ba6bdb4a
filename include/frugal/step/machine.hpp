// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include <frugal/step/manifest.hpp>

namespace frugal::detail {

/// What a machine and its LibTorch can run.
struct StepMachine {
  std::string torch;                      ///< LibTorch's version
  std::string architecture;               ///< as uname calls it
  std::vector<std::string> instructions;  ///< of the CPU, as /proc/cpuinfo calls them, sorted

  /// This one. `torch`: the version of the LibTorch that the program is compiled with.
  static StepMachine here(std::string torch);
  /// As `here`, with the text of /proc/cpuinfo.
  static std::vector<std::string> instructions_in(std::string_view cpuinfo);
};

/// DeviceError for a package whose code this machine cannot run: it would end with SIGILL, or read memory by
/// another LibTorch's layout. To be called before the code is loaded.
void require_machine(StepManifest const& manifest, StepMachine const& machine,
                     std::filesystem::path const& folder);

}  // namespace frugal::detail

#ifndef FRUGAL_COMPILED
#include <frugal/step/machine.ipp>
#endif
