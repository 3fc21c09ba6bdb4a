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
#include <utility>
#include <vector>

#include <frugal/core/libtorch/devices.hpp>
#include <frugal/core/libtorch/generators.hpp>

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

  void require_beside(CallInProgress const& other) const;

  bool reads(void const* source) const;
  bool reads_any(Call const& call) const;

  static bool share_parameters(torch::nn::Module const& a, torch::nn::Module const& b);

  [[noreturn]] void refuse(std::string what, std::string why, std::string fix) const;

  Call call_;
  std::thread::id thread_ = std::this_thread::get_id();
  ::pid_t process_ = ::getpid();
  std::shared_ptr<GeneratorStates> generators_;
  bool shares_ = false;
};

}  // namespace frugal::detail

#ifndef FRUGAL_COMPILED
#include <frugal/core/run/call_in_progress.ipp>
#endif
