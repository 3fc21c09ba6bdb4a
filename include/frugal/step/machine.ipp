// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/step/machine.hpp>

#include <frugal/error.hpp>
#include <frugal/inline.hpp>

#include <sys/utsname.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <sstream>
#include <utility>

namespace frugal::detail {

FRUGAL_INLINE std::vector<std::string> StepMachine::instructions_in(std::string_view cpuinfo) {
  std::istringstream lines{std::string(cpuinfo)};
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with("flags")) continue;
    std::istringstream words(line.substr(std::min(line.size(), line.find(':') + 1)));
    std::vector<std::string> found{std::istream_iterator<std::string>(words), {}};
    std::ranges::sort(found);
    return found;
  }
  return {};
}

FRUGAL_INLINE StepMachine StepMachine::here(std::string torch) {
  utsname names{};
  uname(&names);
  std::ifstream file("/proc/cpuinfo");
  std::string const text{std::istreambuf_iterator<char>(file), {}};
  return {.torch = std::move(torch),
          .architecture = names.machine,
          .instructions = instructions_in(text)};
}

FRUGAL_INLINE void require_machine(StepManifest const& manifest, StepMachine const& machine,
                                   std::filesystem::path const& folder) {
  auto const refuse = [&](std::string what, std::string why, std::string fix) {
    throw DeviceError({.what = std::move(what),
                       .where = folder.string(),
                       .why = std::move(why),
                       .fix = std::move(fix)});
  };
  auto const series = [](std::string const& version) {
    return version.substr(0, version.find('.', version.find('.') + 1));
  };
  if (series(manifest.torch) != series(machine.torch)) {
    refuse("the step package is of another LibTorch",
           "it was exported with " + manifest.torch + ", and this program has " + machine.torch,
           "Export it with the torch of the program's version.");
  }
  if (manifest.architecture != machine.architecture) {
    refuse("the step package is of another kind of machines",
           "it was exported on " + manifest.architecture + ", and this is " + machine.architecture,
           "Export it on a machine of this kind.");
  }
  std::string missing;
  for (std::string const& each : manifest.instructions) {
    if (std::ranges::binary_search(machine.instructions, each)) continue;
    missing += (missing.empty() ? "" : ", ") + each;
  }
  if (!missing.empty()) {
    refuse("the step package has instructions that this CPU lacks", "it needs " + missing,
           "Export it on this machine, or with march=\"x86-64-v3\", which CPUs since 2015 run.");
  }
}

}  // namespace frugal::detail
