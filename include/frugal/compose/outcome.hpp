// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <utility>

namespace frugal {

/// What a fit leaves in the value of a policy: a State ends with its fit, and the trainer, which
/// has the value, outlives it. `trainer.policy<Kind>()` is where the user finds it.
///
/// The value that a State is made from is the trainer's own and stays where it is for the fit, so a
/// State may keep the address of its outcome.
///
/// It is no setting. A policy's value is constant while fitting but for this; a copy of the value
/// shares what is there, and what another fit leaves replaces it in its own trainer alone.
template <class T>
class Outcome {
 public:
  /// Null before a fit has left something.
  T const* get() const { return found_.get(); }

  void leave(T found) const { found_ = std::make_shared<T const>(std::move(found)); }
  void forget() const { found_.reset(); }

 private:
  mutable std::shared_ptr<T const> found_;
};

}  // namespace frugal
