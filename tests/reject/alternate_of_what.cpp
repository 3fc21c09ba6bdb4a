// SPDX-License-Identifier: Apache-2.0
// needs: torch
// expect: frugal: Alternate<...> takes turns, and one of these is something else. Write Alternate<Turn<Where<"critic.*">, 5>, Turn<Where<"generator.*">>>.
#include <frugal/model/alternate.hpp>

using namespace frugal;

Alternate<Turn<Where<"a.*">>, Turn<Where<"b.*">>> good;
#ifdef FRUGAL_REJECT
Alternate<Where<"a.*">, Where<"b.*">> bad;
#endif
