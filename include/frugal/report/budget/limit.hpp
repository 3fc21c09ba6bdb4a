// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/core/run/durations.hpp>
#include <frugal/error.hpp>
#include <frugal/report/notify/alert.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace frugal::detail {

/// Reports each level once. A level is reported again only after the share has fallen below it by
/// the hysteresis, so that a share that wavers around a level gives one warning.
class Levels {
 public:
  Levels() = default;
  /// SettingsError for a level that is not above 0, and a hysteresis outside 0 to 1. `where` names
  /// the policy.
  Levels(std::vector<double> levels, double hysteresis, std::string const& where)
      : levels_(std::move(levels)), hysteresis_(hysteresis) {
    for (double const level : levels_) {
      if (level > 0 && std::isfinite(level)) continue;
      throw SettingsError({.what = "a level is " + std::to_string(level),
                           .where = where + "::levels",
                           .why = "a level is a share of the limit, above 0",
                           .fix = "Give shares such as {0.5, 0.8, 1.0}."});
    }
    if (!(hysteresis >= 0 && hysteresis < 1)) {
      throw SettingsError({.what = "the hysteresis is " + std::to_string(hysteresis),
                           .where = where + "::hysteresis",
                           .why = "it is a share of the limit, from 0 to below 1",
                           .fix = "Give a share such as 0.05."});
    }
    std::sort(levels_.begin(), levels_.end());
  }

  /// The highest level that is reached now and was not reported; of several, only that one is
  /// reported.
  std::optional<double> look(double share);

  template <class Archive>
  void persist(Archive& archive) {
    archive("told", told_);
  }

 private:
  double below(double level) const;

  std::vector<double> levels_;
  double hysteresis_ = 0;
  double told_ = 0;  ///< the highest level that was reported; 0: none
};

}  // namespace frugal::detail

// Limits of Budget and BurnRate as types; each is read from one gauge of CostMeter.
namespace frugal {

/// An option: N US dollars. The amount of money itself is plan::Usd.
template <int N>
struct Usd {
  static_assert(N >= 1,
                "frugal: Usd<0> is spent before it begins. Write Usd<1> or more; cents go "
                "into the member `limit`.");
  static constexpr int amount = N;
};

/// An option: N kilowatt-hours.
template <int N>
struct KilowattHours {
  static_assert(N >= 1,
                "frugal: KilowattHours<0> is spent before it begins. Write "
                "KilowattHours<1> or more.");
  static constexpr int amount = N;
};

/// Units of BurnRate.
struct PerHour {
  static constexpr double hours = 1;
  static constexpr std::string_view text = "an hour";
};
struct PerDay {
  static constexpr double hours = 24;
  static constexpr std::string_view text = "a day";
};

/// An option: ends the run, with a checkpoint, when the limit is reached.
struct Stop {};

namespace detail {

/// How a limit is measured. `known` is false for types that are none.
template <class Limit>
struct limit_traits {
  static constexpr bool known = false;
};
template <int N>
struct limit_traits<Usd<N>> {
  static constexpr bool known = true;
  static constexpr double amount = Usd<N>::amount;
  static constexpr std::string_view gauge = "dollars";
  static constexpr std::string_view projected = "dollars_projected";
  static constexpr std::string_view rate = "dollars_per_hour";
  static constexpr std::string_view unit = "USD";
  static constexpr std::string_view missing = "the price of this run is not known in US dollars";
  static constexpr std::string_view fix =
      "Set CostMeter::price or FRUGAL_PRICE_PER_HOUR, or limit Hours<N>.";
};
template <int N>
struct limit_traits<KilowattHours<N>> {
  static constexpr bool known = true;
  static constexpr double amount = KilowattHours<N>::amount;
  static constexpr std::string_view gauge = "kilowatt_hours";
  static constexpr std::string_view projected = "kilowatt_hours_projected";
  static constexpr std::string_view rate = "kilowatts";
  static constexpr std::string_view unit = "kWh";
  static constexpr std::string_view missing = "no counter of energy can be read here";
  static constexpr std::string_view fix =
      "Make the counters readable (docs/report/cost_meter.md), or limit Hours<N>.";
};
template <class Time>
  requires is_wall_time<Time>
struct limit_traits<Time> {
  static constexpr bool known = true;
  static constexpr double amount = Time::seconds / 3600;
  static constexpr std::string_view gauge = "hours";
  static constexpr std::string_view projected = "hours_projected";
  static constexpr std::string_view rate = "";
  static constexpr std::string_view unit = "h";
  static constexpr std::string_view missing = "CostMeter has not begun";
  static constexpr std::string_view fix = "";
};

namespace option {

struct limit {
  template <class O>
  static constexpr bool has = limit_traits<O>::known;
};
struct spent_limit {
  template <class O>
  static constexpr bool has = limit_traits<O>::known && !is_wall_time<O>;
};
struct per_time {
  template <class O>
  static constexpr bool has = requires {
    O::hours;
    O::text;
  };
};
struct stop {
  template <class O>
  static constexpr bool has = std::same_as<O, Stop>;
};

}  // namespace option

/// "16.5 USD", "20000 USD", "0.00002 USD": never with an exponent that a reader of a bill would
/// have to undo.
std::string amount_text(double amount, std::string_view unit);

}  // namespace detail
}  // namespace frugal

namespace frugal::detail {

/// An amount that grows with time, over the last part of it. Keeps a fixed number of samples.
class SlidingRate {
 public:
  explicit SlidingRate(double window) : window_(window) {}

  /// The mean rate over the window, or up to a 32nd longer; nothing before it is full. Both values
  /// must not fall.
  std::optional<double> look(double hours, double amount);

 private:
  struct Sample {
    double hours = 0;
    double amount = 0;
  };
  Sample const& at(std::size_t i) const { return samples_[(first_ + i) % samples_.size()]; }
  void drop();

  double window_;
  std::array<Sample, 64> samples_{};
  std::size_t first_ = 0;
  std::size_t count_ = 0;
};

/// In place of a Webhook or a NotifyCommand that a policy does not have.
struct NoChannel {};

/// A way to send alerts, such as Webhook: validates its settings, names itself, and makes Senders.
template <class T>
concept AlertChannel = requires(T const& channel, typename T::Sender const& sender,
                                notify::Alert const& alert, std::stop_token const& stop) {
  channel.require_valid(std::string());
  { channel.name() } -> std::convertible_to<std::string>;
  { channel.delivery } -> std::convertible_to<notify::Delivery>;
  { sender(alert, stop) } -> std::same_as<notify::Attempt>;
};

namespace option {

struct command {
  template <class O>
  static constexpr bool has = std::same_as<O, NotifyCommand>;
};
/// Webhook, or a channel of a user: found by what it has, as its header needs libcurl.
struct webhook {
  template <class O>
  static constexpr bool has = AlertChannel<O> && !std::same_as<O, NotifyCommand>;
};

}  // namespace option

/// The channel of a policy during a fit.
template <class Channel>
class AlertLine {
 public:
  explicit AlertLine(Channel const& channel) : channel_(&channel) {}

  /// SettingsError for settings with which nothing can be sent.
  void begin(std::string const& owner) {
    if constexpr (there) {
      channel_->require_valid(owner);
      outbox_ =
          std::make_unique<notify::Outbox>(typename Channel::Sender(*channel_), channel_->delivery);
    }
  }

  void post([[maybe_unused]] notify::Alert const& alert) {
    if constexpr (there) outbox_->post(alert);
  }

  /// The fit has ended: alerts that wait have their time from now on.
  void close() {
    if constexpr (there) {
      if (outbox_) outbox_->close();
    }
  }

  /// Waits for them. Returns a sentence on what was not sent; empty if all was.
  std::string finish(std::string const& owner) {
    if constexpr (there) {
      if (!outbox_) return {};
      notify::Outbox::Status const status = outbox_->finish();
      if (status.failed + status.dropped == 0) return {};
      return owner + ": " + channel_->name() + " missed " +
             std::to_string(status.failed + status.dropped) + " of " +
             std::to_string(status.failed + status.dropped + status.sent) + " alerts" +
             (status.first_failure.empty() ? "" : ": " + status.first_failure);
    }
    return {};
  }

 private:
  static constexpr bool there = !std::same_as<Channel, NoChannel>;

  Channel const* channel_;
  std::unique_ptr<notify::Outbox> outbox_;
};

}  // namespace frugal::detail

#ifndef FRUGAL_COMPILED
#include <frugal/report/budget/limit.ipp>
#endif
