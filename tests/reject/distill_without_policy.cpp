// SPDX-License-Identifier: Apache-2.0
// needs: torch
// expect: frugal: this objective is that of a Distill which the recipe lacks, so a resume could go on with another teacher. Give the trainer the Distill as well: Trainer{net, distill.objective(CrossEntropy{}), Settings{}, ..., distill}.
#include <frugal/data/tensor_dataset.hpp>
#include <frugal/model/distill.hpp>
#include <frugal/policy/optimize.hpp>
#include <frugal/trainer.hpp>

#include <torch/nn/modules/linear.h>

using namespace frugal;

using Soft = Distill<Temperature<4>>;
template <class... Ps>
using Job = Trainer<torch::nn::Linear, DistillObjective<Temperature<4>, CrossEntropy>,
                    Optimize<AdamW>, Ps...>;
void good(Job<Soft>& job, TensorDataset& train) { job.fit(train); }
#ifdef FRUGAL_REJECT
void bad(Job<>& job, TensorDataset& train) { job.fit(train); }
#endif
