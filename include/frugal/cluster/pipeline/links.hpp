// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ATen.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
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
  at::Tensor pack() const {
    at::Tensor message = at::zeros({length}, at::kLong);
    auto* at = message.mutable_data_ptr<std::int64_t>();
    at[0] = static_cast<std::int64_t>(type);
    at[1] = needs_gradient ? 1 : 0;
    at[2] = static_cast<std::int64_t>(sizes.size());
    for (std::size_t i = 0; i < sizes.size(); ++i) at[3 + i] = sizes[i];
    return message;
  }
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
  static StageWindow unpack(at::Tensor const& message) {
    std::array<std::uint64_t, length> all{};
    std::memcpy(all.data(), message.const_data_ptr(), sizeof all);
    return {.at = {.epoch = all[0], .position = all[1], .step = all[2]},
            .micro_batches = all[3],
            .shapes = all[4],
            .values = all[5]};
  }
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
  void agree(StageWindow const& own) {
    int const rank = all_.rank();
    int const tag = 3 * stages_ + 2;
    if (rank + 1 < all_.size()) send_later(own.pack(), rank + 1, tag);
    if (rank == 0) return;
    at::Tensor const message = at::empty({StageWindow::length}, at::kLong);
    all_.complete_link(
        all_.start_receive(message, rank - 1, tag),
        "the comparison of windows with rank " + std::to_string(all_.rank_in_world(rank - 1)));
    StageWindow const before = StageWindow::unpack(message);
    if (before == own) [[likely]]
      return;
    try {
      refuse_other_window(before, own);
    } catch (ClusterError const& error) {
      all_.fail(error);  // processes before this one have found nothing
      throw;
    }
  }

  /// Begins to send the input of `stage`. ModuleError if it has another shape than one before, of a
  /// batch like this one.
  LinkMessage send(at::Tensor const& activation, int rank, int stage, std::uint64_t like) {
    ActivationShape const shape = ActivationShape::of(activation);
    if (shape.sizes.size() > ActivationShape::most_dimensions) refuse_dimensions(shape);
    auto const [known, is_new] = sent_shapes_.emplace(key(stage, like), shape);
    if (is_new) {
      send_later(shape.pack(), rank, shape_tag(stage));
    } else if (known->second != shape) {
      refuse_other_shape(known->second, shape);
    }
    return send_tensor(activation, rank, 2 * stage);
  }

  /// Begins to receive it, if its shape is known.
  std::optional<LinkMessage> start(int rank, int stage, std::uint64_t like) {
    auto const known = shapes_.find(key(stage, like));
    if (known == shapes_.end()) return std::nullopt;
    return receive_tensor(known->second.sizes, known->second.type, rank, 2 * stage);
  }
  /// Waits for it, and for its shape if that has to come first. A leaf that requires a gradient if the
  /// stage before needs one.
  at::Tensor take(std::optional<LinkMessage> begun, int rank, int stage, std::uint64_t like) {
    auto known = shapes_.find(key(stage, like));
    if (known == shapes_.end()) {
      known = shapes_.emplace(key(stage, like), take_shape(rank, stage)).first;
    }
    if (!begun) begun = start(rank, stage, like);
    at::Tensor activation = await(*begun, rank, "an activation");
    return activation.requires_grad_(known->second.needs_gradient);
  }

  /// The gradient of a stage's input, which is still to be multiplied by `unit`, a power of two. As one
  /// message: the gradient's elements, and the exponent. FP16 would overflow if it were multiplied here.
  /// An undefined one is `no_gradient` in place of the exponent.
  LinkMessage send_gradient(at::Tensor const& input, at::Tensor const& gradient, double unit,
                            int rank, int stage) {
    at::Tensor const message = at::empty({input.numel() + 1}, input.options().device(at::kCPU));
    if (!gradient.defined()) {
      message.fill_(no_gradient);
      return send_tensor(message, rank, 2 * stage + 1);
    }
    int exponent = 0;
    std::frexp(unit, &exponent);
    int const sent = std::min(exponent - 1, most_exponent);
    at::Tensor elements = message.narrow(0, 0, input.numel()).view(input.sizes());
    elements.copy_(gradient.detach());
    if (exponent - 1 != sent) elements.mul_(std::ldexp(1.0, exponent - 1 - sent));
    message.narrow(0, input.numel(), 1).fill_(sent);
    return send_tensor(message, rank, 2 * stage + 1);
  }
  /// Begins to receive the gradient of what this process has sent as input of `stage`.
  LinkMessage start_gradient(at::Tensor const& activation, int rank, int stage) {
    return receive_tensor({activation.numel() + 1}, activation.scalar_type(), rank, 2 * stage + 1);
  }
  struct Gradient {
    at::Tensor tensor{};  ///< undefined: the micro-batch has none
    double unit = 1;
  };
  Gradient await_gradient(LinkMessage const& message, at::Tensor const& activation, int rank) {
    at::Tensor const all = await(message, rank, "the gradient of an activation");
    std::int64_t const count = all.numel() - 1;
    double const exponent = message.tensor.narrow(0, count, 1).item<double>();
    if (exponent == no_gradient) return {};
    return {.tensor = all.narrow(0, 0, count).view(activation.sizes()),
            .unit = std::ldexp(1.0, static_cast<int>(exponent))};
  }
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

  [[noreturn]] void refuse_other_window(StageWindow const& before, StageWindow const& own) const {
    auto const named = [this](int rank) {
      return "rank " + std::to_string(all_.rank_in_world(rank));
    };
    int const rank = all_.rank();
    std::string const here = all_.hosts()[static_cast<std::size_t>(rank)];
    if (before.at != own.at) {
      refuse_other_place(named(rank) + " begins a window at " + own.at.text() + ", and " +
                             named(rank - 1) + " at " + before.at.text(),
                         here);
    }
    std::string what = "a first batch of other values than " + named(rank - 1);
    if (before.micro_batches != own.micro_batches) {
      what = std::to_string(own.micro_batches) + " micro-batches, and " + named(rank - 1) + " " +
             std::to_string(before.micro_batches);
    } else if (before.shapes != own.shapes) {
      what = "batches of other shapes than " + named(rank - 1);
    }
    throw ClusterError(
        {.what =
             "the stages of a pipeline train different batches: " + named(rank) + " has " + what,
         .where = here + ", at " + own.at.text(),
         .why = "the first stage takes the inputs of its batches and the last one the targets of "
                "its own, so the loss would mean nothing",
         .fix = "Give all processes of a pipeline the same data in the same order: divide none of "
                "it by rank, and augment by the loop's generator alone."});
  }

  static std::string text_of(ActivationShape const& shape) {
    return shape_text(at::empty(shape.sizes, at::TensorOptions(shape.type).device(at::kMeta)));
  }
  [[noreturn]] static void refuse_dimensions(ActivationShape const& shape) {
    throw ModuleError({.what = "an activation between two stages has " +
                               std::to_string(shape.sizes.size()) + " dimensions",
                       .where = "Pipeline",
                       .why = "the message of its shape holds 13 at most",
                       .fix = "Flatten it at the end of the stage."});
  }
  [[noreturn]] static void refuse_other_shape(ActivationShape const& before,
                                              ActivationShape const& now) {
    std::string why =
        "batches of one shape must have activations of one shape, which the next "
        "stage expects";
    if (before.needs_gradient != now.needs_gradient)
      why = "one of them has a gradient and the other has not";
    throw ModuleError({.what = "an activation between two stages is " + text_of(now) +
                               ", and was " + text_of(before) + " for a batch of the same shape",
                       .where = "Pipeline",
                       .why = std::move(why),
                       .fix = "Move the layers whose output depends on the data into one stage "
                              "(Pipeline::layers)."});
  }

  Communicator& all_;
  c10::Device device_;
  int stages_;
  std::unordered_map<std::uint64_t, ActivationShape> sent_shapes_, shapes_;
  std::deque<LinkMessage> later_;
};

}  // namespace frugal::detail
