// SPDX-License-Identifier: Apache-2.0
// needs: torch
// expect: frugal: Unfreeze counts epochs, optimizer steps, samples or tokens. Write Every<1, Epoch> or Every<500>.
#include <frugal/model/freeze.hpp>

using namespace frugal;

Unfreeze<Where<"0.*">, Every<5>> good;
#ifdef FRUGAL_REJECT
Unfreeze<Where<"0.*">, Every<5, MicroBatch>> bad;
#endif
