// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/metrics/accuracy.hpp>

#include <frugal/inline.hpp>

#include <ATen/ATen.h>

#include <cstdint>

namespace frugal {

FRUGAL_INLINE double Accuracy::result() const { return right_.value() / labels_.counted(name); }

}  // namespace frugal
