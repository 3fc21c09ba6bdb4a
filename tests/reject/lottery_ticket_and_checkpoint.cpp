// SPDX-License-Identifier: Apache-2.0
// needs: torch
// expect: frugal: LotteryTicket trains one run after the other, and Checkpoint would resume the one before. Remove Checkpoint, and save what draw() returns.
#include <frugal/model/lottery_ticket.hpp>
#include <frugal/policy/checkpoint.hpp>
#include <frugal/policy/optimize.hpp>
#include <frugal/trainer.hpp>

#include <torch/nn/modules/linear.h>

using namespace frugal;

template <class... Ps>
void train() {
  std::vector<Batch> batches;
  Trainer<torch::nn::Linear, CrossEntropy, Optimize<SGD>, Ps...> trainer(torch::nn::Linear(2, 2));
  static_cast<void>(trainer.fit(batches));
}
template void train<TicketRound>();
#ifdef FRUGAL_REJECT
template void train<TicketRound, Checkpoint<Every<5>>>();
#endif
