// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/report/plan/peak.hpp>

#include <frugal/inline.hpp>

#include <cstddef>
#include <fstream>
#include <system_error>

namespace frugal::watch {

FRUGAL_INLINE std::optional<double> peak_flops(std::string_view model, std::string_view format) {
  if (model.find("MIG ") != std::string_view::npos) return std::nullopt;
  for (Peak const& peak : peaks) {
    if (model.find(peak.model) == std::string_view::npos) continue;
    std::array const flops{peak.fp32, peak.bf16, peak.fp16, peak.tf32, peak.fp8, peak.int8};
    for (std::size_t at = 0; at < peak_formats.size(); ++at) {
      if (peak_formats[at] == format && flops[at] > 0) return flops[at];
    }
    return std::nullopt;
  }
  return std::nullopt;
}

FRUGAL_INLINE std::string gpu_model(std::filesystem::path const& driver) {
  std::string model;
  std::error_code error;
  for (auto const& gpu : std::filesystem::directory_iterator(driver, error)) {
    std::ifstream file(gpu.path() / "information");
    for (std::string line; std::getline(file, line);) {
      if (line.rfind("Model:", 0) != 0) continue;
      std::size_t const begin = line.find_first_not_of(" \t", 6);
      std::string const found = begin == std::string::npos ? "" : line.substr(begin);
      if (!model.empty() && model != found) return "";
      model = found;
    }
  }
  return model;
}

}  // namespace frugal::watch
