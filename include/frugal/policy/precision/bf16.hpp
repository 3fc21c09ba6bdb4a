// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include <frugal/core/compose/about.hpp>
#include <frugal/core/compose/policy.hpp>
#include <frugal/core/libtorch/autocast.hpp>
#include <frugal/core/run/phases.hpp>
#include <frugal/core/run/settings.hpp>
#include <frugal/policy/kinds.hpp>
#include <frugal/policy/precision/fp32.hpp>
#include <frugal/policy/precision/hardware.hpp>

namespace frugal {

struct BF16 {
  static constexpr char const* name = "BF16";
};

/// Forward and backward in BF16, which has the range of FP32 and needs no loss scaling.
///
/// Lever   hours per run: matrix units multiply BF16 several times as fast as FP32.
/// Cost    the casts of weights and activations, which on small layers cost more than BF16 saves:
///         measure. No host sync.
/// State   none.
/// Errors  SettingsError for a GPU without BF16, which recommends FP16; on a CPU without BF16
///         instructions a note in Report::warnings.
/// Source  Micikevicius et al., "Mixed precision training" (2018); torch.autocast.
template <>
struct Precision<BF16> {
  using kind = kinds::precision;
  using listens = list<on::fit_begin, around::forward>;

  static constexpr About about{Term::hours_per_run, "casts of weights and activations"};
  using properties = list<property::capturable>;

  static std::string caution(c10::DeviceType device) {
    if (device != at::kCPU || detail::cpu_has_bf16()) return {};
    return "Precision<BF16> gains nothing on this CPU, which has no BF16 instructions; "
           "Precision<FP32> is faster on it";
  }

  static std::string_view format() { return BF16::name; }

  class State {
   public:
    explicit State(Precision const&) {}

    void on_fit_begin(FitBegin& phase) {
      detail::require_bf16(detail::capability_of(phase.settings().device));
      std::string const text = caution(phase.settings().device.type());
      if (!text.empty()) phase.warn(text);
    }

    template <class Next>
    Loss around_forward(Forward const& phase, Next&& next) {
      detail::AutocastGuard const guard(phase.device().type(), at::kBFloat16);
      return next();
    }
  };
};

}  // namespace frugal
