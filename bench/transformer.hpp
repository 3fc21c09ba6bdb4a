// SPDX-License-Identifier: Apache-2.0
// The transformer of the benchmarks, in plain LibTorch: pre-norm blocks of causal attention and an
// MLP with GELU.
// Shapes: B sequences, T tokens, C channels, H heads, V words.
#pragma once

#include <ATen/ATen.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/embedding.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/normalization.h>

#include <cstdint>

namespace frugal_bench {

struct TransformerShape {
  std::int64_t layers = 24, batch = 8, tokens = 128, channels = 256, heads = 4, words = 512;
};

/// nn::Linear with the operator of Python's. That of C++ adds its bias in a pass of its own if the input has three
/// dimensions.
struct LinearImpl : torch::nn::LinearImpl {
  using torch::nn::LinearImpl::LinearImpl;
  at::Tensor forward(at::Tensor const& x) const { return at::linear(x, weight, bias); }
};
TORCH_MODULE(Linear);

inline torch::nn::LayerNorm norm(TransformerShape const& shape) {
  return torch::nn::LayerNorm(torch::nn::LayerNormOptions({shape.channels}));
}

struct BlockImpl : torch::nn::Module {
  explicit BlockImpl(TransformerShape const& shape)
      : heads(shape.heads),
        before(register_module("before", norm(shape))),
        qkv(register_module("qkv", Linear(shape.channels, 3 * shape.channels))),
        out(register_module("out", Linear(shape.channels, shape.channels))),
        between(register_module("between", norm(shape))),
        up(register_module("up", Linear(shape.channels, 4 * shape.channels))),
        down(register_module("down", Linear(4 * shape.channels, shape.channels))) {}

  at::Tensor forward(at::Tensor x_BTC) {
    auto const b = x_BTC.size(0);
    auto const t = x_BTC.size(1);
    auto const c = x_BTC.size(2);
    auto const parts = qkv(before(x_BTC)).view({b, t, 3, heads, c / heads}).unbind(2);
    at::Tensor const attended = at::scaled_dot_product_attention(
        parts[0].transpose(1, 2), parts[1].transpose(1, 2), parts[2].transpose(1, 2), {}, 0.0,
        /*is_causal=*/true);
    x_BTC = x_BTC + out(attended.transpose(1, 2).reshape({b, t, c}));
    return x_BTC + down(at::gelu(up(between(x_BTC))));
  }

 private:
  std::int64_t heads;
  torch::nn::LayerNorm before;
  Linear qkv, out;
  torch::nn::LayerNorm between;
  Linear up, down;
};
TORCH_MODULE(Block);

/// Words [B, T] to channels [B, T, C], with learned positions.
struct EmbeddingImpl : torch::nn::Module {
  explicit EmbeddingImpl(TransformerShape const& shape)
      : word(register_module("word", torch::nn::Embedding(shape.words, shape.channels))),
        position(
            register_parameter("position", at::randn({shape.tokens, shape.channels}).mul_(0.02))) {}
  at::Tensor forward(at::Tensor const& words_BT) {
    return word(words_BT) + position.slice(0, 0, words_BT.size(1));
  }

 private:
  torch::nn::Embedding word;
  at::Tensor position;
};
TORCH_MODULE(Embedding);

/// Channels [B, T, C] to logits [B, V, T], as cross entropy takes them.
struct HeadImpl : torch::nn::Module {
  explicit HeadImpl(TransformerShape const& shape)
      : before(register_module("before", norm(shape))),
        words(register_module("words", Linear(shape.channels, shape.words))) {}
  at::Tensor forward(at::Tensor const& x_BTC) { return words(before(x_BTC)).transpose(1, 2); }

 private:
  torch::nn::LayerNorm before;
  Linear words;
};
TORCH_MODULE(Head);

/// A GPT: words [B, T] to logits [B, V, T].
inline torch::nn::Sequential make_gpt(TransformerShape const& shape) {
  torch::nn::Sequential net{Embedding(shape)};
  for (std::int64_t i = 0; i < shape.layers; ++i) net->push_back(Block(shape));
  net->push_back(Head(shape));
  return net;
}

}  // namespace frugal_bench
