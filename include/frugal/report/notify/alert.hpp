// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/base/json_writer.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

namespace frugal::notify {

/// Something that a person should learn while a run goes on.
struct Alert {
  using Value = std::variant<std::uint64_t, double, std::string>;

  std::string text;                                     ///< one sentence, for a person
  std::vector<std::pair<std::string, Value>> fields{};  ///< the same for a program

  /// One JSON object, with the sentence as "text", which chat services show.
  std::string json() const;

  /// The values as text, by name; numbers without an exponent, because shells compare them.
  std::map<std::string, std::string> words() const;
};

/// What became of one attempt to send an alert.
struct Attempt {
  enum class Result {
    sent,
    again,    ///< may succeed later: no connection, a busy server
    refused,  ///< will fail each time
  };

  Result result = Result::sent;
  std::string why{};  ///< of a failure
  /// The least time before the next attempt, if the server has asked for one.
  std::chrono::milliseconds wait{0};
};

/// How alerts are sent.
struct Delivery {
  int attempts = 5;                               ///< per alert
  std::chrono::milliseconds first_wait{500};      ///< before the second attempt; then doubled,
  std::chrono::milliseconds longest_wait{60000};  ///< up to this, or longer if the server asks
  std::size_t most_waiting = 64;                  ///< alerts beyond these are dropped
  std::chrono::milliseconds at_end{10000};        ///< for what still waits when fit ends

  /// SettingsError for numbers with which nothing would be sent. `where` names the channel.
  void require_valid(std::string const& where) const;

  /// These settings with every time limited to a year, beyond which the clock would overflow.
  Delivery bounded() const;
};

}  // namespace frugal::notify

#ifndef FRUGAL_COMPILED
#include <frugal/report/notify/alert.ipp>
#endif
