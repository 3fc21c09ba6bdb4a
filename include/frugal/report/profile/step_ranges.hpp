// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/record_function.h>
#include <torch/csrc/profiler/stubs/base.h>

#include <optional>
#include <string_view>

namespace frugal::detail {

/// The part of the step that is running, as a record_function range and, if wanted, as an NVTX
/// range. One part ends where the next begins, so that they fill a window without gaps.
class StepRanges {
 public:
  StepRanges() = default;
  StepRanges(StepRanges const&) = delete;
  StepRanges& operator=(StepRanges const&) = delete;
  ~StepRanges() { leave(); }

  /// Whether LibTorch has NVTX here. The calls live in libtorch_cuda, which registers them.
  static bool has_nvtx() { return torch::profiler::impl::cudaStubs()->enabled(); }

  bool open() const { return range_.has_value(); }
  void begin(bool nvtx, std::string_view part);
  /// Does nothing outside of a window. `part` is a literal.
  void enter(std::string_view part, bool first = false);
  void leave();

  /// A range inside the current part.
  class [[nodiscard]] Nested {
   public:
    Nested(StepRanges const& ranges, std::string_view part) : nvtx_(ranges.open() && ranges.nvtx_) {
      if (!ranges.open()) return;
      range_.emplace(at::RecordScope::USER_SCOPE);
      if (range_->isActive()) range_->before(part.data());
      if (nvtx_) torch::profiler::impl::cudaStubs()->rangePush(part.data());
    }
    Nested(Nested const&) = delete;
    Nested& operator=(Nested const&) = delete;
    ~Nested() {
      if (nvtx_) torch::profiler::impl::cudaStubs()->rangePop();
    }

   private:
    std::optional<at::RecordFunction> range_;
    bool nvtx_;
  };

 private:
  std::optional<at::RecordFunction> range_;
  bool nvtx_ = false;
};

}  // namespace frugal::detail

#ifndef FRUGAL_COMPILED
#include <frugal/report/profile/step_ranges.ipp>
#endif
