// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ATen.h>
#include <c10/util/Exception.h>

#include <cstdint>
#include <exception>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>

#include <frugal/core/libtorch/parameters.hpp>
#include <frugal/core/run/counters.hpp>
#include <frugal/core/run/loss.hpp>
#include <frugal/core/source/batch.hpp>
#include <frugal/error.hpp>

// How the loop fails: kept apart so that the loop reads from top to bottom. LibTorch's errors of shapes, dtypes
// and labels in a forward pass are translated. LibTorch tells them apart by their text alone; a text that is not
// known here is passed on as it is.
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

/// A failure in one line: LibTorch's have a stack after the first.
std::string failure_text(std::exception const& error);

std::string position_text(Counters const& at);

template <class B>
std::string batch_text(B const& batch) {
  if constexpr (requires {
                  shape_text(batch.data);
                  shape_text(batch.target);
                }) {
    return "data " + shape_text(batch.data) + ", target " + shape_text(batch.target);
  } else if constexpr (ShowsTensors<B>) {
    std::string text;
    batch_tensors(batch, [&](at::Tensor const& tensor) {
      text += (text.empty() ? "" : ", ") + shape_text(tensor);
    });
    return text.empty() ? "no tensor" : text;
  } else {
    return "of " + std::to_string(batch_samples(batch)) + " samples";
  }
}

void require_parameters(Parameters const& parameters);

[[noreturn]] void refuse_empty_source(std::string const& which, std::uint64_t epoch);

/// Turns LibTorch's error of a forward pass into one that names the batch and its shapes. The
/// original is nested in it.
template <class B>
[[noreturn]] void refuse_forward(c10::Error const& error, B const& batch, Counters const& at,
                                 Parameters const& parameters) {
  throw_forward_failure(error.what_without_backtrace(), batch_text(batch), position_text(at),
                        parameters);
}

/// Of an error that is being handled: throws one that names the step, and nests it.
[[noreturn]] void refuse_part(char const* part, Counters const& at, c10::Error const& error);

/// Runs a part of a step; turns LibTorch's error into one that names the step. Nests the original.
template <class F>
void guarded(char const* part, Counters const& at, F&& body) {
  try {
    body();
  } catch (c10::Error const& error) {
    refuse_part(part, at, error);
  }
}

[[noreturn]] void refuse_reevaluation();

/// The scalars of a loss, of processes that divide windows and do not exchange them.
void require_no_scalars(Loss const& loss, Counters const& at);

/// Such a window has no mean loss, and no gradient for an update.
void require_weight(double weight, Counters const& at, std::uint64_t position);

/// In a process whose own losses are good. Where the bad one is in the data, the other one knows.
[[noreturn]] void refuse_bad_loss_elsewhere(Counters const& at);

/// A loss is one number. Shape [1] is accepted.
void require_scalar(at::Tensor& loss, Counters const& at);

void require_graph(Loss const& loss, Counters const& at);

}  // namespace frugal::detail

#ifndef FRUGAL_COMPILED
#include <frugal/core/run/failure.ipp>
#endif
