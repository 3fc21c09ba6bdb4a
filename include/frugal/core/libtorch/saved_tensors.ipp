// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/core/libtorch/saved_tensors.hpp>

#include <frugal/error.hpp>
#include <frugal/inline.hpp>

namespace frugal::detail {

FRUGAL_INLINE void HookingEngine::install() {
  Engine const& now = get_default_engine();
  if (&now == &instance()) return;
  if (&now != &get_base_engine()) refuse();
  torch::autograd::set_default_engine_stub(+[]() -> Engine& { return instance(); });
}

FRUGAL_INLINE void HookingEngine::refuse() {
  throw SettingsError({.what = "saved tensors cannot be hooked into in this process",
                       .where = "Recompute, Activations",
                       .why = "an autograd engine that is not LibTorch's own is installed, as "
                              "`import torch` in Python does",
                       .fix = "Train in a C++ program, or remove Recompute and Activations and "
                              "use Python's torch.utils.checkpoint."});
}

}  // namespace frugal::detail
