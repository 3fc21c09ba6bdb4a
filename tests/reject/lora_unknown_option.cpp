// SPDX-License-Identifier: Apache-2.0
// needs: torch
// expect: frugal: Lora<...>: unknown option.
#include <frugal/model/lora.hpp>

using namespace frugal;

Lora<On<"q_proj">> good;
#ifdef FRUGAL_REJECT
Lora<On<"q_proj">, int> bad;
#endif
