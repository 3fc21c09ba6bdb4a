// SPDX-License-Identifier: Apache-2.0
// needs: torch
// expect: frugal: Lora must know which layers it adapts. Add On<"q_proj", "v_proj">, or On<"*"> for every Linear, Conv2d and Embedding.
#include <frugal/model/lora.hpp>

using namespace frugal;

Lora<On<"q_proj">> good;
#ifdef FRUGAL_REJECT
Lora<Rank<8>> bad;
#endif
