// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/error.hpp>
#include <frugal/report/notify/alert.hpp>
#include <frugal/report/notify/http.hpp>

#include <chrono>
#include <cstddef>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

// Needs libcurl: FRUGAL_NOTICES=ON, and the target frugal::notices.
namespace frugal {

/// An option of Budget and BurnRate: sends each alert as a POST of one JSON object, by libcurl.
/// http:// and https://; the proxy settings of the environment hold. A response of 2xx is a
/// success; 408, 429, 5xx and a failed connection are tried again, not before the response's
/// Retry-After (at most an hour).
struct Webhook {
  std::string url{};
  std::vector<std::string> headers{};        ///< "Name: value", such as an Authorization
  std::chrono::milliseconds timeout{10000};  ///< for one attempt
  notify::Delivery delivery{};

  /// SettingsError for settings with which nothing could be sent.
  void require_valid(std::string const& owner) const {
    auto const refuse = [&](std::string what, std::string where, std::string why) {
      throw SettingsError({.what = std::move(what),
                           .where = owner + "::webhook." + std::move(where),
                           .why = std::move(why),
                           .fix = "Give an address such as https://example.org/hook."});
    };
    if (!url.starts_with("http://") && !url.starts_with("https://")) {
      refuse("the webhook has no address", "url", "it does not begin with http:// or https://");
    }
    if (timeout <= std::chrono::milliseconds(0)) {
      refuse("the webhook's timeout is " + std::to_string(timeout.count()) + " ms", "timeout",
             "no answer would be in time");
    }
    delivery.require_valid(owner + "::webhook");
    for (std::string const& header : headers) {
      if (header.find_first_of("\r\n") != std::string::npos) {
        refuse("a header of the webhook has several lines", "headers", "each is one header");
      }
    }
  }

  /// Without path and query, which are a secret with most chat services.
  std::string name() const {
    std::size_t const host = url.find("://") + 3;
    std::string_view authority =
        std::string_view(url).substr(host, url.find_first_of("/?#", host) - host);
    if (std::size_t const at = authority.rfind('@'); at != std::string_view::npos) {
      authority.remove_prefix(at + 1);
    }
    return "the webhook at " + std::string(authority);
  }

  class Sender;
};

class Webhook::Sender {
 public:
  explicit Sender(Webhook settings) : settings_(std::move(settings)) {}

  notify::Attempt operator()(notify::Alert const& alert, std::stop_token const& stop) const {
    using Result = notify::Attempt::Result;
    detail::HttpAnswer const answer = client_({.url = settings_.url,
                                               .headers = settings_.headers,
                                               .body = alert.json(),
                                               .timeout = settings_.timeout},
                                              stop);
    if (answer.status == 0) {
      return {stop.stop_requested() ? Result::refused : Result::again, answer.failure};
    }
    if (answer.status >= 200 && answer.status < 300) return {};
    std::string why = "HTTP status " + std::to_string(answer.status);
    bool const later = answer.status == 408 || answer.status == 429 || answer.status >= 500;
    if (!later) return {Result::refused, std::move(why)};
    return {Result::again, std::move(why), answer.wait};
  }

 private:
  Webhook settings_;
  detail::HttpClient client_;
};

}  // namespace frugal
