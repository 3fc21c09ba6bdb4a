// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <utility>

namespace frugal {

/// A fit's result in the value of a policy: the State ends with its fit, while the trainer, which
/// holds the value, outlives it. Users read it through `trainer.policy<Kind>()`.
///
/// The value that a State is made from belongs to the trainer and does not move during the fit, so
/// a State may keep the address of its outcome.
///
/// It is not a setting: apart from it, a policy's value is constant during a fit. A copy of the
/// value shares the result; a later fit replaces the result in its own trainer alone.
template <class T>
class Outcome {
 public:
  /// Null until a fit has stored a result.
  T const* get() const { return found_.get(); }

  void set(T found) const { found_ = std::make_shared<T const>(std::move(found)); }
  void clear() const { found_.reset(); }

 private:
  mutable std::shared_ptr<T const> found_;
};

/// Thrown to interrupt a long operation (a validation, a dry run) because the run is preempted. Not
/// an error: the loop catches it, and other code must let it pass. The resumed run repeats the
/// operation.
struct Interrupted {};

}  // namespace frugal
