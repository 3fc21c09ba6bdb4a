// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/core/run/run.hpp>
#include <frugal/inline.hpp>

namespace frugal {

FRUGAL_INLINE RunOfFacts::RunOfFacts(torch::nn::Module& the_module, Settings const& the_settings,
                                     RunLimits const& the_horizon, RecipeFacts const& of)
    : RunState{.root = the_module,
               .settings = the_settings,
               .progress = RunProgress(the_horizon),
               .losses = LossAccumulator(of.agrees ? LossAccumulator::Reading::when_agreed
                                                   : LossAccumulator::Reading::at_once),
               .links = RunLinks(of)} {}

}  // namespace frugal
