// SPDX-License-Identifier: Apache-2.0
// needs: torch
// expect: frugal: RecordSet cannot make this type of sample of a record.
#include <frugal/data/shards/record_set.hpp>

#include <vector>

#ifdef FRUGAL_REJECT
using Sample = std::vector<at::Tensor>;  // of any number
#else
using Sample = std::pair<at::Tensor, int>;
#endif

inline auto records(char const* folder) { return frugal::RecordSet<Sample>(folder).size(); }
