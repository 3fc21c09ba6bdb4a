// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

namespace frugal {

/// Thrown where something long (a validation, a rehearsal) is broken off because the machine is
/// about to go. No error: the loop catches it, and nobody else has to know of it. What was begun
/// is begun again when the run is.
struct Interrupted {
  std::size_t subscriber = 0;  ///< whose hook did not finish: its place in the computed order
};

}  // namespace frugal
