// SPDX-License-Identifier: Apache-2.0
// needs: torch
// expect: frugal: CalibrationError<Bins>: Bins is from 1 to 10000. Write CalibrationError<15>.
#include <frugal/metrics/calibration_error.hpp>

using namespace frugal;

static_assert(sizeof(CalibrationError<>) != 0);
#ifdef FRUGAL_REJECT
static_assert(sizeof(CalibrationError<0>) != 0);
#endif
