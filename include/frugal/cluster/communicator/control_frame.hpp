// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ATen.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <frugal/base/hash.hpp>
#include <frugal/error.hpp>

namespace frugal {

/// Where a process is in its run: the window that it has begun last.
struct PlaceInRun {
  std::uint64_t epoch = 0;
  std::uint64_t position = 0;
  std::uint64_t step = 0;
  bool operator==(PlaceInRun const&) const = default;

  std::string text() const {
    return "epoch " + std::to_string(epoch) + ", position " + std::to_string(position) + ", step " +
           std::to_string(step);
  }
};

namespace detail {

/// What a process sends when all of them exchange a message: of one size whatever the message is, so that
/// processes that are at different exchanges find it out here. Backends do not: Gloo ends the process for
/// messages of different sizes, in a thread of its own, or leaves memory as it was.
///
/// It says which message it is, and where the process is; then comes the message, as far as it fits.
class ControlFrame {
 public:
  static constexpr std::int64_t least = 408;  ///< bytes: most messages fit
  /// Of one sender.
  struct Head {
    std::uint64_t mark = the_mark;
    std::uint64_t number = 0;     ///< of the exchange, among those of these processes
    std::uint64_t bytes = 0;      ///< of the message
    std::uint64_t name_hash = 0;  ///< of its whole name
    std::uint64_t kind = 0;       ///< a hash of the type of its elements, and of its sizes
    /// Exchanges of tensors begun before; 0 where processes may have begun different numbers. They say
    /// nothing of themselves, so that others would be added up.
    std::uint64_t tensors = 0;
    PlaceInRun at{};
    std::array<char, 32> what{};  ///< the name, cut

    std::string name() const {
      return std::string(what.data(), ::strnlen(what.data(), what.size() - 1));
    }
    bool operator==(Head const&) const = default;
  };
  /// Bytes of a message that a frame of a size has room for.
  static constexpr std::int64_t room(std::int64_t size = least) {
    return size - static_cast<std::int64_t>(sizeof(Head));
  }
  /// The size of frames that have this room.
  static std::int64_t size_for(std::int64_t bytes) {
    return std::max(least, bytes + static_cast<std::int64_t>(sizeof(Head)));
  }

  static Head head(std::string_view what, std::uint64_t number, at::Tensor const& message,
                   PlaceInRun const& at, std::uint64_t tensors = 0) {
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
  static at::Tensor write(Head const& head, void const* message, std::int64_t size = least) {
    at::Tensor frame = at::zeros({size}, at::kByte);
    auto* const to = static_cast<char*>(frame.mutable_data_ptr());
    std::memcpy(to, &head, sizeof head);
    if (head.bytes != 0) {
      std::memcpy(to + sizeof head, message,
                  std::min(head.bytes, static_cast<std::uint64_t>(room(size))));
    }
    return frame;
  }
  static Head read(char const* frame) {
    Head head;
    std::memcpy(&head, frame, sizeof head);
    return head;
  }
  static char const* message(char const* frame) { return frame + sizeof(Head); }

  /// What two processes that exchange with each other differ in; empty if nothing. `other` and `mine` name
  /// them.
  static std::string difference(Head const& other_head, std::string const& other,
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
      return both("is in another exchange", "in one") + " whose name begins with " +
             my_head.name() + at;
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

 private:
  static constexpr std::uint64_t the_mark = 0x66727567616c3032;  // "frugal02"
};
static_assert(ControlFrame::room() > 0);

/// Processes that must do the same have come to different places.
[[noreturn]] inline void refuse_other_place(std::string difference, std::string where) {
  throw ClusterError(
      {.what = "the processes are at different places of the run: " + std::move(difference),
       .where = std::move(where),
       .why = "what they exchange would be of different steps: a policy or a source decides in one "
              "process alone, such as by its own clock, losses or samples",
       .fix = "Start all ranks with the same program, settings and data; let a policy of your own "
              "decide by what all ranks know (Phase::reduce), or by the step."});
}

}  // namespace detail
}  // namespace frugal
