// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/policy/optimize/any.hpp>
#include <frugal/policy/optimize/fused.hpp>
#include <frugal/policy/optimize/layer_wise.hpp>
#include <frugal/policy/optimize/nothing.hpp>
