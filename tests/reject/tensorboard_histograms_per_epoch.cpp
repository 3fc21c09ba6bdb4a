// SPDX-License-Identifier: Apache-2.0
// needs: torch tensorboard
// expect: frugal: WeightHistograms<...> takes a cadence in steps, such as Every<1000>.
#include <frugal/report/tensorboard.hpp>

using namespace frugal;

auto good = TensorBoard<WeightHistograms<Every<10>>>{};
#ifdef FRUGAL_REJECT
auto bad = TensorBoard<WeightHistograms<Every<1, Epoch>>>{};
#endif
