// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/base/command.hpp>
#include <frugal/report/notify/alert.hpp>

#include <chrono>
#include <stop_token>
#include <string>
#include <utility>

namespace frugal {

/// An option of Budget and BurnRate: runs a program for each alert, without a shell. {text} and the
/// alert's other fields in braces are replaced in its arguments.
struct NotifyCommand {
  Command words{};                    ///< {"notify-send", "{text}"}
  std::chrono::seconds patience{30};  ///< then it is killed
  /// A program is not run again, and has its patience at the end of a fit.
  notify::Delivery delivery{
      .attempts = 1, .first_wait{}, .at_end = std::chrono::milliseconds(30000)};

  /// SettingsError for settings with which no program could be run.
  void require_valid(std::string const& owner) const;

  std::string name() const { return "the command " + words.front(); }

  class Sender;
};

class NotifyCommand::Sender {
 public:
  explicit Sender(NotifyCommand settings) : settings_(std::move(settings)) {}

  notify::Attempt operator()(notify::Alert const& alert, std::stop_token const& stop) const {
    std::string why = detail::failure_of(detail::filled(settings_.words, alert.words()),
                                         {.patience = settings_.patience, .stop = stop});
    if (why.empty()) return {};
    if (stop.stop_requested()) {
      return {notify::Attempt::Result::refused, "the fit ended before the program did"};
    }
    return {notify::Attempt::Result::again, std::move(why)};
  }

 private:
  NotifyCommand settings_;
};

}  // namespace frugal

#ifndef FRUGAL_COMPILED
#include <frugal/report/notify/command.ipp>
#endif
