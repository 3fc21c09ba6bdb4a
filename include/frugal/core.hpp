// SPDX-License-Identifier: Apache-2.0
#pragma once

// The engine, the loop and what the loop requires; include policies by name.

#include <frugal/core/compose/rational.hpp>
#include <frugal/trainer.hpp>
