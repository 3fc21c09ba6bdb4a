// SPDX-License-Identifier: Apache-2.0
// needs: torch
// expect: frugal: Optimize<Partition<...>> takes two of AdamW, Adam, SGD, Adagrad and Partition: each updates some of the parameters, and another optimizer updates all. Write Optimize<Partition<SGD, AdamW>>.
#include <frugal/policy/optimize/partition.hpp>

using namespace frugal;

auto good = Optimize<Partition<SGD, Partition<Adam, AdamW>>>{};
#ifdef FRUGAL_REJECT
auto bad = Optimize<Partition<SGD, Any>>{};
#endif
