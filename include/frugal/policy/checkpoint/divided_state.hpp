// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include <frugal/core/state/state_dict.hpp>
#include <frugal/core/state/tensor_places.hpp>
#include <frugal/policy/checkpoint/shared_save.hpp>

namespace frugal::detail {

// The State of a run whose processes have different layers: each has values of its own layers, which the
// first process puts together.

/// By scope: a hash of what all processes must have alike, because it belongs to no layer. `scopes`: of
/// policies.
std::map<std::string, std::uint64_t> common_hashes(StateDict const& run, TensorPlaces const& places,
                                                   std::vector<std::string> const& scopes);

/// In a process that is not the first: the values of its own layers go into the report, and hashes of
/// what all have. `run` keeps the tensors of its layers.
void report_own_state(StateDict& run, TensorPlaces const& places,
                      std::vector<std::string> const& scopes, PartReport& report);

/// In the first process: adds the values of the others' layers. Returns the paths of their tensors.
/// StateError if something differs that belongs to no layer.
std::vector<std::string> join_states(StateDict& run, TensorPlaces const& places,
                                     std::vector<std::string> const& scopes,
                                     std::vector<PartReport> const& reports);

}  // namespace frugal::detail

#ifndef FRUGAL_COMPILED
#include <frugal/policy/checkpoint/divided_state.ipp>
#endif
