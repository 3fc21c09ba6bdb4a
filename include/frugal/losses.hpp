// SPDX-License-Identifier: Apache-2.0
#pragma once

// Objectives of tasks beyond those of frugal.hpp: docs/objectives.md#losses-for-other-tasks.

#include <frugal/losses/contrastive.hpp>
#include <frugal/losses/ctc.hpp>
#include <frugal/losses/dice_loss.hpp>
#include <frugal/losses/focal.hpp>
#include <frugal/losses/triplet.hpp>
