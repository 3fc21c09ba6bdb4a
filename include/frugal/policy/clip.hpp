// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/policy/clip/adaptive.hpp>
#include <frugal/policy/clip/norm.hpp>
#include <frugal/policy/clip/value.hpp>
