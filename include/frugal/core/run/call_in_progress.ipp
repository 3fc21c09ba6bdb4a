// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/core/run/call_in_progress.hpp>

#include <frugal/error.hpp>
#include <frugal/inline.hpp>

#include <unordered_set>

namespace frugal::detail {

FRUGAL_INLINE void CallInProgress::require_beside(CallInProgress const& other) const {
  bool const apart = other.thread_ != thread_;
  std::string const its = std::string(other.call_.name);
  if (apart && trains() && other.trains() && !(call_.agrees && other.call_.agrees)) {
    refuse("another thread of this process trains, in " + its,
           "LibTorch's generators of random numbers are one set for all threads, and each of the "
           "two would take numbers of the other",
           "Make the calls one after the other, or in separate processes.");
  }
  if (apart && trains() && other.trains() && call_.exchanges != nullptr &&
      call_.exchanges == other.call_.exchanges) {
    refuse("another thread of this process trains with the same processes, in " + its,
           "one Communicator carries the exchanges of one fit, and each of the two would take "
           "gradients of the other",
           "Make the calls one after the other, or give each a Communicator of its own "
           "(Replicate::with).");
  }
  bool const both = call_.module != nullptr && other.call_.module != nullptr;
  if (apart && both && call_.module == other.call_.module) {
    refuse("another thread uses this module, in " + its,
           "the two would change its mode, gradients or weights under each other",
           "Make the calls one after the other, or give this one a copy of the module.");
  }
  if (!apart && both && trains() && other.trains() &&
      share_parameters(*call_.module, *other.call_.module)) {
    refuse("a call in progress, " + its + ", trains parameters of this module",
           "this call would change weights and gradients in the middle of its steps",
           "Call it when that one has returned, or train a copy of the module.");
  }
  if (reads(other.call_.source) || (apart && other.reads_any(call_))) {
    refuse("a call in progress, " + its + ", reads this source",
           "a source has one position, and that call would continue where this one leaves it",
           "Make another source over the same data.");
  }
}

FRUGAL_INLINE bool CallInProgress::reads(void const* source) const {
  return source != nullptr &&
         (source == call_.source ||
          std::find(call_.others.begin(), call_.others.end(), source) != call_.others.end());
}

FRUGAL_INLINE bool CallInProgress::reads_any(Call const& call) const {
  return reads(call.source) || std::any_of(call.others.begin(), call.others.end(),
                                           [this](void const* source) { return reads(source); });
}

FRUGAL_INLINE bool CallInProgress::share_parameters(torch::nn::Module const& a,
                                                    torch::nn::Module const& b) {
  std::unordered_set<void const*> trained;
  for (at::Tensor const& each : a.parameters()) {
    if (each.requires_grad()) trained.insert(each.unsafeGetTensorImpl());
  }
  std::vector<at::Tensor> const others = b.parameters();
  return std::any_of(others.begin(), others.end(), [&](at::Tensor const& each) {
    return trained.contains(each.unsafeGetTensorImpl());
  });
}

FRUGAL_INLINE void CallInProgress::refuse(std::string what, std::string why,
                                          std::string fix) const {
  throw ConcurrentFitError({.what = std::move(what),
                            .where = std::string(call_.name),
                            .why = std::move(why),
                            .fix = std::move(fix)});
}

}  // namespace frugal::detail
