// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/autocast_mode.h>

#include <fstream>
#include <string>

#include <frugal/compose/about.hpp>
#include <frugal/compose/policy.hpp>
#include <frugal/loop/kinds.hpp>
#include <frugal/loop/phase.hpp>

namespace frugal {

struct FP32 {};
struct BF16 {};

namespace detail {

/// Autocast for the span of a forward pass: the counterpart of `with torch.autocast(...)`.
class AutocastGuard {
 public:
  AutocastGuard(at::DeviceType device, at::ScalarType type)
      : device_(device),
        enabled_(at::autocast::is_autocast_enabled(device)),
        type_(at::autocast::get_autocast_dtype(device)) {
    at::autocast::set_autocast_enabled(device_, true);
    at::autocast::set_autocast_dtype(device_, type);
    at::autocast::increment_nesting();
  }
  AutocastGuard(AutocastGuard const&) = delete;
  AutocastGuard& operator=(AutocastGuard const&) = delete;
  ~AutocastGuard() {
    // Weights change between steps: their cached casts must not outlive the region.
    if (at::autocast::decrement_nesting() == 0) at::autocast::clear_cache();
    at::autocast::set_autocast_enabled(device_, enabled_);
    at::autocast::set_autocast_dtype(device_, type_);
  }

 private:
  at::DeviceType device_;
  bool enabled_;
  at::ScalarType type_;
};

/// Does this CPU multiply BF16 natively (avx512_bf16 or amx_bf16)? True where unknown.
inline bool cpu_has_bf16() {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);) {
    if (line.rfind("flags", 0) == 0) {
      return line.find("avx512_bf16") != std::string::npos ||
             line.find("amx_bf16") != std::string::npos;
    }
    if (line.rfind("Features", 0) == 0) return line.find(" bf16") != std::string::npos;
  }
  return true;
}

}  // namespace detail

/// The number format of forward and backward; weights and optimizer stay FP32.
///
/// Lever   hours per run: matrix units multiply BF16 several times as fast as FP32.
/// Cost    the casts of weights and activations; on small layers they cost more than they
///         save, so measure. No host sync.
/// State   none.
/// Errors  none; a CPU without BF16 instructions gets an advice.
/// Source  Micikevicius et al., "Mixed precision training" (2018); torch.autocast.
template <class Format>
struct Precision;

template <>
struct Precision<FP32> {
  using kind = kinds::precision;
  using listens = list<>;
};

template <>
struct Precision<BF16> {
  using kind = kinds::precision;
  using listens = list<on::fit_begin, around::forward>;

  static constexpr About about{Term::hours_per_run, "casts of weights and activations"};

  static std::string caution() {
    if (detail::cpu_has_bf16()) return {};
    return "Precision<BF16> gains nothing on this CPU, which has no BF16 instructions; "
           "Precision<FP32> is faster on it";
  }

  template <class Context>
  class State {
   public:
    explicit State(Precision const&) {}

    void on_fit_begin(FitBegin<Context>& phase) {
      if (phase.settings().device.is_cpu() && !caution().empty()) phase.advise(caution());
    }

    template <class Next>
    Loss around_forward(Forward<Context> const& phase, Next&& next) {
      detail::AutocastGuard const guard(phase.device().type(), at::kBFloat16);
      return next();
    }
  };
};

template <>
struct null_policy<kinds::precision> {
  using type = Precision<FP32>;
};

}  // namespace frugal
