// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace frugal::watch::detail {

/// The figures of the gauges: those with a known unit as one writes them, others by name.
std::vector<std::string> gauge_texts(std::vector<std::pair<std::string, double>> const& gauges);

}  // namespace frugal::watch::detail

#ifndef FRUGAL_COMPILED
#include <frugal/report/progress/gauge_texts.ipp>
#endif
