// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include <frugal/search/trials/history.hpp>

namespace frugal::detail {

/// The warnings of all trials, each text once, with the first of its trials and how many others have it. At most
/// `most` texts.
std::vector<std::string> trial_warnings(SearchHistory const& history, std::size_t most = 20);

}  // namespace frugal::detail

#ifndef FRUGAL_COMPILED
#include <frugal/search/trial_warnings.ipp>
#endif
