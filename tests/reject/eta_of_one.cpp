// SPDX-License-Identifier: Apache-2.0
// expect: frugal: Eta<N> lets one trial in N go on to the next rung. Write 2 or more; 3 and 4 are usual.
#include <frugal/search/schedule/successive_halving.hpp>

frugal::SuccessiveHalving<frugal::Eta<2>> good;
#ifdef FRUGAL_REJECT
frugal::SuccessiveHalving<frugal::Eta<1>> bad;
auto const bound = bad.bind({});
#endif
