// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <charconv>
#include <chrono>
#include <concepts>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace frugal {

class MetadataClient;

/// A cloud's announcement about the end of this machine.
struct Notice {
  enum class Kind {
    rebalance,  ///< a hint: the machine has a raised risk of preemption, but may stay
    preempt,    ///< the machine will be preempted
  };

  Kind kind = Kind::preempt;
  /// When the machine is preempted, on the system clock; nothing if the cloud gives no time, or an
  /// unreadable one.
  std::optional<std::chrono::system_clock::time_point> deadline = {};
  std::string source = {};  ///< the cloud: "aws", "gcp", "azure"
  std::string text = {};    ///< the cloud's text, for the log; printable ASCII
};

/// A cloud that gives notices: Aws, Gcp, Azure, or a user-defined type. The type holds the
/// settings; its Session polls, and may cache what it needs (a token, the machine's name).
///
/// poll() returns the current notice, or nothing; it throws if the service is unreachable or gives
/// no sensible answer. One thread calls it. It must send every request through the client, because
/// only these can be interrupted.
template <class P>
concept NoticeProvider =
    std::copyable<P> && std::constructible_from<typename P::Session, P const&, MetadataClient&> &&
    requires(typename P::Session& session) {
      { P::name } -> std::convertible_to<std::string_view>;
      { P::interval } -> std::convertible_to<std::chrono::milliseconds>;
      { session.poll() } -> std::same_as<std::optional<Notice>>;
    };

}  // namespace frugal

namespace frugal::detail {

using NoticeTime = std::optional<std::chrono::system_clock::time_point>;

/// The digits of text[at, at + width) as a number; -1 if any character is not a digit.
inline int digits_at(std::string_view text, std::size_t at, std::size_t width) {
  std::string_view const part = text.substr(at, width);
  for (char const c : part) {
    if (c < '0' || c > '9') return -1;  // from_chars would accept a minus
  }
  int value = -1;
  std::from_chars(part.data(), part.data() + part.size(), value);
  return value;
}

/// Nothing for an invalid time: 30 February, 25 o'clock, a leap second. Nor for a year beyond the
/// range of the clock, whose nanoseconds end in 2262.
inline NoticeTime moment(int year, int month, int day, std::string_view clock) {
  namespace chr = std::chrono;
  if (clock.size() != 8 || clock[2] != ':' || clock[5] != ':') return {};
  int const hour = digits_at(clock, 0, 2);
  int const minute = digits_at(clock, 3, 2);
  int const second = digits_at(clock, 6, 2);
  if (year < 1970 || year > 2200 || month < 0 || day < 0) return {};
  if (hour < 0 || hour > 23 || minute < 0 || minute > 59 || second < 0 || second > 59) return {};
  chr::year_month_day const date{chr::year(year), chr::month(static_cast<unsigned>(month)),
                                 chr::day(static_cast<unsigned>(day))};
  if (!date.ok()) return {};
  return chr::sys_days(date) + chr::hours(hour) + chr::minutes(minute) + chr::seconds(second);
}

/// Parses AWS's time format, "2017-09-18T08:22:00Z"; nothing for any other text.
///
/// Source  RFC 3339, section 5.6, without fractions and always in UTC.
inline NoticeTime time_of_rfc3339(std::string_view text) {
  if (text.size() != 20 || text[4] != '-' || text[7] != '-' || text[10] != 'T' || text[19] != 'Z') {
    return {};
  }
  return moment(digits_at(text, 0, 4), digits_at(text, 5, 2), digits_at(text, 8, 2),
                text.substr(11, 8));
}

/// Parses Azure's time format, "Mon, 19 Sep 2016 18:29:47 GMT"; nothing for any other text. Ignores
/// the day of the week: the vendor's own examples have wrong ones.
///
/// Source  RFC 1123, section 5.2.14; RFC 9110, section 5.6.7.
inline NoticeTime time_of_rfc1123(std::string_view text) {
  constexpr std::array<std::string_view, 12> months = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                                       "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
  if (text.size() != 29 || text.substr(3, 2) != ", " || text[7] != ' ' || text[11] != ' ' ||
      text[16] != ' ' || (text.substr(25) != " GMT" && text.substr(25) != " UTC")) {
    return {};
  }
  for (std::size_t month = 0; month < months.size(); ++month) {
    if (text.substr(8, 3) == months[month]) {
      return moment(digits_at(text, 12, 4), static_cast<int>(month) + 1, digits_at(text, 5, 2),
                    text.substr(17, 8));
    }
  }
  return {};
}

}  // namespace frugal::detail
