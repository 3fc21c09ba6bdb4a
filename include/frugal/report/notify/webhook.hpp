// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/error.hpp>
#include <frugal/report/notify/alert.hpp>

#include <curl/curl.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <memory>
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
  explicit Sender(Webhook settings)
      : settings_(std::move(settings)), multi_(opened(), &curl_multi_cleanup) {}

  notify::Attempt operator()(notify::Alert const& alert, std::stop_token const& stop) const {
    using Result = notify::Attempt::Result;
    std::unique_ptr<CURL, void (*)(CURL*)> const easy(curl_easy_init(), &curl_easy_cleanup);
    if (!multi_ || !easy) return {Result::again, "libcurl does not initialise"};
    std::string const body = alert.json();
    std::array<char, CURL_ERROR_SIZE> said{};
    curl_slist* list = nullptr;
    for (std::string const& header : settings_.headers) append(list, header);
    // libcurl would send both the user's and this one.
    bool const typed = std::any_of(
        settings_.headers.begin(), settings_.headers.end(), [](std::string const& header) {
          return curl_strnequal(header.c_str(), "content-type:", 13) != 0;
        });
    if (!typed) append(list, "Content-Type: application/json");
    append(list, "Expect:");
    std::unique_ptr<curl_slist, void (*)(curl_slist*)> const owned(list, &curl_slist_free_all);
    prepare(easy.get(), body, owned.get(), said.data());

    CURLcode const result = perform(easy.get(), stop);
    if (stop.stop_requested() && result != CURLE_OK) {
      return {Result::refused, "the fit ended before it answered"};
    }
    if (result != CURLE_OK) {
      return {Result::again, said[0] != '\0' ? said.data() : curl_easy_strerror(result)};
    }
    long status = 0;
    curl_easy_getinfo(easy.get(), CURLINFO_RESPONSE_CODE, &status);
    if (status >= 200 && status < 300) return {};
    bool const later = status == 408 || status == 429 || status >= 500;
    if (!later) return {Result::refused, "HTTP status " + std::to_string(status)};
    return {Result::again, "HTTP status " + std::to_string(status), asked_wait(easy.get())};
  }

 private:
  /// The response's Retry-After, in either of its forms (RFC 9110, section 10.2.3); 0 without one.
  static std::chrono::milliseconds asked_wait(CURL* easy) {
    curl_off_t seconds = 0;
    curl_easy_getinfo(easy, CURLINFO_RETRY_AFTER, &seconds);
    constexpr curl_off_t day = 24 * 60 * 60;
    return std::chrono::seconds(std::clamp(seconds, curl_off_t{0}, day));
  }

  static CURLM* opened() {
    // Never cleaned up: other code in the process may use libcurl by then.
    static bool const ready = curl_global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK;
    return ready ? curl_multi_init() : nullptr;
  }

  static void append(curl_slist*& list, std::string const& header) {
    if (curl_slist* const longer = curl_slist_append(list, header.c_str())) list = longer;
  }

  void prepare(CURL* easy, std::string const& body, curl_slist* lines, char* said) const {
    curl_easy_setopt(easy, CURLOPT_URL, settings_.url.c_str());
    curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(easy, CURLOPT_HTTPHEADER, lines);
    curl_easy_setopt(easy, CURLOPT_USERAGENT, "frugal");
    curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE, static_cast<long>(body.size()));
    curl_easy_setopt(easy, CURLOPT_POSTFIELDS, body.c_str());
    curl_easy_setopt(easy, CURLOPT_FOLLOWLOCATION, 0L);  // a redirect would make it a GET
    curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(easy, CURLOPT_QUICK_EXIT, 1L);
    curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, static_cast<long>(settings_.timeout.count()));
    curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, said);
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, &Sender::ignore);
  }

  CURLcode perform(CURL* easy, std::stop_token const& stop) const {
    CURLM* const multi = multi_.get();
    // The only libcurl call that another thread may make.
    std::stop_callback const wake(stop, [multi] { curl_multi_wakeup(multi); });
    if (curl_multi_add_handle(multi, easy) != CURLM_OK) return CURLE_FAILED_INIT;
    CURLcode result = CURLE_RECV_ERROR;
    for (int running = 1; running != 0 && !stop.stop_requested();) {
      if (curl_multi_perform(multi, &running) != CURLM_OK) break;
      if (running != 0) curl_multi_poll(multi, nullptr, 0, 1000, nullptr);
    }
    int left = 0;
    if (CURLMsg const* const message = curl_multi_info_read(multi, &left)) {
      result = message->data.result;
    }
    curl_multi_remove_handle(multi, easy);
    return result;
  }

  static std::size_t ignore(char*, std::size_t one, std::size_t count, void*) noexcept {
    return one * count;
  }

  Webhook settings_;
  std::shared_ptr<CURLM> multi_;  // shared, because a std::function must be copyable
};

}  // namespace frugal
