// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>  // IWYU pragma: keep (the macro)

/// Defines a rule's sentence: a type that refuses at compile time and is readable at run time.
///
/// Before C++26 the text of a static_assert is a literal, so a generic engine could not print a
/// policy's own text. A policy therefore supplies its sentence as a type, and the engine only
/// decides whether to print it:
///
///     FRUGAL_DIAGNOSTIC(spot_without_checkpoint,
///                     "frugal: Spot needs Checkpoint: there is nothing to save to. "
///                     "Add Checkpoint<Every<500>>.");
///
/// `say<Legal, Offenders...>()` is a static_assert of Legal; the offenders appear in the compiler's
/// note about the instantiation. `text` is the same sentence for Recipe::fault.
#define FRUGAL_DIAGNOSTIC(name, sentence)              \
  struct name {                                        \
    static constexpr std::string_view text = sentence; \
    template <bool Legal, class... Offenders>          \
    static constexpr bool require() {                  \
      static_assert(Legal, sentence);                  \
      return Legal;                                    \
    }                                                  \
  }
