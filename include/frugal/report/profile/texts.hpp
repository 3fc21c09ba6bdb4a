// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include <frugal/core/run/event.hpp>
#include <frugal/report/profile/window_profile.hpp>

/// What Profile says: to explain, to the log, and as recommendations.
namespace frugal::detail {

std::string finding_of(WindowProfile const& window);

Event event_of(WindowProfile const& window);

std::string verdict_of(WindowProfile const& window);

std::string no_window_text(std::uint64_t step, std::uint64_t warm_up);

}  // namespace frugal::detail

#ifndef FRUGAL_COMPILED
#include <frugal/report/profile/texts.ipp>
#endif
