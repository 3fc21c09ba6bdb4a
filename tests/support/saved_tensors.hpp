// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <doctest/doctest.h>

#include <frugal/checkpoint/checkpoint.hpp>
#include <frugal/checkpoint/tensor_files.hpp>
#include <frugal/policy/checkpoint/weights.hpp>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <utility>

namespace frugal_test::support {

inline std::filesystem::path checkpoint_of(std::filesystem::path const& run, int step) {
  return run / "checkpoints" / ("step-0000000" + std::to_string(step));
}

inline std::set<std::string> files_in(std::filesystem::path const& folder) {
  std::set<std::string> names;
  for (auto const& each : std::filesystem::directory_iterator(folder)) {
    names.insert(each.path().filename());
  }
  return names;
}

/// Bytes and shape of each tensor, by name, whichever files of the checkpoint have them.
inline std::map<std::string, std::string> tensors_in(frugal::SavedCheckpoint const& saved,
                                                     std::string const& name) {
  auto const files = frugal::detail::TensorFiles::open(frugal::detail::tensors_of(saved, name));
  std::map<std::string, std::string> tensors;
  for (std::size_t i = 0; i < files.size(); ++i) {
    std::string text(reinterpret_cast<char const*>(files[i].bytes.data()), files[i].bytes.size());
    for (std::uint64_t const extent : files[i].shape) text += " " + std::to_string(extent);
    CHECK(tensors.emplace(files[i].name, std::move(text)).second);
  }
  return tensors;
}

}  // namespace frugal_test::support
