// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/cluster/pipeline/links.hpp>

#include <frugal/inline.hpp>

#include <algorithm>
#include <cmath>
#include <utility>

namespace frugal::detail {

FRUGAL_INLINE at::Tensor ActivationShape::pack() const {
  at::Tensor message = at::zeros({length}, at::kLong);
  auto* at = message.mutable_data_ptr<std::int64_t>();
  at[0] = static_cast<std::int64_t>(type);
  at[1] = needs_gradient ? 1 : 0;
  at[2] = static_cast<std::int64_t>(sizes.size());
  for (std::size_t i = 0; i < sizes.size(); ++i) at[3 + i] = sizes[i];
  return message;
}

FRUGAL_INLINE StageWindow StageWindow::unpack(at::Tensor const& message) {
  std::array<std::uint64_t, length> all{};
  std::memcpy(all.data(), message.const_data_ptr(), sizeof all);
  return {.at = {.epoch = all[0], .position = all[1], .step = all[2]},
          .micro_batches = all[3],
          .shapes = all[4],
          .values = all[5]};
}

FRUGAL_INLINE void StageLinks::agree(StageWindow const& own) {
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

FRUGAL_INLINE LinkMessage StageLinks::send(at::Tensor const& activation, int rank, int stage,
                                           std::uint64_t like) {
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

FRUGAL_INLINE at::Tensor StageLinks::take(std::optional<LinkMessage> begun, int rank, int stage,
                                          std::uint64_t like) {
  auto known = shapes_.find(key(stage, like));
  if (known == shapes_.end()) {
    known = shapes_.emplace(key(stage, like), take_shape(rank, stage)).first;
  }
  if (!begun) begun = start(rank, stage, like);
  at::Tensor activation = await(*begun, rank, "an activation");
  return activation.requires_grad_(known->second.needs_gradient);
}

FRUGAL_INLINE LinkMessage StageLinks::send_gradient(at::Tensor const& input,
                                                    at::Tensor const& gradient, double unit,
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

FRUGAL_INLINE StageLinks::Gradient StageLinks::await_gradient(LinkMessage const& message,
                                                              at::Tensor const& activation,
                                                              int rank) {
  at::Tensor const all = await(message, rank, "the gradient of an activation");
  std::int64_t const count = all.numel() - 1;
  double const exponent = message.tensor.narrow(0, count, 1).item<double>();
  if (exponent == no_gradient) return {};
  return {.tensor = all.narrow(0, 0, count).view(activation.sizes()),
          .unit = std::ldexp(1.0, static_cast<int>(exponent))};
}

FRUGAL_INLINE void StageLinks::refuse_other_window(StageWindow const& before,
                                                   StageWindow const& own) const {
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
      {.what = "the stages of a pipeline train different batches: " + named(rank) + " has " + what,
       .where = here + ", at " + own.at.text(),
       .why = "the first stage takes the inputs of its batches and the last one the targets of "
              "its own, so the loss would mean nothing",
       .fix = "Give all processes of a pipeline the same data in the same order: divide none of "
              "it by rank, and augment by the loop's generator alone."});
}

FRUGAL_INLINE void StageLinks::refuse_dimensions(ActivationShape const& shape) {
  throw ModuleError({.what = "an activation between two stages has " +
                             std::to_string(shape.sizes.size()) + " dimensions",
                     .where = "Pipeline",
                     .why = "the message of its shape holds 13 at most",
                     .fix = "Flatten it at the end of the stage."});
}

FRUGAL_INLINE void StageLinks::refuse_other_shape(ActivationShape const& before,
                                                  ActivationShape const& now) {
  std::string why =
      "batches of one shape must have activations of one shape, which the next "
      "stage expects";
  if (before.needs_gradient != now.needs_gradient)
    why = "one of them has a gradient and the other has not";
  throw ModuleError({.what = "an activation between two stages is " + text_of(now) + ", and was " +
                             text_of(before) + " for a batch of the same shape",
                     .where = "Pipeline",
                     .why = std::move(why),
                     .fix = "Move the layers whose output depends on the data into one stage "
                            "(Pipeline::layers)."});
}

}  // namespace frugal::detail
