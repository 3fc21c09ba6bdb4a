// SPDX-License-Identifier: Apache-2.0
// needs: torch
// expect: frugal: LotteryTicket<...>: unknown option. Options: Rewind<step>, Rounds<N>, Where<"pattern">.
#include <frugal/model/lottery_ticket.hpp>

using namespace frugal;

LotteryTicket<Rewind<5>, Rounds<2>> good;
#ifdef FRUGAL_REJECT
LotteryTicket<Rewind<5>, int> bad;
#endif
