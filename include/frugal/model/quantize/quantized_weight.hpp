// SPDX-License-Identifier: Apache-2.0
// Shapes: M rows of the input, K inputs and N outputs of a layer.
#pragma once

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>
#include <torch/nn/module.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <frugal/core/libtorch/interception.hpp>
#include <frugal/core/libtorch/layer_tensors.hpp>
#include <frugal/policy/precision/int8.hpp>

namespace frugal {

/// The numbers that 8 bits represent; those outside are clipped.
struct Range {
  double low = 0, high = 0;
};

/// How often numbers were seen, in bins of equal width over a range. As numpy.histogram counts.
struct Histogram {
  std::vector<double> counts;
  Range over;

  double edge(std::size_t bin) const {
    double const share = static_cast<double>(bin) / static_cast<double>(counts.size());
    return over.low + (over.high - over.low) * share;
  }
};

// The rules that find a layer's input range from what it has seen.

/// The range from the least to the largest number.
struct MinMax {
  static constexpr bool symmetric = false;
  static constexpr std::size_t bins = 0;  ///< of its histogram; 0: needs none
};

/// Leaves out a share of the numbers at the ends, so that outliers do not coarsen all others.
struct Percentile {
  static constexpr bool symmetric = false;
  static constexpr std::size_t bins = 2048;
  double percent = 99.99;  ///< of all numbers, that stay; what is clipped is half at each end

  Range range(Histogram const& seen) const;
};

/// Clips where the numbers that are left lose the least information (Kullback-Leibler divergence).
///
/// Source  Migacz, "8-bit inference with TensorRT" (GTC 2017), as ONNX Runtime computes it.
struct Entropy {
  static constexpr bool symmetric = true;
  static constexpr std::size_t bins = 2048;
  static constexpr std::size_t levels = 128;

  Range range(Histogram const& seen) const;

 private:
  /// Of what 8 bits make of the bins from `begin` to `end`, from what these are when the rest is
  /// clipped to their ends.
  static double divergence(std::vector<double> const& counts, std::size_t begin, std::size_t end);

  /// Moves a little to empty bins, of which there is no logarithm. False if all are empty.
  static bool smooth(std::vector<double>& counts);
};

namespace detail {

/// What one layer's input was: first its range, then a histogram over that range.
class SeenInput {
 public:
  void extend(at::Tensor const& input);

  void count(at::Tensor const& input, std::size_t bins, bool symmetric);

  bool any() const { return any_; }
  bool finite() const { return finite_; }

  template <class Ranges>
  Range range([[maybe_unused]] Ranges const& rule) const {
    if constexpr (Ranges::bins != 0) {
      if (seen_.over.low < seen_.over.high) {
        Range const found = rule.range(seen_);
        return {std::max(found.low, low_), std::min(found.high, high_)};
      }
    }
    return {low_, high_};
  }

 private:
  double low_ = std::numeric_limits<double>::infinity();
  double high_ = -std::numeric_limits<double>::infinity();
  bool any_ = false;
  bool finite_ = true;
  Histogram seen_;
};

}  // namespace detail
}  // namespace frugal

namespace frugal::detail {

/// A convolution of one image as a product (im2col): a column for each position of the output, a
/// row for each number under the kernel, in the order of the weight. LibTorch's im2col takes no
/// bytes.
struct PatchShape {
  std::int64_t channels, height, width;
  std::int64_t kernel_height, kernel_width;
  std::int64_t out_height, out_width;
  std::int64_t stride[2], padding[2], dilation[2];

  static PatchShape of(LayerCall const& call, at::IntArrayRef input, at::IntArrayRef weight);

  std::int64_t rows() const { return channels * kernel_height * kernel_width; }
  std::int64_t positions() const { return out_height * out_width; }

  /// `zero` is the byte of numbers beyond the edges.
  void gather(std::int8_t const* image, std::int8_t zero, std::int8_t* out) const;

 private:
  void gather_line(std::int8_t const* line, std::int64_t along, std::int8_t zero,
                   std::int8_t* to) const {
    std::int64_t const step = stride[1];
    // The first position at or after the line's begin, and the first one after its end.
    std::int64_t const first = std::clamp((step - 1 - along) / step, std::int64_t{0}, out_width);
    std::int64_t const last =
        along >= width ? first : std::clamp((width - 1 - along) / step + 1, first, out_width);
    std::memset(to, zero, static_cast<std::size_t>(first));
    if (step == 1) {
      std::memcpy(to + first, line + first + along, static_cast<std::size_t>(last - first));
    } else {
      for (std::int64_t x = first; x < last; ++x) to[x] = line[x * step + along];
    }
    std::memset(to + last, zero, static_cast<std::size_t>(out_width - last));
  }
};

}  // namespace frugal::detail

namespace frugal {

/// Weights in 4 bits; inputs and products stay in floating point.
struct INT4 {
  static constexpr char const* name = "INT4";
};

namespace detail {

/// The weight of a layer in few bits: a child of the layer, so that it moves and saves with it.
class QuantizedWeight : public torch::nn::Module, public KeepsTypes {
 public:
  QuantizedWeight() : torch::nn::Module("QuantizedWeight") {}
  /// The layer's result; `call.weight` has no numbers any more.
  virtual at::Tensor compute(LayerCall const& call) = 0;
  /// The weight as the layer uses it, in FP32.
  virtual at::Tensor weight() const = 0;

  /// The same in FP32, with the quantized weight: differentiable in the input.
  at::Tensor plain(LayerCall call) const {
    call.weight = weight();
    return call.plain();
  }
};

/// The quantization of inputs: 8 bits, of which `zero_point` is 0.
struct InputGrid {
  double scale;
  std::int64_t zero_point;

  /// As torch chooses it, in 0 to 255.
  static InputGrid of(Range range);
};

/// INT8, with a scale for each output. Its integers, and those of an input, are torch's. Products
/// are those of `_int_mm`, the one kernel of LibTorch that multiplies integers as they are stored:
/// others keep the weight a second time, in a layout of their own.
class Int8Weight final : public QuantizedWeight, public ComputesUnseen {
 public:
  /// Without a grid the scales of inputs follow their numbers.
  Int8Weight(at::Tensor const& values, at::Tensor const& scales, std::optional<InputGrid> grid);

  at::Tensor weight() const override {
    std::vector<std::int64_t> along(static_cast<std::size_t>(values_.dim()), 1);
    along[0] = -1;
    return values_.to(at::kFloat).mul_(scales_.view(along));
  }

  /// Multiplies each output by a factor.
  void multiply_outputs(at::Tensor const& factors) { scales_.mul_(factors); }

  at::Tensor compute(LayerCall const& call) override {
    bool const convolves = call.op == LayerCall::Operator::conv2d;
    // What the operator refuses it refuses in its own words, here and in convolves_here().
    if (!convolves && (call.input.dim() == 0 || call.input.size(-1) != values_.size(1)))
      return plain(call);
    if (convolves ? !convolves_here(call) : !Int8Format::takes(call.input, call.weight)) {
      return plain(call);
    }
    if (convolves) return convolved(call);
    at::Tensor const input_MK = call.input.reshape({-1, values_.size(1)}).contiguous();
    std::vector<std::int64_t> sizes = call.input.sizes().vec();
    sizes.back() = values_.size(0);
    Quantized const factor{values_.t(), scales_};
    at::Tensor output;
    if (!grid_.defined()) {
      output = Int8Format::multiply(Int8Format::rows(input_MK), factor, sizes);
    } else if (!input_MK.is_cpu()) {
      return plain(call);
    } else {
      output = at::empty(sizes, input_MK.options());
      Int8Format::multiply_into(output.view({-1, values_.size(0)}), on_grid(input_MK), factor,
                                {.rows = {}, .columns = offsets()});
    }
    return call.bias.defined() ? output.add_(call.bias) : output;
  }

 private:
  bool convolves_here(LayerCall const& call) const {
    bool const fits = values_.numel() / values_.size(0) <= Int8Format::most_terms;
    if (!fits || !call.input.is_cpu() || call.groups != 1 || call.same_padding) return false;
    auto const all_from = [](std::vector<std::int64_t> const& each, std::int64_t least) {
      return std::ranges::all_of(each, [least](std::int64_t one) { return one >= least; });
    };
    if (!all_from(call.stride, 1) || !all_from(call.dilation, 1) || !all_from(call.padding, 0))
      return false;
    std::int64_t const dims = call.input.dim();
    if ((dims != 3 && dims != 4) || call.input.size(dims - 3) != values_.size(1)) return false;
    at::Tensor const input = dims == 3 ? call.input.unsqueeze(0) : call.input;
    return PatchShape::of(call, input.sizes(), values_.sizes()).positions() > 0;
  }
  InputGrid input_grid() const {
    double const* const at = grid_.const_data_ptr<double>();
    return {at[0], static_cast<std::int64_t>(at[1])};
  }
  /// In signed bytes, for the product: 128 less than torch's.
  Quantized on_grid(at::Tensor const& rows) const {
    InputGrid const grid = input_grid();
    return Int8Format::on_grid(rows, grid.scale, grid.zero_point, -128);
  }
  at::Tensor offsets() const { return sums_.mul(input_grid().zero_point - 128); }

  at::Tensor convolved(LayerCall const& call) const;

  at::Tensor values_;  ///< [N, K], or [N, channels, height, width]
  at::Tensor scales_;  ///< [N]
  at::Tensor grid_;    ///< scale and zero point of the input
  at::Tensor sums_;    ///< [N], of each output's integers: what the input's zero point adds
};

/// INT4, with a scale and a least number for each group of inputs, packed as LibTorch's kernel
/// takes it.
class Int4Weight final : public QuantizedWeight {
 public:
  static constexpr std::int64_t group = 64;

  static bool takes(at::Tensor const& weight) {
    return weight.dim() == 2 && weight.is_cpu() && weight.size(0) % 64 == 0 &&
           weight.size(1) % group == 0;
  }

  /// As torchao's int4 weights: 16 steps from the least to the largest number of a group.
  explicit Int4Weight(at::Tensor const& weight_NK);

  at::Tensor compute(LayerCall const& call) override {
    at::Tensor const input_MK = call.input.reshape({-1, call.input.size(-1)}).to(at::kBFloat16);
    std::vector<std::int64_t> sizes = call.input.sizes().vec();
    sizes.back() = values_.size(0);
    at::Tensor const output =
        at::_weight_int4pack_mm_for_cpu(input_MK.contiguous(), values_, group, scales_)
            .to(at::kFloat)
            .view(sizes);
    return call.bias.defined() ? output.add(call.bias) : output;
  }

  at::Tensor weight() const override {
    // The kernel knows the layout: what it makes of the identity.
    std::int64_t const inputs = values_.size(1) * 2;
    at::Tensor const identity = at::eye(inputs, at::kBFloat16);
    return at::_weight_int4pack_mm_for_cpu(identity, values_, group, scales_).t().to(at::kFloat);
  }

 private:
  at::Tensor values_;  ///< [N, K / 2], packed
  at::Tensor scales_;  ///< [K / group, N, 2]: scale, and the number of step 8
};

}  // namespace detail
}  // namespace frugal

namespace frugal::detail {

/// A layer with a weight that can be quantized.
struct WeightedLayer {
  std::string name;
  torch::nn::Module* module;
  at::Tensor weight;
};

/// The names under which a layer has its quantized weight, and what Qat gives it.
inline constexpr char const* quantized_child = "quantized";
inline constexpr char const* fake_child = "fake_quantized";

/// Whether the kernels compute it: one group, and padding in numbers.
bool is_plain(torch::nn::Conv2dImpl const& layer);

/// Linear layers and plain Conv2d ones, by name. Not those whose weight is not their own alone, by its
/// name or by its memory: another layer needs its numbers.
std::vector<WeightedLayer> weighted_layers(torch::nn::Module& root);

/// Computes a layer with its quantized weight.
class QuantizedLayer final : public LayerHook {
 public:
  explicit QuantizedLayer(std::shared_ptr<QuantizedWeight> weight) : weight_(std::move(weight)) {}

  Place place() const override { return Place::compute; }

  at::Tensor call(LayerCall const& call, LayerRest const& rest) override {
    bool const known =
        call.op == LayerCall::Operator::linear || call.op == LayerCall::Operator::conv2d;
    if (!known) {
      // Of an embedding or another layer that was tied to it later: the weight itself has no numbers.
      LayerCall other = call;
      other.weight = weight_->weight();
      return rest(other);
    }
    // A gradient of the input passes through the weight: of adapters in earlier layers, for
    // example.
    bool const trains = at::GradMode::is_enabled() && call.input.requires_grad();
    bool const fits = call.input.scalar_type() == at::kFloat && call.input.numel() != 0;
    return trains || !fits ? weight_->plain(call) : weight_->compute(call);
  }

 private:
  std::shared_ptr<QuantizedWeight> weight_;
};

/// The layer computes with this weight while this lives.
class [[nodiscard]] TriedWeight {
 public:
  TriedWeight(WeightedLayer const& layer, std::shared_ptr<QuantizedWeight> weight)
      : weight_(layer.weight), hook_(std::make_shared<QuantizedLayer>(std::move(weight))) {
    intercept(weight_, hook_);
  }
  TriedWeight(TriedWeight const&) = delete;
  TriedWeight& operator=(TriedWeight const&) = delete;
  ~TriedWeight() { release(weight_, *hook_); }

 private:
  at::Tensor weight_;
  std::shared_ptr<LayerHook> hook_;
};

}  // namespace frugal::detail

#ifndef FRUGAL_COMPILED
#include <frugal/model/quantize/quantized_weight.ipp>
#endif
