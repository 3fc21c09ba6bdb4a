// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/models/generate.hpp>

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <tuple>
#include <vector>

#include <frugal/core/libtorch/layer_tensors.hpp>
#include <frugal/core/libtorch/modes.hpp>
#include <frugal/core/libtorch/use_interception.hpp>
#include <frugal/error.hpp>
#include <frugal/inline.hpp>
#include <frugal/models/parts.hpp>

namespace frugal::detail {

FRUGAL_INLINE void require_options(models::GenerateOptions const& options) {
  auto const refuse = [](std::string const& what, char const* fix) {
    throw SettingsError({.what = what, .where = "generate", .why = "", .fix = fix});
  };
  if (options.max_new_tokens < 0) {
    refuse("max_new_tokens is " + std::to_string(options.max_new_tokens), "Set it to 0 or more.");
  }
  if (!std::isfinite(options.temperature) || options.temperature < 0) {
    refuse("the temperature is " + std::to_string(options.temperature),
           "Set it to 0 for the likeliest token, or above.");
  }
  if (options.top_k < 0) {
    refuse("top_k is " + std::to_string(options.top_k), "Set it to 0 for all tokens, or above.");
  }
  if (!(options.top_p > 0 && options.top_p <= 1)) {
    refuse("top_p is " + std::to_string(options.top_p), "Set it above 0, and to 1 at most.");
  }
  if (options.stop_token && *options.stop_token < 0) {
    refuse("stop_token is " + std::to_string(*options.stop_token), "Leave it out for none.");
  }
}

FRUGAL_INLINE at::Tensor filtered_logits(at::Tensor const& logits_BV,
                                         models::GenerateOptions const& options) {
  double const nothing = -std::numeric_limits<double>::infinity();
  // Below the largest, which would be infinite at a temperature near 0.
  at::Tensor kept_BV = (logits_BV - logits_BV.amax({1}, /*keepdim=*/true)) / options.temperature;
  if (std::int64_t const k = std::min(options.top_k, kept_BV.size(1)); k > 0) {
    at::Tensor const least_B1 = std::get<0>(kept_BV.topk(k, 1)).narrow(1, k - 1, 1);
    kept_BV = kept_BV.masked_fill(kept_BV < least_B1, nothing);
  }
  if (options.top_p < 1) {
    auto const [ascending_BV, order_BV] = kept_BV.sort(/*stable=*/true, 1, /*descending=*/false);
    at::Tensor const out_BV = ascending_BV.softmax(1).cumsum(1) <= 1 - options.top_p;
    out_BV.select(1, -1).fill_(false);
    kept_BV = kept_BV.masked_fill(out_BV.scatter(1, order_BV, out_BV), nothing);
  }
  return kept_BV;
}

/// The next token of each text, [B], on the CPU.
FRUGAL_INLINE at::Tensor chosen_tokens(at::Tensor const& logits_BV,
                                       models::GenerateOptions const& options,
                                       at::Generator& generator) {
  // On the CPU, so that a seed means the same numbers whatever the model's device is.
  at::Tensor const known_BV = logits_BV.to(at::kCPU, at::kFloat);
  // NaN if there is one. A model may rule tokens out with minus infinity, but not all of them.
  if (!known_BV.amax({1}).isfinite().all().item<bool>()) {
    throw ModuleError({.what = "a logit is NaN or infinite, or no token is possible",
                       .where = "generate",
                       .why = "the weights or what the model computes of them left the numbers of "
                              "its type",
                       .fix = "Look at the weights; a model in FP16 may need BF16 or FP32."});
  }
  if (options.temperature == 0) return known_BV.argmax(1);
  at::Tensor const share_BV = filtered_logits(known_BV.to(at::kDouble), options).softmax(1);
  return share_BV.multinomial(1, /*replacement=*/false, generator).select(1, 0);
}

}  // namespace frugal::detail

namespace frugal::models {

FRUGAL_INLINE at::Tensor generate(CausalModel& model, at::Tensor const& prompt,
                                  GenerateOptions const& options) {
  detail::require_options(options);
  if (prompt.defined() && prompt.dim() == 1) {
    return generate(model, prompt.unsqueeze(0), options).select(0, 0);
  }
  detail::require_ids(prompt, 0, model.positions(), "generate, prompt");
  std::int64_t const read = prompt.size(1) + options.max_new_tokens - 1;  // not the last new token
  if (read > model.positions()) {
    throw ShapeError({.what = "a prompt of " + std::to_string(prompt.size(1)) + " tokens and " +
                              std::to_string(options.max_new_tokens) +
                              " new ones do not fit into " + std::to_string(model.positions()) +
                              " positions",
                      .where = "generate",
                      .why = "",
                      .fix = "Lower max_new_tokens, or cut the beginning of the prompt off."});
  }
  use_interception();
  at::NoGradGuard const no_gradients;
  detail::HeldEvaluation const evaluating(model);
  at::Generator generator = at::detail::createCPUGenerator(options.seed);
  c10::Device const device = detail::device_of_tensors(model);
  std::vector<at::Tensor> text{prompt.to(at::kCPU, at::kLong)};
  at::Tensor ended_B = at::zeros({prompt.size(0)}, at::kBool);
  KeyValueCache cache;
  at::Tensor unread_BT = text.front();
  for (std::int64_t i = 0; i < options.max_new_tokens; ++i) {
    at::Tensor token_B =
        detail::chosen_tokens(model.next(unread_BT.to(device), cache), options, generator);
    if (options.stop_token) {
      token_B = token_B.masked_fill(ended_B, *options.stop_token);
      ended_B = ended_B | token_B.eq(*options.stop_token);
    }
    unread_BT = token_B.unsqueeze(1);
    text.push_back(unread_BT);
    if (options.stop_token && ended_B.all().item<bool>()) break;
  }
  return at::cat(text, 1).to(prompt.device(), prompt.scalar_type());
}

}  // namespace frugal::models
