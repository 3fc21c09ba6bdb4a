// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace frugal {

/// Thrown where something long (a validation, a rehearsal) is broken off because the run is to be
/// left. No error: the loop catches it, and nobody else has to know of it. What was begun is begun
/// again when the run is.
struct Interrupted {};

}  // namespace frugal
