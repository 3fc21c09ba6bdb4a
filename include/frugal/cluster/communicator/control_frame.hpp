// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ATen.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

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
                   PlaceInRun const& at, std::uint64_t tensors = 0);
  static at::Tensor write(Head const& head, void const* message, std::int64_t size = least);
  static Head read(char const* frame) {
    Head head;
    std::memcpy(&head, frame, sizeof head);
    return head;
  }
  static char const* message(char const* frame) { return frame + sizeof(Head); }

  /// What two processes that exchange with each other differ in; empty if nothing. `other` and `mine` name
  /// them.
  static std::string difference(Head const& other_head, std::string const& other,
                                Head const& my_head, std::string const& mine);

 private:
  static constexpr std::uint64_t the_mark = 0x66727567616c3032;  // "frugal02"
};
static_assert(ControlFrame::room() > 0);

/// Processes that must do the same have come to different places.
[[noreturn]] void refuse_other_place(std::string difference, std::string where);

}  // namespace detail
}  // namespace frugal

#ifndef FRUGAL_COMPILED
#include <frugal/cluster/communicator/control_frame.ipp>
#endif
