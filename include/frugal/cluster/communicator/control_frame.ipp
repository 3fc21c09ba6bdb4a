// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/cluster/communicator/control_frame.hpp>

#include <frugal/inline.hpp>

#include <span>
#include <vector>

namespace frugal::detail {

FRUGAL_INLINE ControlFrame::Head ControlFrame::head(std::string_view what, std::uint64_t number,
                                                    at::Tensor const& message, PlaceInRun const& at,
                                                    std::uint64_t tensors) {
  std::vector<std::int64_t> kind = message.sizes().vec();
  kind.push_back(static_cast<std::int64_t>(message.scalar_type()));
  Head made{.number = number,
            .bytes = static_cast<std::uint64_t>(message.nbytes()),
            .name_hash = Hash::of(std::as_bytes(std::span(what))),
            .kind = Hash::of(std::as_bytes(std::span(kind))),
            .tensors = tensors,
            .at = at};
  what.copy(made.what.data(), made.what.size() - 1);
  return made;
}

FRUGAL_INLINE at::Tensor ControlFrame::write(Head const& head, void const* message,
                                             std::int64_t size) {
  at::Tensor frame = at::zeros({size}, at::kByte);
  auto* const to = static_cast<char*>(frame.mutable_data_ptr());
  std::memcpy(to, &head, sizeof head);
  if (head.bytes != 0) {
    std::memcpy(to + sizeof head, message,
                std::min(head.bytes, static_cast<std::uint64_t>(room(size))));
  }
  return frame;
}

FRUGAL_INLINE std::string ControlFrame::difference(Head const& other_head, std::string const& other,
                                                   Head const& my_head, std::string const& mine) {
  if (other_head == my_head) return {};
  if (other_head.mark != the_mark || my_head.mark != the_mark) {
    return (other_head.mark != the_mark ? other : mine) + " has sent something else";
  }
  auto const both = [&](std::string const& there, std::string const& here) {
    return other + " " + there + ", and " + mine + " " + here;
  };
  if (other_head.at != my_head.at) {
    return both("is at " + other_head.at.text() + " in " + other_head.name(),
                "at " + my_head.at.text() + " in " + my_head.name());
  }
  std::string const at = " (" + my_head.at.text() + ")";
  if (other_head.what != my_head.what) {
    return both("is in " + other_head.name(), "in " + my_head.name()) + at;
  }
  if (other_head.name_hash != my_head.name_hash) {
    return both("is in another exchange", "in one") + " whose name begins with " + my_head.name() +
           at;
  }
  if (other_head.bytes != my_head.bytes) {
    return both("sends " + std::to_string(other_head.bytes) + " bytes",
                std::to_string(my_head.bytes)) +
           " for " + my_head.name() + at;
  }
  if (other_head.kind != my_head.kind) {
    return both("sends a tensor of another type or shape", "one of as many bytes") + " for " +
           my_head.name() + at;
  }
  if (other_head.number != my_head.number) {
    return both("is in exchange " + std::to_string(other_head.number),
                std::to_string(my_head.number)) +
           at;
  }
  return both("has begun " + std::to_string(other_head.tensors) + " exchanges of tensors",
              std::to_string(my_head.tensors)) +
         " before " + my_head.name() + at;
}

FRUGAL_INLINE void refuse_other_place(std::string difference, std::string where) {
  throw ClusterError(
      {.what = "the processes are at different places of the run: " + std::move(difference),
       .where = std::move(where),
       .why = "what they exchange would be of different steps: a policy or a source decides in one "
              "process alone, such as by its own clock, losses or samples",
       .fix = "Start all ranks with the same program, settings and data; let a policy of your own "
              "decide by what all ranks know (Phase::reduce), or by the step."});
}

}  // namespace frugal::detail
