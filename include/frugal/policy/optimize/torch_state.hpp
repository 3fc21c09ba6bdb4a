// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ATen.h>
#include <torch/optim/adagrad.h>
#include <torch/optim/adam.h>
#include <torch/optim/adamw.h>
#include <torch/optim/lbfgs.h>
#include <torch/optim/optimizer.h>
#include <torch/optim/rmsprop.h>
#include <torch/optim/sgd.h>
#include <torch/serialize.h>

namespace frugal::detail {

/// Whether it is one of LibTorch's own optimizers, whose saved form is known.
bool is_of_torch(torch::optim::Optimizer const& optimizer);

/// Saves a torch::optim optimizer so that equal states give equal bytes in every process;
/// compatible with Optimizer::load. Optimizer::save keys and orders the state by parameter
/// addresses; this uses the parameters' positions, counted from 1 over all groups.
///
/// A user-defined optimizer is saved by its own save(), because its form may differ.
void save_by_place(torch::optim::Optimizer const& optimizer,
                   torch::serialize::OutputArchive& archive);

}  // namespace frugal::detail

#ifndef FRUGAL_COMPILED
#include <frugal/policy/optimize/torch_state.ipp>
#endif
