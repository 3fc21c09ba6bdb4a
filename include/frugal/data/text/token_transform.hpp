// SPDX-License-Identifier: Apache-2.0
// Shapes: L tokens of a text.
#pragma once

#include <ATen/ATen.h>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include <frugal/data/text/tokenise.hpp>

namespace frugal {

/// Token ids as a tensor [L] of `type`, kLong or kInt. Throws DtypeError for another.
at::Tensor token_tensor(std::span<std::int32_t const> ids, at::ScalarType type = at::kLong);

/// How a text becomes a tensor.
struct TokenSettings {
  std::size_t most = 512;           ///< tokens, special ones included; the rest is cut off
  at::ScalarType type = at::kLong;  ///< of the ids: kLong or kInt
};

/// The transform that tokenises a sample: a text becomes its token ids [L], with the tokenizer's
/// special tokens; a pair of a text and anything else, such as a label, keeps the other. Const and
/// thread-safe; the same ids every time, so that `cached` takes it and tokenising is paid once.
/// `Pad` then makes batches with an attention mask; its `value` is the tokenizer's padding().
template <Tokenizer T>
class TokenTransform {
  static_assert(
      requires(T const& tokenizer, std::string_view text, std::size_t most) {
        { tokenizer.encode(text, most) } -> std::same_as<Encoded>;
      },
      "frugal: TokenTransform needs a tokenizer with `Encoded encode(std::string_view text, "
      "std::size_t most) const`, as Wordpiece and SentencePiece have it.");

 public:
  static constexpr int version = 1;

  explicit TokenTransform(T tokenizer, TokenSettings settings = {})
      : tokenizer_(std::move(tokenizer)), settings_(settings) {}

  at::Tensor operator()(std::string_view text) const {
    return token_tensor(tokenizer_.encode(text, settings_.most).ids, settings_.type);
  }
  template <class Label>
  std::pair<at::Tensor, Label> operator()(std::pair<std::string, Label> sample) const {
    return {(*this)(std::string_view(sample.first)), std::move(sample.second)};
  }

  std::string settings() const {
    return std::string(tokenizer_.identity()) + ", most " + std::to_string(settings_.most) + ", " +
           c10::toString(settings_.type);
  }
  std::string identity() const { return "tokens " + std::to_string(version) + ", " + settings(); }

  T const& tokenizer() const { return tokenizer_; }

 private:
  T tokenizer_;
  TokenSettings settings_;
};

}  // namespace frugal

#ifndef FRUGAL_COMPILED
#include <frugal/data/text/token_transform.ipp>
#endif
