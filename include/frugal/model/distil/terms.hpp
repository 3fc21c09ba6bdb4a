// SPDX-License-Identifier: Apache-2.0
// Shapes: B samples, C classes, T positions, F features, A heads, ... whatever one sample has.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <string>

// The terms of a distillation loss. Each is computed in FP32 at least.
namespace frugal::detail {

/// The mean of values over the places at which a bool mask is true; all of them without a mask. The
/// mask has the values' first dimensions. No host sync.
at::Tensor mean_where(at::Tensor const& values, at::Tensor const& mask);

/// Refuses logits of which a softmax would be meaningless, and a teacher's of another shape.
void require_logits(at::Tensor const& student, at::Tensor const& teacher);

/// KL(teacher || student) [B, ...] of each position, at a temperature. `log_student` is the
/// student's log-softmax at that temperature, [B, C, ...].
at::Tensor divergence(at::Tensor const& log_student, at::Tensor const& teacher, double temperature);

/// The same over K + 1 outcomes: K classes [B, K, ...], and all others as one. `kept`
/// [B, K + 1, ...] are the teacher's log-probabilities at the student's temperature, that of the
/// others last.
at::Tensor divergence_of_top(at::Tensor const& log_student, at::Tensor const& kept,
                             at::Tensor const& classes);

/// The squared error [B, ...] of each position, for outputs that are no logits; of logits
/// [B, C, ...] with a mask of positions, the mean over the classes.
at::Tensor squared_error(at::Tensor const& student, at::Tensor const& teacher);

[[noreturn]] void refuse_states(char const* what, at::Tensor const& student,
                                at::Tensor const& teacher, std::string const& pair);

/// The mean squared error of hidden states, the student's after a projection [teacher's width,
/// student's width] if one is defined. `channels`: dimension 1 is the width, and not the last.
/// `mask_BT` leaves out positions of states [B, T, ...].
at::Tensor hidden_term(at::Tensor student, at::Tensor teacher, at::Tensor const& projection,
                       bool channels, at::Tensor const& mask_BT, std::string const& pair);

/// Attention transfer between convolutions [B, C, H, W]: the mean squared difference of the maps
/// [B, H W], each the mean over the channels of the squared outputs, of length 1.
at::Tensor spatial_attention_term(at::Tensor const& student, at::Tensor const& teacher,
                                  std::string const& pair);

/// Log-probabilities [B, A, T, T] of self-attention, from queries and keys [B, T, F].
at::Tensor attention_map(at::Tensor const& query, at::Tensor const& key, std::int64_t heads,
                         bool causal, at::Tensor const& mask_BT);

/// KL(teacher || student) of the attention of each query in each head, its mean.
at::Tensor self_attention_term(at::Tensor const& student_BATT, at::Tensor const& teacher_BATT,
                               at::Tensor const& mask_BT);

}  // namespace frugal::detail

#ifndef FRUGAL_COMPILED
#include <frugal/model/distil/terms.ipp>
#endif
