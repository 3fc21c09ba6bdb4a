// SPDX-License-Identifier: Apache-2.0
// needs: torch
// expect: frugal: a callback cannot be copied, and each fit has a copy of its own. Capture a reference or a std::shared_ptr instead of what only moves.
#include <frugal/policy/callback.hpp>

#include <memory>

using namespace frugal;

auto good = on_step([count = std::make_shared<int>(0)](Step&) { ++*count; });
#ifdef FRUGAL_REJECT
auto bad = on_step([count = std::make_unique<int>(0)](Step&) { ++*count; });
#endif
