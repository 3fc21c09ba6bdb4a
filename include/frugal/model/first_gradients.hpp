// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/core/libtorch/parameters.hpp>

namespace frugal::detail {

/// Refuses trained parameters that the first window's backward pass has not reached: a layer that
/// the module's forward never calls, because it has another one in its place, would train nothing
/// and be saved as trained.
class FirstGradients {
 public:
  void check(Parameters const& parameters, char const* policy) {
    if (checked_) [[likely]]
      return;
    checked_ = true;
    require(parameters, policy);
  }

 private:
  static void require(Parameters const& parameters, char const* policy);

  bool checked_ = false;
};

}  // namespace frugal::detail

#ifndef FRUGAL_COMPILED
#include <frugal/model/first_gradients.ipp>
#endif
