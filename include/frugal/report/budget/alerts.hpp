// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/report/notify/alert.hpp>
#include <frugal/report/notify/command.hpp>
#include <frugal/report/notify/outbox.hpp>

#include <concepts>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <type_traits>

namespace frugal::detail {

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
