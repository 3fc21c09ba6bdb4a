// SPDX-License-Identifier: Apache-2.0
// needs: torch tensorboard
// expect: frugal: TensorBoard<...>: unknown option. Options: a cadence such as Every<100>, WeightHistograms<Every<1000>>, GradientHistograms<Every<1000>>.
#include <frugal/report/tensorboard.hpp>

using namespace frugal;

auto good = TensorBoard<Every<10>>{};
#ifdef FRUGAL_REJECT
auto bad = TensorBoard<Sample>{};
#endif
