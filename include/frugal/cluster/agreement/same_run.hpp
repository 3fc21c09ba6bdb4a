// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include <frugal/cluster/communicator.hpp>
#include <frugal/cluster/communicator/control_frame.hpp>

namespace frugal::detail {

/// The texts of all ranks.
std::vector<std::string> gather_texts(Communicator& all, std::string const& mine, char const* what);

/// Throws ClusterError, in every rank, if a value differs between ranks. `values` has the same names
/// in all.
void require_same_run(Communicator& all,
                      std::vector<std::pair<std::string, std::string>> const& values);

}  // namespace frugal::detail

#ifndef FRUGAL_COMPILED
#include <frugal/cluster/agreement/same_run.ipp>
#endif
