// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/policy/checkpoint/divided_state.hpp>

#include <frugal/base/hash.hpp>
#include <frugal/error.hpp>
#include <frugal/inline.hpp>
#include <frugal/policy/checkpoint/state_file.hpp>
#include <frugal/policy/checkpoint/stored_tensor.hpp>

#include <cstddef>
#include <span>
#include <variant>

namespace frugal::detail {

FRUGAL_INLINE std::map<std::string, std::uint64_t> common_hashes(
    StateDict const& run, TensorPlaces const& places, std::vector<std::string> const& scopes) {
  std::map<std::string, std::uint64_t> hashes;
  for (std::string const& scope : scopes) {
    std::string const start = "policies/" + scope + "/";
    StateFile file;
    Hash tensors;
    for (auto each = run.values.lower_bound(start);
         each != run.values.end() && each->first.starts_with(start); ++each) {
      if (places.find(each->first) != nullptr) continue;
      file.values.insert(*each);
      auto const tensor = run.tensors.find(each->first);
      if (tensor != run.tensors.end()) {
        tensors.update(stored_view(each->first, tensor->second).bytes);
      }
    }
    std::string const text = file.text() + hex_of(tensors.digest());
    hashes.emplace(scope, Hash::of(std::as_bytes(std::span(text))));
  }
  return hashes;
}

FRUGAL_INLINE void report_own_state(StateDict& run, TensorPlaces const& places,
                                    std::vector<std::string> const& scopes, PartReport& report) {
  report.common = common_hashes(run, places, scopes);
  for (auto const& [path, value] : run.values) {
    if (places.saves(path)) report.values.emplace(path, value);
  }
  std::erase_if(run.tensors, [&](auto const& entry) { return !places.saves(entry.first); });
}

FRUGAL_INLINE std::vector<std::string> join_states(StateDict& run, TensorPlaces const& places,
                                                   std::vector<std::string> const& scopes,
                                                   std::vector<PartReport> const& reports) {
  auto const own = common_hashes(run, places, scopes);
  std::vector<std::string> tensors;
  for (std::size_t rank = 1; rank < reports.size(); ++rank) {
    for (auto const& [scope, hash] : own) {
      auto const theirs = reports[rank].common.find(scope);
      if (theirs != reports[rank].common.end() && theirs->second == hash) continue;
      throw StateError({.what = "the State of " + scope + " differs between the processes",
                        .where = "rank " + std::to_string(rank),
                        .why = "they have different layers, and a checkpoint has one value of each "
                               "path",
                        .fix = "In its persist(), save what belongs to a parameter under the "
                               "parameter's name: archive(name, value)."});
    }
    for (auto const& [path, value] : reports[rank].values) {
      run.values.insert_or_assign(path, value);
      auto const* const text = std::get_if<std::string>(&value);
      if (text != nullptr && *text == "tensor") tensors.push_back(path);
    }
  }
  return tensors;
}

}  // namespace frugal::detail
