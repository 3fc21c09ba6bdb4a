// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <frugal/model/lora/adapter.hpp>

namespace frugal::detail {

/// PiSSA: the adapter begins as the weight's largest singular values. See LoraAdapter::begin_as().
void begin_with_singular_values(LoraAdapter& adapter, at::Tensor const& weight);

}  // namespace frugal::detail

#ifndef FRUGAL_COMPILED
#include <frugal/model/lora/initial.ipp>
#endif
