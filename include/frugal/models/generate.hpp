// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ATen.h>
#include <torch/nn/pimpl.h>

#include <concepts>
#include <cstdint>
#include <optional>
#include <vector>

#include <frugal/models/causal_model.hpp>

namespace frugal::models {

/// How generate() chooses tokens.
struct GenerateOptions {
  std::int64_t max_new_tokens = 20;
  double temperature = 0;                    ///< 0: the likeliest token; 1: by their probabilities
  std::int64_t top_k = 0;                    ///< draws from the k likeliest; 0: from all
  double top_p = 1;                          ///< draws from the likeliest that come to this share
  std::optional<std::int64_t> stop_token{};  ///< ends a text
  std::uint64_t seed = 0;                    ///< of the draws
};

/// Continues texts, token by token, with a cache of keys and values.
///
/// `prompt`  token ids, [B, T] or [T]. Each is a token of its text: an id that stands for padding is read like any
///           other. Give texts of different lengths as a list.
/// Returns   prompt and new tokens, [B, T + n] or [T + n], on the prompt's device. A text that has ended
///           is filled up with the stop token; when all have ended, no more tokens are made.
/// Effects   the model is in evaluation mode meanwhile. LibTorch's generators are neither read nor
///           changed: equal seeds give equal texts.
/// Errors    SettingsError for an option out of range, and a stop token beyond the vocabulary; ShapeError for a prompt without tokens, or if the
///           text would be longer than the model's positions; ModuleError if a logit is NaN or infinite, or all are minus infinity.
at::Tensor generate(CausalModel& model, at::Tensor const& prompt,
                    GenerateOptions const& options = {});

/// The same for texts of different lengths, each [T] on its own. Returns each with its new tokens, [T + n]; one that
/// has ended has nothing behind the stop token. Without sampling each is what it would be alone. The model reads
/// together what the shortest prompt has, and then a token of each text at a time; the longest prompt and
/// `max_new_tokens` have to fit into its positions.
std::vector<at::Tensor> generate(CausalModel& model, std::vector<at::Tensor> const& prompts,
                                 GenerateOptions const& options = {});

template <std::derived_from<CausalModel> Model>
at::Tensor generate(torch::nn::ModuleHolder<Model>& model, at::Tensor const& prompt,
                    GenerateOptions const& options = {}) {
  return generate(*model, prompt, options);
}
template <std::derived_from<CausalModel> Model>
std::vector<at::Tensor> generate(torch::nn::ModuleHolder<Model>& model,
                                 std::vector<at::Tensor> const& prompts,
                                 GenerateOptions const& options = {}) {
  return generate(*model, prompts, options);
}

}  // namespace frugal::models

namespace frugal::detail {

/// Logits [B, V] over the temperature, and minus infinity for tokens that top_k and top_p leave out, in
/// this order. Of equal logits at the end of the k likeliest all stay, as in transformers.
at::Tensor filtered_logits(at::Tensor const& logits_BV, models::GenerateOptions const& options);

}  // namespace frugal::detail

#ifndef FRUGAL_COMPILED
#include <frugal/models/generate.ipp>
#endif
