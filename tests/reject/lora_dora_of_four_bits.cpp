// SPDX-License-Identifier: Apache-2.0
// needs: torch
// expect: frugal: Dora needs the norms of a weight's rows, and Base<NF4> keeps the weight in 4 bits. Remove one of them.
#include <frugal/model/lora.hpp>

using namespace frugal;

Lora<On<"q_proj">, Dora> good;
#ifdef FRUGAL_REJECT
Lora<On<"q_proj">, Dora, Base<NF4>> bad;
#endif
