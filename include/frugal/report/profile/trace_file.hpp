// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include <frugal/report/profile/trace.hpp>

namespace frugal::detail {

/// A moment as Chrome's trace format has it: microseconds since the trace's base, without the
/// rounding that a double of nanoseconds since 1970 would have.
std::string trace_moment(std::uint64_t nanoseconds, std::uint64_t base);

/// One point of the memory's curve, in the same digits whatever the program's locale is.
std::string counter_event(std::uint64_t at, std::uint64_t base, std::int64_t bytes);

/// Copies a trace that Kineto has written, and adds the memory as a counter track, which Perfetto
/// and chrome://tracing draw as a curve; Kineto's own memory events are dots. `to` appears when it
/// is whole, so that a kill leaves no part of a trace under its name. False if either file fails,
/// or the first is not such a trace.
bool copy_with_counter(std::filesystem::path const& from, std::filesystem::path const& to,
                       std::vector<watch::MemoryPoint> const& memory, std::uint64_t begin);

/// Removes what a kill has left of files that were being written: x.part, and x.part.tmp of Kineto.
void remove_parts(std::filesystem::path const& folder);

}  // namespace frugal::detail

#ifndef FRUGAL_COMPILED
#include <frugal/report/profile/trace_file.ipp>
#endif
