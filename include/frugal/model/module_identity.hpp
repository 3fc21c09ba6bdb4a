// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/nn/module.h>

#include <string>

namespace frugal {

/// What a module computes with: "12 tensors, hash 0123456789abcdef". It changes with the names,
/// shapes, types and values of its parameters and buffers, and not with the device they are on; of a
/// module with adapters (Lora) also with their scale, with which of them are in use, and with which
/// are merged.
///
/// Cost    reads every byte once, at the speed of memory; from a device it copies 64 MiB at a time.
std::string module_identity(torch::nn::Module const& module);

}  // namespace frugal

#ifndef FRUGAL_COMPILED
#include <frugal/model/module_identity.ipp>
#endif
