// SPDX-License-Identifier: Apache-2.0
#include <frugal/frugal.hpp>

#include <ATen/ATen.h>

double second() { return at::ones({3, 2}).sum().item<double>(); }
