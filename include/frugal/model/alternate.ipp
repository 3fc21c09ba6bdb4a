// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/model/alternate.hpp>

#include <frugal/core/run/run_state.hpp>
#include <frugal/inline.hpp>

#include <unordered_map>

namespace frugal::detail {

FRUGAL_INLINE std::vector<std::vector<at::Tensor>> tensors_of_turns(
    torch::nn::Module& module, std::vector<NamePatterns> const& turns) {
  // A tied parameter has several names, and each of them counts.
  std::vector<std::pair<std::string, at::Tensor>> named;
  std::vector<std::string> names;
  auto const collect = [&](torch::nn::Module& from, std::string const& prefix,
                           auto const& self) -> void {
    for (auto const& item : from.named_parameters(/*recurse=*/false)) {
      if (!item.value().defined()) continue;
      named.emplace_back(prefix + item.key(), item.value());
      names.push_back(prefix + item.key());
    }
    for (auto const& child : from.named_children()) {
      if (child.value()) self(*child.value(), prefix + child.key() + ".", self);
    }
  };
  collect(module, "", collect);

  std::vector<std::vector<at::Tensor>> tensors(turns.size());
  std::unordered_map<at::TensorImpl const*, std::pair<std::size_t, std::string>> owner;
  for (std::size_t i = 0; i < turns.size(); ++i) {
    turns[i].require_in(names, "Alternate", "parameters");
    for (auto const& [name, tensor] : named) {
      if (!turns[i].matches(name)) continue;
      auto const [place, is_new] =
          owner.try_emplace(tensor.unsafeGetTensorImpl(), std::pair(i, name));
      if (!is_new && place->second.first != i) {
        throw SettingsError(
            {.what = "two turns train one parameter",
             .where = "Alternate, '" + place->second.second + "' and '" + name + "'",
             .why = place->second.second == name ? "both patterns select it"
                                                 : "the two names are of one tensor",
             .fix = "Let each parameter belong to one turn; those of no turn are trained in all."});
      }
      if (is_new && tensor.requires_grad()) tensors[i].push_back(tensor);
    }
  }
  return tensors;
}

FRUGAL_INLINE std::size_t turn_at(std::uint64_t step, std::vector<std::uint64_t> const& steps) {
  std::uint64_t round = 0;
  for (std::uint64_t const each : steps) round += each;
  std::uint64_t place = step % round;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    if (place < steps[i]) return i;
    place -= steps[i];
  }
  return 0;
}

FRUGAL_INLINE void TurnsOfRun::find(ModuleSetup& phase, std::vector<NamePatterns> const& turns) {
  hold_ = &phase.take_turns(tensors_of_turns(base_module(phase.module()), turns));
}

FRUGAL_INLINE void TurnsOfRun::begin(FitBegin& phase) const {
  for (std::size_t i = 0; i < steps_.size(); ++i) {
    counted(static_cast<std::int64_t>(steps_[i]), "Turn::steps");
    phase.compare_in_processes("the steps of Alternate's turn " + std::to_string(i),
                               static_cast<double>(steps_[i]));
  }
}

}  // namespace frugal::detail
