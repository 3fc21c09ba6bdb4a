// SPDX-License-Identifier: Apache-2.0
// needs: torch
// expect: frugal: Grace<0> leaves no time to save. Write the seconds between the notice and the end of the machine: Grace<30> on GCP and Azure, Grace<120> on AWS.
#include <frugal/policy/spot.hpp>

using namespace frugal;

auto good = Spot<SigtermSave, Grace<1>>{};
#ifdef FRUGAL_REJECT
auto bad = Spot<SigtermSave, Grace<0>>{};
#endif
