// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/policy/optimize/adagrad.hpp>
#include <frugal/policy/optimize/adam.hpp>
#include <frugal/policy/optimize/any.hpp>
#include <frugal/policy/optimize/layer_wise.hpp>
#include <frugal/policy/optimize/nothing.hpp>
#include <frugal/policy/optimize/sgd.hpp>
