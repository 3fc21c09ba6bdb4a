// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <curl/curl.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <memory>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

// Needs libcurl: FRUGAL_NOTICES=ON, and the target frugal::notices.
namespace frugal::detail {

/// A request to a server that a user has named.
struct HttpRequest {
  std::string method = "POST";  ///< or "GET", without a body
  std::string url{};
  std::vector<std::string> headers{};  ///< "Name: value"
  std::string body{};
  std::string user{}, password{};  ///< for basic authentication; empty: none
  std::chrono::milliseconds timeout{10000};
  std::size_t most_bytes =
      0;  ///< of the answer's body that are kept; what follows is read, and dropped
};

struct HttpAnswer {
  int status = 0;                     ///< 0: no answer
  std::string body{};                 ///< as far as `most_bytes` goes
  std::chrono::milliseconds wait{0};  ///< Retry-After
  std::string failure{};              ///< without an answer: why
};

/// Makes requests by libcurl, http:// and https://, one at a time. The proxy settings of the environment
/// hold; it follows no redirect, raises no signal, and keeps no cookie. A stop request ends a request that
/// is under way.
class HttpClient {
 public:
  HttpClient() : multi_(opened(), &curl_multi_cleanup) {}

  HttpAnswer operator()(HttpRequest const& request, std::stop_token const& stop) const {
    std::unique_ptr<CURL, void (*)(CURL*)> const easy(curl_easy_init(), &curl_easy_cleanup);
    if (!multi_ || !easy) return {.failure = "libcurl does not initialise"};
    std::array<char, CURL_ERROR_SIZE> said{};
    curl_slist* list = nullptr;
    for (std::string const& header : request.headers) append(list, header);
    // libcurl would send both the user's and this one.
    bool const typed =
        std::any_of(request.headers.begin(), request.headers.end(), [](std::string const& header) {
          return curl_strnequal(header.c_str(), "content-type:", 13) != 0;
        });
    if (!typed && request.method != "GET") append(list, "Content-Type: application/json");
    append(list, "Expect:");
    std::unique_ptr<curl_slist, void (*)(curl_slist*)> const owned(list, &curl_slist_free_all);
    Kept kept{.most = request.most_bytes};
    prepare(easy.get(), request, owned.get(), said.data(), kept);

    CURLcode const result = perform(easy.get(), stop);
    if (stop.stop_requested() && result != CURLE_OK) {
      return {.failure = "the fit ended before it answered"};
    }
    if (result != CURLE_OK) {
      return {.failure = said[0] != '\0' ? said.data() : curl_easy_strerror(result)};
    }
    long status = 0;
    curl_easy_getinfo(easy.get(), CURLINFO_RESPONSE_CODE, &status);
    return {.status = static_cast<int>(status),
            .body = std::move(kept.body),
            .wait = asked_wait(easy.get())};
  }

 private:
  struct Kept {
    std::size_t most = 0;
    std::string body{};
  };

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

  static void prepare(CURL* easy, HttpRequest const& request, curl_slist* lines, char* said,
                      Kept& kept) {
    curl_easy_setopt(easy, CURLOPT_URL, request.url.c_str());
    curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(easy, CURLOPT_HTTPHEADER, lines);
    curl_easy_setopt(easy, CURLOPT_USERAGENT, "frugal");
    if (request.method != "GET") {
      curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE, static_cast<long>(request.body.size()));
      curl_easy_setopt(easy, CURLOPT_POSTFIELDS, request.body.c_str());
    }
    if (!request.user.empty()) {
      curl_easy_setopt(easy, CURLOPT_HTTPAUTH, CURLAUTH_BASIC);
      curl_easy_setopt(easy, CURLOPT_USERNAME, request.user.c_str());
      curl_easy_setopt(easy, CURLOPT_PASSWORD, request.password.c_str());
    }
    curl_easy_setopt(easy, CURLOPT_FOLLOWLOCATION, 0L);  // a redirect would make it a GET
    curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(easy, CURLOPT_QUICK_EXIT, 1L);
    curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, static_cast<long>(request.timeout.count()));
    curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, said);
    curl_easy_setopt(easy, CURLOPT_WRITEDATA, &kept);
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, &HttpClient::keep);
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

  // Exceptions must not pass through libcurl; a short count ends the transfer.
  static std::size_t keep(char* data, std::size_t one, std::size_t count, void* into) noexcept {
    Kept& kept = *static_cast<Kept*>(into);
    try {
      kept.body.append(data, std::min(one * count, kept.most - kept.body.size()));
    } catch (...) {
      return 0;
    }
    return one * count;
  }

  std::shared_ptr<CURLM> multi_;  // shared, because a std::function must be copyable
};

}  // namespace frugal::detail
