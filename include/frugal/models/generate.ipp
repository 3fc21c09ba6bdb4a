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
  if (options.stop_token.value_or(0) >= logits_BV.size(1)) {
    throw SettingsError({.what = "stop_token is " + std::to_string(*options.stop_token),
                         .where = "generate",
                         .why = "the model has tokens from 0 to " +
                                std::to_string(logits_BV.size(1) - 1) + ", and would never stop",
                         .fix = "Set it to a token of the model's vocabulary."});
  }
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

/// Texts [B, S] that go on behind prompts of `length_B` tokens, which are filled up to [B, T]; both int64 on the CPU.
/// Behind a text that has ended are stop tokens.
FRUGAL_INLINE at::Tensor continued(models::CausalModel& model, at::Tensor const& prompt_BT,
                                   at::Tensor const& length_B,
                                   models::GenerateOptions const& options) {
  std::int64_t const longest = prompt_BT.size(1), all = longest + options.max_new_tokens;
  if (all - 1 > model.positions()) {  // the last new token is not read
    throw ShapeError({.what = "a prompt of " + std::to_string(longest) + " tokens and " +
                              std::to_string(options.max_new_tokens) +
                              " new ones do not fit into " + std::to_string(model.positions()) +
                              " positions",
                      .where = "generate",
                      .why = "",
                      .fix = "Lower max_new_tokens, or cut the beginning of the prompt off."});
  }
  use_interception();
  at::NoGradGuard const no_gradients;
  HeldEvaluation const evaluating(model);
  at::Generator generator = at::detail::createCPUGenerator(options.seed);
  c10::Device const device = device_of_tensors(model);
  std::int64_t done = length_B.numel() == 0 ? longest : length_B.min().item<std::int64_t>();
  at::Tensor unread_BT = prompt_BT.narrow(1, 0, done);
  std::vector<at::Tensor> text{unread_BT};
  at::Tensor ended_B = at::zeros(length_B.sizes(), at::kBool);
  models::KeyValueCache cache;
  while (done < all) {
    at::Tensor token_B = chosen_tokens(model.next(unread_BT.to(device), cache), options, generator);
    at::Tensor const is_new_B = length_B <= done;
    if (options.stop_token) {
      token_B = token_B.masked_fill(ended_B, *options.stop_token);
      ended_B = ended_B | (is_new_B & token_B.eq(*options.stop_token)) |
                (length_B + options.max_new_tokens <= done + 1);
    }
    // A longer prompt goes on with its own token.
    if (done < longest) token_B = at::where(is_new_B, token_B, prompt_BT.select(1, done));
    unread_BT = token_B.unsqueeze(1);
    text.push_back(unread_BT);
    ++done;
    if (options.stop_token && ended_B.all().item<bool>()) break;
  }
  return at::cat(text, 1);
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
  return detail::continued(model, prompt.to(at::kCPU, at::kLong),
                           at::full({prompt.size(0)}, prompt.size(1), at::kLong), options)
      .to(prompt.device(), prompt.scalar_type());
}

FRUGAL_INLINE std::vector<at::Tensor> generate(CausalModel& model,
                                               std::vector<at::Tensor> const& prompts,
                                               GenerateOptions const& options) {
  detail::require_options(options);
  std::int64_t longest = 0;
  std::vector<std::int64_t> lengths;
  for (at::Tensor const& each : prompts) {
    std::string const name = "generate, prompt " + std::to_string(lengths.size());
    if (!each.defined() || each.dim() != 1) {
      throw ShapeError({.what = "a prompt is of shape " +
                                (each.defined() ? detail::shape_text(each) : "nothing"),
                        .where = name,
                        .why = "each prompt of a list is one text, [T]",
                        .fix = "Give texts of one length as one tensor, [B, T]."});
    }
    detail::require_ids(each.unsqueeze(0), 0, model.positions(), name.c_str());
    lengths.push_back(each.size(0));
    longest = std::max(longest, each.size(0));
  }
  if (prompts.empty()) return {};
  at::Tensor const filled_BT =
      at::zeros({static_cast<std::int64_t>(prompts.size()), longest}, at::kLong);
  for (std::size_t i = 0; i < prompts.size(); ++i) {
    filled_BT.select(0, static_cast<std::int64_t>(i)).narrow(0, 0, lengths[i]).copy_(prompts[i]);
  }
  at::Tensor const text_BS =
      detail::continued(model, filled_BT, at::tensor(lengths, at::kLong), options);
  std::vector<at::Tensor> texts;
  for (std::size_t i = 0; i < prompts.size(); ++i) {
    std::int64_t const most = std::min(lengths[i] + options.max_new_tokens, text_BS.size(1));
    at::Tensor text = text_BS.select(0, static_cast<std::int64_t>(i)).narrow(0, 0, most);
    if (options.stop_token) {
      at::Tensor const stops =
          text.slice(0, lengths[i]).eq(*options.stop_token).nonzero().flatten();
      if (stops.numel() > 0) {
        text = text.narrow(0, 0, lengths[i] + stops[0].item<std::int64_t>() + 1);
      }
    }
    texts.push_back(text.to(prompts[i].device(), prompts[i].scalar_type()));
  }
  return texts;
}

}  // namespace frugal::models
