// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>

#include <frugal/core/libtorch/parameters.hpp>
#include <frugal/error.hpp>

// Translates LibTorch's errors of shapes, dtypes and labels. LibTorch tells them apart by their
// text alone; a text that is not known here is passed on as it is.
namespace frugal::detail {

bool has_any(std::string_view text, std::initializer_list<std::string_view> parts);

/// 12 of "Target 12 is out of bounds.", as nll_loss says on the CPU.
std::optional<std::int64_t> label_out_of_bounds(std::string const& why);

/// The fix for an error of dtypes; empty for other errors.
std::string fix_of_dtypes(std::string_view why);

/// "the module's parameters are Float"; by the first of floating point, whose dtype data must have.
std::string dtype_text(Parameters const& parameters);

/// Names the layer that most likely gives the logits, if its size explains the label.
std::string classes_text(Parameters const& parameters, std::int64_t label);

/// Throws LibTorch's error of a forward pass on `batch` as one of frugal's. Call it in the handler
/// of that error, which it nests.
[[noreturn]] void throw_forward_failure(std::string const& full, std::string const& batch,
                                        std::string where, Parameters const& parameters);

}  // namespace frugal::detail

#ifndef FRUGAL_COMPILED
#include <frugal/core/run/forward_failure.ipp>
#endif
