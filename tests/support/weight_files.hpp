// SPDX-License-Identifier: Apache-2.0
// Files of weights, as other programs write them.
#pragma once

#include <ATen/ATen.h>
#include <torch/nn/module.h>

#include <frugal/base/file.hpp>
#include <frugal/checkpoint/safetensors_writer.hpp>
#include <frugal/core/state/module_tensors.hpp>
#include <frugal/policy/checkpoint/weights.hpp>

#include <filesystem>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace frugal_test::support {

using Tensors = std::map<std::string, at::Tensor>;

inline void write_safetensors(std::filesystem::path const& path, Tensors const& tensors) {
  std::vector<frugal::TensorView> views;
  for (auto const& [name, tensor] : tensors) {
    views.push_back(frugal::detail::stored_view(name, tensor));
  }
  frugal::SafetensorsWriter const writer(std::move(views), {{"format", "pt"}}, path.string());
  std::filesystem::remove(path);
  frugal::File file = frugal::File::create(path);
  writer.write(file);
  file.close();
}

/// Copies of a module's tensors.
inline Tensors copies_of(torch::nn::Module& module) {
  Tensors all;
  frugal::detail::visit_all_tensors(module, [&](std::string const& name, at::Tensor const& tensor) {
    all.emplace(name, tensor.detach().clone());
  });
  return all;
}

inline bool equal(Tensors const& a, Tensors const& b) {
  bool same = a.size() == b.size();
  for (auto const& [name, tensor] : a) {
    auto const other = b.find(name);
    same = same && other != b.end() && tensor.equal(other->second);
  }
  return same;
}

}  // namespace frugal_test::support
