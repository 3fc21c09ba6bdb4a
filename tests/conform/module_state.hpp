// SPDX-License-Identifier: Apache-2.0
// The state of a module besides the values of its tensors, which a fit puts back, and the tensors that
// no fit may change.
#pragma once

#include <ATen/ATen.h>
#include <torch/nn/module.h>
#include <torch/nn/modules/batchnorm.h>

#include <frugal/core/libtorch/fixed_tensors.hpp>
#include <frugal/model/lora/adapter.hpp>

#include <map>
#include <memory>
#include <string>

namespace frugal_test::conform {

/// Each part's mode; whether each tensor is trained and fixed; whether each adapter is active and merged.
inline std::map<std::string, bool> flags_of(torch::nn::Module& module) {
  std::map<std::string, bool> flags{{"is training", module.is_training()}};
  for (auto const& item : module.named_modules("", /*include_self=*/false)) {
    flags[item.key() + " is training"] = item.value()->is_training();
    auto const adapter = std::dynamic_pointer_cast<frugal::LoraAdapter>(item.value());
    if (!adapter) continue;
    flags[item.key() + " is active"] = adapter->active;
    flags[item.key() + " is merged"] = adapter->is_merged();
  }
  for (auto const& item : module.named_parameters()) {
    flags[item.key() + " is trained"] = item.value().requires_grad();
    flags[item.key() + " is fixed"] = frugal::is_fixed(item.value());
  }
  for (auto const& item : module.named_buffers()) {
    flags[item.key() + " is fixed"] = frugal::is_fixed(item.value());
  }
  return flags;
}

/// Copies of what is fixed, and of the statistics of layers whose parameters are.
inline std::map<std::string, at::Tensor> kept_by(torch::nn::Module const& module) {
  std::map<std::string, at::Tensor> kept;
  auto const add = [&](std::string const& name, at::Tensor const& tensor) {
    kept.emplace(name, tensor.detach().clone());
  };
  for (auto const& item : module.named_parameters()) {
    if (frugal::is_fixed(item.value())) add(item.key(), item.value());
  }
  for (auto const& item : module.named_modules("", /*include_self=*/false)) {
    auto const* const norm = item.value()->as<torch::nn::BatchNorm1d>();
    if (norm == nullptr || !frugal::is_fixed(norm->weight) || !frugal::is_fixed(norm->bias))
      continue;
    for (auto const& buffer : norm->named_buffers()) {
      add(item.key() + "." + buffer.key(), buffer.value());
    }
  }
  return kept;
}

/// Those by which two states differ, as text.
inline std::string differences(std::map<std::string, bool> const& before,
                               std::map<std::string, bool> const& after) {
  std::string text;
  for (auto const& [name, value] : after) {
    auto const found = before.find(name);
    if (found == before.end()) text += name + " is new; ";
    if (found != before.end() && found->second != value) text += name + " has changed; ";
  }
  if (before.size() > after.size()) text += "some are gone";
  return text;
}

}  // namespace frugal_test::conform
