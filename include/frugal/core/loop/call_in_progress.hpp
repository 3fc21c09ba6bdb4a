// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ATen.h>
#include <c10/core/Device.h>
#include <torch/nn/module.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <unordered_set>
#include <utility>
#include <vector>

#include <frugal/core/libtorch/devices.hpp>
#include <frugal/core/libtorch/generators.hpp>
#include <frugal/error.hpp>
#include <frugal/inline.hpp>

namespace frugal::detail {

/// A call that trains, or reads a source with a module, for its duration: fit, evaluate and the
/// like. Refuses to begin (ConcurrentFitError) where it would change the result of a call in
/// progress, or that one its own. At the end, also by an exception, LibTorch's generators are as
/// they were before it.
///
/// LibTorch has one set of generators for all threads. So one thread at a time may train; the fits
/// of recipes that agree (service::reduce) are one run, and may have a thread each, over Communicators
/// of their own.
class [[nodiscard]] CallInProgress {
 public:
  enum class Kind {
    trains,  ///< draws from the generators and changes the module
    reads,   ///< in evaluation mode
  };
  struct Call {
    Kind kind = Kind::trains;
    std::string_view name{};              ///< of the function
    torch::nn::Module* module = nullptr;  ///< null: it has several, one after the other
    void const* source = nullptr;         ///< read from the beginning to the end of the call
    std::vector<void const*> others{};    ///< read at times: validation sources
    c10::Device device = c10::kCPU;
    bool agrees = false;
    /// Of a recipe that agrees: what its processes exchange through. Null if it does not say so.
    void const* exchanges = nullptr;
  };

  explicit CallInProgress(Call call) : call_(std::move(call)) {
    std::scoped_lock const lock(registry().guard);
    for (CallInProgress const* other : registry().calls) {
      if (other->process_ != process_) continue;  // a fork has copied the parent's list
      require_beside(*other);
      if (other->thread_ == thread_ || !other->trains()) continue;
      shares_ = true;
      // Who comes last restores. What reads draws nothing, and leaves that fit's numbers alone.
      generators_ = trains() ? other->generators_ : std::make_shared<GeneratorStates>();
    }
    if (!generators_) {
      generators_ = std::make_shared<GeneratorStates>();
      // A dry run needs no device; any other call refuses one that is not there, after this.
      c10::Device const device = is_available(call_.device) ? call_.device : c10::Device(c10::kCPU);
      trains() ? generators_->take_seeded(device) : generators_->take(device);
    }
    registry().calls.push_back(this);
  }
  CallInProgress(CallInProgress const&) = delete;
  CallInProgress& operator=(CallInProgress const&) = delete;
  ~CallInProgress() {
    std::scoped_lock const lock(registry().guard);
    std::vector<CallInProgress const*>& calls = registry().calls;
    calls.erase(std::find(calls.begin(), calls.end(), this));
    for (CallInProgress const* other : calls) {
      // Now its numbers come from the generators, and it restores them.
      if (other->process_ == process_ && other->thread_ != thread_ && other->trains()) return;
    }
    try {
      generators_->restore();
    } catch (...) {  // a device that has failed; the error that ended the call is the one to report
    }
  }

  /// Whether a fit in another thread draws from the same generators.
  bool shares_generators() const { return shares_; }

 private:
  struct Registry {
    std::mutex guard;
    std::vector<CallInProgress const*> calls;
  };
  static Registry& registry() {
    static Registry all;
    return all;
  }

  bool trains() const { return call_.kind == Kind::trains; }

  FRUGAL_INLINE void require_beside(CallInProgress const& other) const {
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

  FRUGAL_INLINE bool reads(void const* source) const {
    return source != nullptr &&
           (source == call_.source ||
            std::find(call_.others.begin(), call_.others.end(), source) != call_.others.end());
  }
  FRUGAL_INLINE bool reads_any(Call const& call) const {
    return reads(call.source) || std::any_of(call.others.begin(), call.others.end(),
                                             [this](void const* source) { return reads(source); });
  }

  FRUGAL_INLINE static bool share_parameters(torch::nn::Module const& a,
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

  [[noreturn]] FRUGAL_INLINE void refuse(std::string what, std::string why, std::string fix) const {
    throw ConcurrentFitError({.what = std::move(what),
                              .where = std::string(call_.name),
                              .why = std::move(why),
                              .fix = std::move(fix)});
  }

  Call call_;
  std::thread::id thread_ = std::this_thread::get_id();
  ::pid_t process_ = ::getpid();
  std::shared_ptr<GeneratorStates> generators_;
  bool shares_ = false;
};

}  // namespace frugal::detail
