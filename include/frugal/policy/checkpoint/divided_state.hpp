// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include <frugal/base/hash.hpp>
#include <frugal/core/state/state_dict.hpp>
#include <frugal/core/state/tensor_places.hpp>
#include <frugal/error.hpp>
#include <frugal/inline.hpp>
#include <frugal/policy/checkpoint/shared_save.hpp>
#include <frugal/policy/checkpoint/stored_tensor.hpp>

namespace frugal::detail {

// The State of a run whose processes have different layers: each has values of its own layers, which the
// first process puts together.

/// Whether a value belongs to no layer and to a policy: then all processes have the same. Values that a
/// policy can do without may differ, as seconds do, and so may those of Checkpoint, which has its folder in
/// the first process.
FRUGAL_INLINE bool is_common(StateDict const& run, TensorPlaces const& places,
                             std::string const& path) {
  static constexpr std::string_view policies = "policies/";
  if (!path.starts_with(policies) || places.find(path) != nullptr) return false;
  std::string const scope = path.substr(0, path.find('/', policies.size()) + 1);
  return scope != "policies/Checkpoint/" && !run.values.contains(scope + "dispensable");
}

/// In a process that is not the first: the values of its own layers go into the report, and, to be
/// compared, those that all have. Of tensors that belong to no layer the first process's are saved, so the
/// report has the hash alone, and `run` loses them.
FRUGAL_INLINE void report_own_state(StateDict& run, TensorPlaces const& places,
                                    PartReport& report) {
  using Place = PlacedTensor::Place;
  for (auto const& [path, value] : run.values) {
    if (places.is(Place::here, path) || is_common(run, places, path)) {
      report.values.emplace(path, value);
    }
  }
  std::erase_if(run.tensors, [&](auto const& entry) {
    if (places.is(Place::here, entry.first)) return false;
    report.common.emplace(entry.first, Hash::of(stored_view(entry.first, entry.second).bytes));
    return true;
  });
}

/// The text of a report has no sign for a number that is not negative.
FRUGAL_INLINE StateDict::Value without_sign(StateDict::Value const& value) {
  auto const* const number = std::get_if<std::int64_t>(&value);
  if (number == nullptr || *number < 0) return value;
  return static_cast<std::uint64_t>(*number);
}

[[noreturn]] FRUGAL_INLINE void refuse_state(std::string const& path, std::size_t rank) {
  throw StateError({.what = "a State differs between the processes",
                    .where = path + ", rank " + std::to_string(rank),
                    .why = "they have different layers, and a checkpoint has one value of each "
                           "path",
                    .fix = "In its persist(), save what belongs to a parameter under the "
                           "parameter's name: archive(name, value)."});
}

/// In the first process: adds the values of the others' layers. Returns the paths of their tensors.
/// StateError if something differs that belongs to no layer.
FRUGAL_INLINE std::vector<std::string> join_states(StateDict& run, TensorPlaces const& places,
                                                   std::vector<PartReport> const& reports) {
  std::vector<std::string> tensors;
  for (std::size_t rank = 0; rank < reports.size(); ++rank) {
    for (auto const& [path, hash] : reports[rank].common) {
      auto const own = run.tensors.find(path);
      bool const same =
          own != run.tensors.end() && Hash::of(stored_view(path, own->second).bytes) == hash;
      if (!same) refuse_state(path, rank);
    }
    for (auto const& [path, value] : reports[rank].values) {
      if (!places.is(PlacedTensor::Place::elsewhere, path)) {
        StateDict mine, theirs;
        auto const own = run.values.find(path);
        if (own != run.values.end()) mine.values.emplace(path, without_sign(own->second));
        theirs.values.emplace(path, without_sign(value));
        if (!(mine == theirs)) refuse_state(path, rank);
        continue;
      }
      run.values.insert_or_assign(path, value);
      auto const* const text = std::get_if<std::string>(&value);
      if (text != nullptr && *text == "tensor") tensors.push_back(path);
    }
  }
  return tensors;
}

}  // namespace frugal::detail
