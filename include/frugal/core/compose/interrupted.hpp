// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace frugal {

/// Thrown to interrupt a long operation (a validation, a dry run) because the run is preempted. Not
/// an error: the loop catches it, and other code must let it pass. The resumed run repeats the
/// operation.
struct Interrupted {};

}  // namespace frugal
