// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace frugal {
struct RunState;
}  // namespace frugal

namespace frugal::detail {

/// Environment outside of a run that change its bits or its data, by name. A checkpoint records
/// the known ones, and a resume under others reports that.
using Environment = std::map<std::string, std::uint64_t>;

/// Call it in the training thread: OpenMP has a thread count for each.
Environment environment_of(RunState const& run);

/// Reports each difference that matters. A source may not know how long an epoch is.
void compare_environments(RunState& run, Environment const& saved);

}  // namespace frugal::detail

#ifndef FRUGAL_COMPILED
#include <frugal/policy/checkpoint/environment.ipp>
#endif
