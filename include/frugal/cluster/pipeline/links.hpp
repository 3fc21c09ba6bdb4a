// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ATen.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include <frugal/cluster/communicator.hpp>
#include <frugal/cluster/communicator/control_frame.hpp>
#include <frugal/core/source/shape_text.hpp>
#include <frugal/error.hpp>

namespace frugal::detail {

/// What the receiving stage must know of an activation before it arrives.
struct ActivationShape {
  at::ScalarType type = at::kFloat;
  bool needs_gradient = false;
  std::vector<std::int64_t> sizes{};

  static constexpr std::size_t most_dimensions = 13;
  static constexpr std::int64_t length = 16;  ///< of its message, numbers of 64 bits

  static ActivationShape of(at::Tensor const& tensor) {
    return {.type = tensor.scalar_type(),
            .needs_gradient = tensor.requires_grad(),
            .sizes = tensor.sizes().vec()};
  }
  at::Tensor pack() const;
  static ActivationShape unpack(at::Tensor const& message) {
    auto const* at = message.const_data_ptr<std::int64_t>();
    return {.type = static_cast<at::ScalarType>(at[0]),
            .needs_gradient = at[1] != 0,
            .sizes = {at + 3, at + 3 + at[2]}};
  }
  friend bool operator==(ActivationShape const&, ActivationShape const&) = default;
};

/// Which window a stage begins, and with which batches: the first message of a window between two stages.
/// It is of one size, so that stages that have come apart find it out here. Messages of other sizes than the
/// receiver expects end the process, in a thread of Gloo's own; and the first stage takes the inputs of its
/// batches, the last one the targets of its own.
struct StageWindow {
  PlaceInRun at{};
  std::uint64_t micro_batches = 0;
  std::uint64_t shapes = 0;  ///< a hash of those of all batches
  std::uint64_t values = 0;  ///< likewise of the first batch of an epoch

  static constexpr std::int64_t length = 6;  ///< of its message, numbers of 64 bits

  at::Tensor pack() const {
    std::array<std::uint64_t, length> const all{at.epoch,      at.position, at.step,
                                                micro_batches, shapes,      values};
    at::Tensor message = at::empty({length}, at::kLong);
    std::memcpy(message.mutable_data_ptr(), all.data(), sizeof all);
    return message;
  }
  static StageWindow unpack(at::Tensor const& message);
  friend bool operator==(StageWindow const&, StageWindow const&) = default;
};

/// A message that is on its way, and its memory.
struct LinkMessage {
  at::Tensor tensor{};
  c10::intrusive_ptr<c10d::Work> work{};
};

/// The messages between the stages of a pipeline: activations to the next stage, their gradients back.
/// They travel in host memory, in the background; a tensor of a GPU is copied there and back.
///
/// An activation's shape travels before it, but once for all batches of one shape (`like`, a number
/// that batches of one shape share): then the next stage can receive it while it computes another one.
class StageLinks {
 public:
  StageLinks(Communicator& all, c10::Device device, int stages)
      : all_(all), device_(device), stages_(stages) {}

  /// Before the first message of a window: every process but the first one compares its window with that of
  /// the process before it. ClusterError if they differ.
  void agree(StageWindow const& own);

  /// Begins to send the input of `stage`. ModuleError if it has another shape than one before, of a
  /// batch like this one.
  LinkMessage send(at::Tensor const& activation, int rank, int stage, std::uint64_t like);

  /// Begins to receive it, if its shape is known.
  std::optional<LinkMessage> start(int rank, int stage, std::uint64_t like) {
    auto const known = shapes_.find(key(stage, like));
    if (known == shapes_.end()) return std::nullopt;
    return receive_tensor(known->second.sizes, known->second.type, rank, 2 * stage);
  }
  /// Waits for it, and for its shape if that has to come first. A leaf that requires a gradient if the
  /// stage before needs one.
  at::Tensor take(std::optional<LinkMessage> begun, int rank, int stage, std::uint64_t like);

  /// The gradient of a stage's input, which is still to be multiplied by `unit`, a power of two. As one
  /// message: the gradient's elements, and the exponent. FP16 would overflow if it were multiplied here.
  /// An undefined one is `no_gradient` in place of the exponent.
  LinkMessage send_gradient(at::Tensor const& input, at::Tensor const& gradient, double unit,
                            int rank, int stage);
  /// Begins to receive the gradient of what this process has sent as input of `stage`.
  LinkMessage start_gradient(at::Tensor const& activation, int rank, int stage) {
    return receive_tensor({activation.numel() + 1}, activation.scalar_type(), rank, 2 * stage + 1);
  }
  struct Gradient {
    at::Tensor tensor{};  ///< undefined: the micro-batch has none
    double unit = 1;
  };
  Gradient await_gradient(LinkMessage const& message, at::Tensor const& activation, int rank);
  /// Waits until a message has left.
  void finish(LinkMessage const& message) {
    if (message.work) all_.complete_link(message.work, "a message between stages");
  }

  /// A tensor of any shape, outside of training.
  void send_any(at::Tensor const& tensor, int rank, int stage) {
    ActivationShape const shape = ActivationShape::of(tensor);
    if (shape.sizes.size() > ActivationShape::most_dimensions) refuse_dimensions(shape);
    send_later(shape.pack(), rank, shape_tag(stage));
    later_.push_back(send_tensor(tensor, rank, 2 * stage));
  }
  at::Tensor take_any(int rank, int stage) {
    ActivationShape const shape = take_shape(rank, stage);
    return await(receive_tensor(shape.sizes, shape.type, rank, 2 * stage), rank, "an activation");
  }

  /// Waits until all that was sent without its own message has left.
  void settle() {
    for (; !later_.empty(); later_.pop_front()) finish(later_.front());
  }
  ~StageLinks() = default;
  StageLinks(StageLinks const&) = delete;
  StageLinks& operator=(StageLinks const&) = delete;

 private:
  // BF16 holds both exactly.
  static constexpr int most_exponent = 200, no_gradient = 250;

  static std::uint64_t key(int stage, std::uint64_t like) {
    return like ^ (static_cast<std::uint64_t>(stage) * 0x9E3779B97F4A7C15U);
  }
  int shape_tag(int stage) const { return 2 * stages_ + 2 + stage; }

  LinkMessage send_tensor(at::Tensor const& tensor, int rank, int tag) {
    LinkMessage message{.tensor = tensor.detach().cpu().contiguous()};
    message.work = all_.start_send(message.tensor, rank, tag);
    return message;
  }
  void send_later(at::Tensor const& tensor, int rank, int tag) {
    later_.push_back(send_tensor(tensor, rank, tag));
  }
  LinkMessage receive_tensor(std::vector<std::int64_t> const& sizes, at::ScalarType type, int rank,
                             int tag) {
    LinkMessage message{.tensor = at::empty(sizes, at::TensorOptions(type))};
    message.work = all_.start_receive(message.tensor, rank, tag);
    return message;
  }
  ActivationShape take_shape(int rank, int stage) {
    at::Tensor const message = at::empty({ActivationShape::length}, at::kLong);
    all_.complete_link(all_.start_receive(message, rank, shape_tag(stage)),
                       "the shape of an activation");
    return ActivationShape::unpack(message);
  }
  at::Tensor await(LinkMessage const& message, int rank, char const* what) {
    all_.complete_link(message.work, std::string(what) + " of rank " + std::to_string(rank));
    return message.tensor.to(device_);
  }

  [[noreturn]] void refuse_other_window(StageWindow const& before, StageWindow const& own) const;

  static std::string text_of(ActivationShape const& shape) {
    return shape_text(at::empty(shape.sizes, at::TensorOptions(shape.type).device(at::kMeta)));
  }
  [[noreturn]] static void refuse_dimensions(ActivationShape const& shape);
  [[noreturn]] static void refuse_other_shape(ActivationShape const& before,
                                              ActivationShape const& now);

  Communicator& all_;
  c10::Device device_;
  int stages_;
  std::unordered_map<std::uint64_t, ActivationShape> sent_shapes_, shapes_;
  std::deque<LinkMessage> later_;
};

}  // namespace frugal::detail

#ifndef FRUGAL_COMPILED
#include <frugal/cluster/pipeline/links.ipp>
#endif
