// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/policy/recompute/segments.hpp>

#include <frugal/error.hpp>
#include <frugal/inline.hpp>

namespace frugal::detail {

FRUGAL_INLINE void refuse_divided() {
  throw ModuleError({.what = "frugal::each passes on a tuple or vector, and several processes have "
                             "the members of its list",
                     .where = "frugal::each",
                     .why = "one tensor travels from a stage to the next one",
                     .fix = "Pass one tensor from member to member, for example with at::cat."});
}

}  // namespace frugal::detail
