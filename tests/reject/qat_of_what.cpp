// SPDX-License-Identifier: Apache-2.0
// needs: torch
// expect: frugal: Qat<...>: unknown option. Options: Qat<INT8>, Qat<INT8, Moving>, Qat<INT8, Learned>.
#include <frugal/model/qat.hpp>

using namespace frugal;

template struct frugal::Qat<INT8, Learned>;
#ifdef FRUGAL_REJECT
template struct frugal::Qat<INT4, Learned>;
#endif
