// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/core/compose/state_of.hpp>

#include <frugal/error.hpp>
#include <frugal/inline.hpp>

namespace frugal::detail {

FRUGAL_INLINE void refuse_unreached(std::string_view hook) {
  throw PolicyError(
      {.what = "a policy did not call next(), so the part of the run that it surrounds was skipped",
       .where = std::string(hook),
       .why = "an around-hook may not skip its part of the run",
       .fix = "Call next() in it, once. To end a run, return flow::stop from on_step or true from "
              "stop_requested."});
}

}  // namespace frugal::detail
