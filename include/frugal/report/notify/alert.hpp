// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/base/json_writer.hpp>
#include <frugal/base/number_text.hpp>
#include <frugal/error.hpp>
#include <frugal/inline.hpp>

#include <algorithm>
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
  FRUGAL_INLINE std::string json() const {
    detail::JsonWriter object;
    object.object().add("text", text);
    for (auto const& [name, value] : fields) object.add(name, value);
    return object.str();
  }

  /// The values as text, by name; numbers without an exponent, because shells compare them.
  FRUGAL_INLINE std::map<std::string, std::string> words() const {
    std::map<std::string, std::string> all{{"text", text}};
    for (auto const& [name, value] : fields) {
      all[name] = std::visit(
          [](auto const& each) {
            if constexpr (std::is_same_v<std::decay_t<decltype(each)>, std::string>) {
              return each;
            } else if constexpr (std::is_same_v<std::decay_t<decltype(each)>, double>) {
              return frugal::detail::fixed_short(each, 6);
            } else {
              return std::to_string(each);
            }
          },
          value);
    }
    return all;
  }
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
  FRUGAL_INLINE void require_valid(std::string const& where) const {
    auto const refuse = [&](char const* name, auto value, char const* least) {
      throw SettingsError({.what = std::string(name) + " is " + std::to_string(value),
                           .where = where + ".delivery." + name,
                           .why = "no alert could be sent with it",
                           .fix = std::string("Give ") + least + " or more."});
    };
    if (attempts < 1) refuse("attempts", attempts, "1");
    if (most_waiting < 1) refuse("most_waiting", most_waiting, "1");
    if (first_wait.count() < 0) refuse("first_wait", first_wait.count(), "0 ms");
    if (longest_wait.count() < 0) refuse("longest_wait", longest_wait.count(), "0 ms");
    if (at_end.count() < 0) refuse("at_end", at_end.count(), "0 ms");
  }

  /// These settings with every time limited to a year, beyond which the clock would overflow.
  FRUGAL_INLINE Delivery bounded() const {
    constexpr std::chrono::milliseconds most = std::chrono::hours(24 * 365);
    Delivery out = *this;
    for (auto* each : {&out.first_wait, &out.longest_wait, &out.at_end}) {
      *each = std::min(*each, most);
    }
    return out;
  }
};

}  // namespace frugal::notify
