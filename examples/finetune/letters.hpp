// SPDX-License-Identifier: Apache-2.0
// A text letter by letter, and a GPT that predicts the next letter of it.
#pragma once

#include <ATen/ATen.h>
#include <torch/nn/module.h>
#include <torch/nn/pimpl.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>

#include <frugal/frugal.hpp>
#include <frugal/models/llama.hpp>

namespace finetune {

using frugal::models::Llama;
using frugal::models::LlamaOptions;

/// The logits as CrossEntropy takes them: [B, V, T].
struct LettersImpl : torch::nn::Module {
  explicit LettersImpl(LlamaOptions const& options)
      : llama(register_module("llama", Llama(options))) {}
  at::Tensor forward(at::Tensor const& ids_BT) { return llama(ids_BT).transpose(1, 2); }

  Llama llama;
};
TORCH_MODULE(Letters);

/// Windows of a text, each with the letters that follow. The last 64 are held out.
class Text {
 public:
  static constexpr std::int64_t window = 128;  // letters
  static constexpr std::int64_t batch = 16;    // windows

  explicit Text(std::filesystem::path const& path) {
    std::ifstream file(path, std::ios::binary);
    std::string all{std::istreambuf_iterator<char>(file), {}};
    auto const count = (static_cast<std::int64_t>(all.size()) - 1) / window;
    if (count < 1000) throw std::runtime_error(path.string() + ": not a text of 128,000 letters");
    at::Tensor const ids =
        at::from_blob(all.data(), {count * window + 1}, at::kByte).to(at::kLong).clamp_max_(127);
    letters_ = ids.slice(0, 0, -1).view({count, window}).contiguous();
    next_ = ids.slice(0, 1).view({count, window}).contiguous();
  }

  frugal::TensorDataset train() const { return part(0, letters_.size(0) - 64, true); }
  frugal::TensorDataset test() const { return part(letters_.size(0) - 64, 64, false); }
  /// The first windows.
  at::Tensor example(std::int64_t count) const { return letters_.narrow(0, 0, count); }

 private:
  frugal::TensorDataset part(std::int64_t from, std::int64_t count, bool shuffle) const {
    return {letters_.narrow(0, from, count),
            next_.narrow(0, from, count),
            {.batch = batch, .shuffle = shuffle}};
  }

  at::Tensor letters_, next_;
};

}  // namespace finetune
