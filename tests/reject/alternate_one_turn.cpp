// SPDX-License-Identifier: Apache-2.0
// needs: torch
// expect: frugal: Alternate<...> takes two turns or more. Write Alternate<Turn<Where<"critic.*">, 5>, Turn<Where<"generator.*">>>.
#include <frugal/model/alternate.hpp>

using namespace frugal;

Alternate<Turn<Where<"a.*">>, Turn<Where<"b.*">, 5>> good;
#ifdef FRUGAL_REJECT
Alternate<Turn<Where<"a.*">>> bad;
#endif
