// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cctype>
#include <concepts>
#include <cstdlib>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>

#include <frugal/core/compose/about.hpp>
#include <frugal/core/compose/policy.hpp>
#include <frugal/core/libtorch/autocast.hpp>
#include <frugal/core/run/phases.hpp>
#include <frugal/core/run/settings.hpp>
#include <frugal/error.hpp>
#include <frugal/policy/kinds.hpp>
#include <frugal/policy/precision/fp16.hpp>
#include <frugal/policy/precision/fp32.hpp>
#include <frugal/policy/precision/fp8.hpp>
#include <frugal/policy/precision/hardware.hpp>
#include <frugal/policy/precision/int8.hpp>

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

  static std::string caution(bool on_gpu) {
    if (on_gpu || detail::cpu_has_bf16()) return {};
    return "Precision<BF16> gains nothing on this CPU, which has no BF16 instructions; "
           "Precision<FP32> is faster on it";
  }

  static std::string_view format() { return BF16::name; }

  class State {
   public:
    explicit State(Precision const&) {}

    void on_fit_begin(FitBegin& phase) {
      detail::require_bf16(detail::capability_of(phase.settings().device));
      detail::warn_on_device(phase, caution);
    }

    template <class Next>
    Loss around_forward(Forward const& phase, Next&& next) {
      detail::AutocastGuard const guard(phase.device().type(), at::kBFloat16);
      return next();
    }
  };
};

/// The formats from which FRUGAL_PRECISION selects; the first is the default.
template <class... Formats>
struct FromEnv {};

namespace detail {

/// Does nothing: FP32's state in a variant of states.
struct PlainPrecision {
  template <class Settings>
  explicit PlainPrecision(Settings const&) {}
};

template <class Format>
struct precision_state {
  using type = typename Precision<Format>::State;
};
template <>
struct precision_state<FP32> {
  using type = PlainPrecision;
};

template <class Format>
inline constexpr bool is_format =
    std::is_same_v<Format, FP32> || std::is_same_v<Format, BF16> || std::is_same_v<Format, FP16> ||
    std::is_same_v<Format, INT8> || std::is_same_v<Format, FP8>;

}  // namespace detail

/// One program for a cluster of mixed machines: an environment variable selects one of the compiled
/// formats, once, when a fit begins.
///
/// Lever   hours per run: the cheapest setting cannot be forgotten when a job is submitted.
/// Cost    that of the format, and a branch per forward and backward pass and per step.
/// State   the format's own, and its name.
/// Errors  SettingsError for a value of FRUGAL_PRECISION that is not a compiled format, with the
///         list of these; StateError for a checkpoint of another format.
template <class First, class... Rest>
struct Precision<FromEnv<First, Rest...>> {
  static_assert(detail::is_format<First> && (detail::is_format<Rest> && ...),
                "frugal: FromEnv<...>: unknown format. Options: FP32, BF16, FP16, INT8, FP8.");

  using kind = kinds::precision;
  static constexpr bool in_layers =
      contains<INT8, list<First, Rest...>> || contains<FP8, list<First, Rest...>>;
  using properties = std::conditional_t<
      in_layers, list<property::works_on_parts, property::capturable, property::works_in_layers>,
      list<property::works_on_parts, property::capturable>>;
  using listens = list<on::fit_begin, around::forward, on::loss, on::gradients, on::update>;

  static constexpr char const* variable = "FRUGAL_PRECISION";
  static constexpr About about{Term::hours_per_run, "casts of weights and activations"};

  LossScaling scaling{};  ///< of FP16

  /// The format that FRUGAL_PRECISION selects, ignoring case.
  static std::string chosen() {
    char const* const given = std::getenv(variable);
    if (given == nullptr || *given == 0) return First::name;
    std::string name = given;
    std::transform(name.begin(), name.end(), name.begin(), [](char c) {
      return static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
    });
    if (name == First::name || ((name == Rest::name) || ...)) return name;
    throw SettingsError(
        {.what = std::string(variable) + " is '" + given + "'",
         .where = "Precision<FromEnv<...>>",
         .why = "this program was compiled with " + names(),
         .fix = "Set it to one of these, or to nothing for " + std::string(First::name) + "."});
  }

  /// The format of this process.
  static std::string_view format() {
    std::string const name = chosen();
    std::string_view found = First::name;
    ((found = name == Rest::name ? Rest::name : found), ...);
    return found;
  }

  class State {
    using Chosen = std::variant<typename detail::precision_state<First>::type,
                                typename detail::precision_state<Rest>::type...>;

   public:
    State(Precision const& settings, RecipeFacts const& facts)
        : name_(chosen()), chosen_(make<0, First, Rest...>(settings, facts)) {}

    void on_fit_begin(FitBegin& phase) { call<on::fit_begin>(phase); }
    template <class Next>
    Loss around_forward(Forward const& phase, Next&& next) {
      return std::visit(
          [&](auto& state) -> Loss {
            if constexpr (requires { state.around_forward(phase, next); }) {
              return state.around_forward(phase, next);
            } else {
              return next();
            }
          },
          chosen_);
    }
    void on_loss(LossReady& phase) { call<on::loss>(phase); }
    void on_gradients(Gradients& phase) { call<on::gradients>(phase); }
    void on_update(Update& phase) { call<on::update>(phase); }

    template <class Archive>
    void persist(Archive& archive) {
      std::string name = name_;
      archive("format", name);
      if (name != name_) {
        throw StateError(
            {.what = "saved state does not fit",
             .where = "format",
             .why = "the run was saved in " + name + ", and " + variable + " asks for " + name_,
             .fix = "Set " + std::string(variable) + "=" + name + "."});
      }
      std::visit(
          [&](auto& state) {
            if constexpr (requires { state.persist(archive); }) state.persist(archive);
          },
          chosen_);
    }

   private:
    /// Calls the chosen format's state, if it listens to this hook.
    template <class Hook, class Phase>
    void call(Phase& phase) {
      std::visit(
          [&]<class Format>(Format& state) {
            if constexpr (Hook::template callable<Format, Phase>) Hook::call(state, phase);
          },
          chosen_);
    }

    template <std::size_t I, class Format, class... Others>
    Chosen make(Precision const& settings, RecipeFacts const& facts) const {
      if constexpr (sizeof...(Others) != 0) {
        if (name_ != Format::name) return make<I + 1, Others...>(settings, facts);
      }
      Precision<Format> policy{};
      if constexpr (requires { policy.scaling; }) policy.scaling = settings.scaling;
      using Of = std::variant_alternative_t<I, Chosen>;
      if constexpr (std::constructible_from<Of, Precision<Format> const&, RecipeFacts const&>) {
        return Chosen(std::in_place_index<I>, policy, facts);
      } else {
        return Chosen(std::in_place_index<I>, policy);
      }
    }

    std::string name_;
    Chosen chosen_;
  };

 private:
  static std::string names() {
    std::string all = First::name;
    ((all += std::string(", ") + Rest::name), ...);
    return all;
  }
};

}  // namespace frugal
