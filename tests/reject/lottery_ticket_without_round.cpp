// SPDX-License-Identifier: Apache-2.0
// needs: torch
// expect: frugal: LotteryTicket::draw: the trainer lacks the round. Put the argument of the function into the recipe, as in `Trainer{net, CrossEntropy{}, settings, Optimize<AdamW>{}, round}`.
#include <frugal/model/lottery_ticket.hpp>
#include <frugal/policy/optimize.hpp>
#include <frugal/trainer.hpp>

#include <torch/nn/modules/linear.h>

using namespace frugal;

inline std::vector<Batch> batches;

template <class... Rounds>
void draw() {
  static_cast<void>(LotteryTicket<>{}.draw(
      [](TicketRound const& round) {
        return Trainer{torch::nn::Linear(2, 2), CrossEntropy{}, Optimize<SGD>{}, Rounds(round)...};
      },
      batches, batches));
}
template void draw<TicketRound>();
#ifdef FRUGAL_REJECT
template void draw<>();
#endif
