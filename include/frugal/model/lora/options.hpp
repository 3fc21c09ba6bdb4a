// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include <frugal/core/compose/fixed_string.hpp>
#include <frugal/core/compose/rational.hpp>

namespace frugal {

/// Columns of an adapter's first matrix, and rows of its second.
template <int R>
struct Rank {
  static_assert(R >= 1, "frugal: Rank<0> adapts nothing. Write Rank<8>.");
  static constexpr std::int64_t rank = R;
};

/// An adapter's product is scaled by this over its rank: Alpha<32>, Alpha<0.5_r>.
template <auto A>
struct Alpha {
  static constexpr double alpha = [] {
    if constexpr (requires { A.value(); }) {
      return A.value();
    } else {
      return static_cast<double>(A);
    }
  }();
  static_assert(alpha > 0, "frugal: Alpha must be positive. Write Alpha<16>.");
};

/// The layers that are adapted: by the last parts of their names, as in PEFT's target_modules
/// (On<"q_proj"> is every layer with that name), or by patterns over whole names ("encoder.*.query").
template <fixed_string... Names>
struct On {
  static_assert(
      sizeof...(Names) > 0,
      "frugal: On<> adapts nothing. Write the layers' names: On<\"q_proj\", \"v_proj\">.");
  static constexpr std::array<std::string_view, sizeof...(Names)> names{Names...};
};

/// Parameters that are trained besides the adapters, such as a new head; PEFT's modules_to_save.
template <fixed_string... Patterns>
struct AlsoTrain {
  static_assert(sizeof...(Patterns) > 0,
                "frugal: AlsoTrain<> trains nothing. Write AlsoTrain<\"head.*\">, or remove it.");
  static constexpr std::array<std::string_view, sizeof...(Patterns)> patterns{Patterns...};
};

/// The probability with which an adapter's input is left out in training: AdapterDropout<0.1_r>.
template <Rational P>
struct AdapterDropout {
  static constexpr double adapter_dropout = P.value();
  static_assert(adapter_dropout >= 0 && adapter_dropout < 1,
                "frugal: AdapterDropout is a probability from 0 up to, but not including, 1.");
};

/// The scale is alpha over the root of the rank (rsLoRA), so that high ranks learn as fast.
struct RankStabilised {
  static constexpr bool rank_stabilised = true;
};
/// Trains the length of each row of the weight apart from its direction (DoRA).
struct Dora {
  static constexpr bool dora = true;
};
/// The adapter begins as the largest singular values of the weight (PiSSA), which leave the base.
struct Pissa {
  static constexpr bool pissa = true;
};
/// The adapter's name; "default" without.
template <fixed_string Name>
struct AdapterName {
  static_assert(!std::string_view(Name).empty() &&
                    std::string_view(Name).find('.') == std::string_view::npos,
                "frugal: an adapter's name is a part of its tensors' names: not empty, no dot.");
  static constexpr std::string_view adapter_name = Name;
};

/// Blocks of 64 weights in 4 bits, at the quantiles of a normal distribution (QLoRA).
struct NF4 {};
/// The type in which the adapted layers' weights are kept: Base<NF4>.
template <class Type>
struct Base {
  using base_type = Type;
};

namespace detail::option {
struct rank {
  template <class O>
  static constexpr bool has = requires { O::rank; };
};
struct alpha {
  template <class O>
  static constexpr bool has = requires { O::alpha; };
};
struct on_layers {
  template <class O>
  static constexpr bool has = requires { O::names; };
};
struct also_train {
  template <class O>
  static constexpr bool has = requires { O::patterns; };
};
struct adapter_dropout {
  template <class O>
  static constexpr bool has = requires { O::adapter_dropout; };
};
struct rank_stabilised {
  template <class O>
  static constexpr bool has = requires { O::rank_stabilised; };
};
struct dora {
  template <class O>
  static constexpr bool has = requires { O::dora; };
};
struct pissa {
  template <class O>
  static constexpr bool has = requires { O::pissa; };
};
struct adapter_name {
  template <class O>
  static constexpr bool has = requires { O::adapter_name; };
};
struct base_type {
  template <class O>
  static constexpr bool has = requires { typename O::base_type; };
};
}  // namespace detail::option

/// The settings of an adapter at run time; `Lora<...>` makes one of its options.
struct LoraSettings {
  std::int64_t rank = 8;
  double alpha = 8;
  double dropout = 0;
  bool rank_stabilised = false;
  bool dora = false;
  bool pissa = false;
  bool nf4 = false;
  std::string name = "default";
  friend bool operator==(LoraSettings const&, LoraSettings const&) = default;
};

}  // namespace frugal
