// SPDX-License-Identifier: Apache-2.0
// needs: torch
// expect: frugal: Throughput measures between steps, not between epochs. Write Throughput<Every<100>>.
#include <frugal/report/throughput.hpp>

frugal::Throughput<frugal::Every<100>> good;
#ifdef FRUGAL_REJECT
frugal::Throughput<frugal::Every<1, frugal::Epoch>> bad;
#endif
