// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/error.hpp>

#include <curl/curl.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace frugal {

namespace detail {

inline bool equal_ignoring_case(std::string_view a, std::string_view b) {
  auto const lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; };
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [&](char x, char y) { return lower(x) == lower(y); });
}

inline bool is_printable(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return c >= ' ' && c <= '~'; });
}

/// Foreign text made safe for a log: at most `most` characters of printable ASCII.
inline std::string printable(std::string_view text, std::size_t most = 200) {
  std::string out(text.substr(0, most));
  for (char& c : out) {
    if (c < ' ' || c > '~') c = '?';
  }
  return text.size() > most ? out + "..." : out;
}

inline std::string_view trimmed(std::string_view text) {
  constexpr std::string_view blanks = " \t\r\n";
  std::size_t const first = text.find_first_not_of(blanks);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(blanks) - first + 1);
}

}  // namespace detail

/// The response of a metadata service.
struct MetadataAnswer {
  int status = 0;  ///< HTTP status: 200, 404
  std::string body;
  std::vector<std::pair<std::string, std::string>> headers;  ///< in order of arrival

  /// The value of the first header with that name, ignoring case.
  std::optional<std::string_view> header(std::string_view name) const {
    for (auto const& [key, value] : headers) {
      if (detail::equal_ignoring_case(key, name)) return value;
    }
    return {};
  }

  /// Takes a raw header line. A status line begins a new response: the one before was 100 Continue.
  void add_header_line(std::string_view line) {
    if (line.starts_with("HTTP/")) headers.clear();
    std::size_t const colon = line.find(':');
    if (colon == std::string_view::npos || line.starts_with("HTTP/")) return;
    headers.emplace_back(line.substr(0, colon), detail::trimmed(line.substr(colon + 1)));
  }
};

namespace detail {

/// The base address of a metadata service, without a trailing slash.
inline std::string checked_base(std::string base) {
  while (base.ends_with('/')) base.pop_back();
  if (!base.starts_with("http://") || base.size() == 7 || !is_printable(base) ||
      base.find_first_of(" ?#@") != std::string::npos) {
    throw SettingsError({.what = "no address of a metadata service",
                         .where = printable(base),
                         .why = "it has to be http:// and a host",
                         .fix = "Give the vendor's address, which is the default."});
  }
  return base;
}

/// The error for an HTTP status without a helpful meaning in the vendor's documentation.
inline MetadataError refused(std::string const& url, MetadataAnswer const& answer,
                             std::string fix) {
  std::string why = "it answered " + std::to_string(answer.status);
  if (!answer.body.empty()) why += " \"" + printable(trimmed(answer.body), 80) + '"';
  return MetadataError({.what = "the metadata service refused",
                        .where = url,
                        .why = std::move(why),
                        .fix = std::move(fix)});
}

/// The error for a malformed response.
inline MetadataError nonsense(std::string const& url, std::string why) {
  return MetadataError(
      {.what = "the metadata service gave an invalid answer",
       .where = url,
       .why = std::move(why),
       .fix = "Query the address by hand with curl; something else may listen there."});
}

}  // namespace detail

}  // namespace frugal

// Needs libcurl: FRUGAL_NOTICES=ON, and the target frugal::notices.

namespace frugal {

/// One request to a metadata service.
struct MetadataRequest {
  std::string url;                          ///< http:// only
  std::string method = "GET";               ///< or PUT, POST
  std::vector<std::string> headers = {};    ///< "Name: value"
  std::string body = {};                    ///< of POST and PUT
  std::chrono::milliseconds timeout{2000};  ///< for the whole request, 1 ms to a day
};

/// Sends requests to a cloud's metadata service, one at a time, from one thread at a time. Keeps
/// the connection open between requests.
///
/// Requests go directly: no proxy, whatever the environment says, no redirects, http only. Accepts
/// at most `most_bytes` of headers and as many of body. Raises no signal and installs no handler.
///
/// A stop request on the token ends a pending request, even if the service hangs.
///
/// Errors  UnreachableError if nothing answers at the address (refused, no route, no such host, no
///         connection within `connect_timeout`); MetadataError if the connection breaks, the
///         request times out, the response is too long or not HTTP, or a stop was requested. A
///         response with any status is returned.
/// Source  https://curl.se/libcurl/c/libcurl-multi.html
class MetadataClient {
 public:
  static constexpr std::size_t most_bytes = 65536;
  /// A metadata service is one hop away; it answers within milliseconds or not at all.
  static constexpr std::chrono::milliseconds connect_timeout{1000};

  explicit MetadataClient(std::stop_token stop = {})
      : stop_(std::move(stop)), multi_(opened()), easy_(curl_easy_init()) {
    if (!multi_ || !easy_) throw unusable();
  }

  MetadataAnswer send(MetadataRequest const& request) {
    Transfer transfer;
    std::array<char, CURL_ERROR_SIZE> said{};
    Headers const headers = headers_of(request);
    prepare(request, transfer, said.data(), headers.get());
    CURLcode const result = perform(request.url);
    if (result == CURLE_OK) {
      set(CURLOPT_ERRORBUFFER, static_cast<char*>(nullptr));
      long status = 0;
      curl_easy_getinfo(easy_.get(), CURLINFO_RESPONSE_CODE, &status);
      transfer.answer.status = static_cast<int>(status);
      return std::move(transfer.answer);
    }
    throw_failure(request, transfer, result, said.data());
  }

 private:
  struct Transfer {
    MetadataAnswer answer;
    std::size_t head = 0;  // bytes of headers so far
    bool too_long = false;
  };

  struct FreeMulti {
    void operator()(CURLM* multi) const { curl_multi_cleanup(multi); }
  };
  struct FreeEasy {
    void operator()(CURL* easy) const { curl_easy_cleanup(easy); }
  };
  struct FreeHeaders {
    void operator()(curl_slist* list) const { curl_slist_free_all(list); }
  };
  using Headers = std::unique_ptr<curl_slist, FreeHeaders>;

  static MetadataError unusable() {
    return MetadataError({.what = "libcurl cannot be used",
                          .where = curl_version(),
                          .why = "it does not initialise",
                          .fix = "Check the memory limits, or leave notices out."});
  }

  static CURLM* opened() {
    // Never cleaned up: other code in the process may use libcurl by then.
    static bool const ready = curl_global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK;
    if (!ready) throw unusable();
    return curl_multi_init();
  }

  static Headers headers_of(MetadataRequest const& request) {
    // curl adds these by default, and no vendor's example has them.
    std::vector<std::string> all = {"Accept: */*", "Expect:"};
    if (request.method != "GET" && request.body.empty()) all.emplace_back("Content-Type:");
    all.insert(all.end(), request.headers.begin(), request.headers.end());
    Headers list;
    for (std::string const& header : all) {
      if (!detail::is_printable(header)) {
        throw MetadataError({.what = "a request to the metadata service was not sent",
                             .where = request.url,
                             .why = "a header has control characters",
                             .fix = "Give names and values of printable ASCII."});
      }
      curl_slist* const longer = curl_slist_append(list.get(), header.c_str());
      if (longer == nullptr) throw unusable();
      static_cast<void>(list.release());
      list.reset(longer);
    }
    return list;
  }

  template <class Value>
  void set(CURLoption option, Value value) {
    if (curl_easy_setopt(easy_.get(), option, value) != CURLE_OK) throw unusable();
  }

  void prepare(MetadataRequest const& request, Transfer& transfer, char* said,
               curl_slist* headers) {
    curl_easy_reset(easy_.get());  // keeps the connection
    set(CURLOPT_URL, request.url.c_str());
    set(CURLOPT_HTTPHEADER, headers);
    set(CURLOPT_USERAGENT, "frugal");
    if (request.method != "GET") {
      set(CURLOPT_POSTFIELDSIZE, static_cast<long>(request.body.size()));
      set(CURLOPT_POSTFIELDS, request.body.c_str());
      set(CURLOPT_CUSTOMREQUEST, request.method.c_str());
    }
    set(CURLOPT_PROTOCOLS_STR, "http");
    set(CURLOPT_PROXY, "");
    set(CURLOPT_NOPROXY, "*");
    set(CURLOPT_FOLLOWLOCATION, 0L);
    set(CURLOPT_NOSIGNAL, 1L);
    set(CURLOPT_QUICK_EXIT, 1L);  // do not wait for a name server that does not answer
    set(CURLOPT_CONNECTTIMEOUT_MS, static_cast<long>(connect_timeout.count()));
    std::chrono::milliseconds const timeout = std::clamp<std::chrono::milliseconds>(
        request.timeout, std::chrono::milliseconds(1), std::chrono::hours(24));
    set(CURLOPT_TIMEOUT_MS, static_cast<long>(timeout.count()));
    set(CURLOPT_ERRORBUFFER, said);
    set(CURLOPT_WRITEDATA, &transfer);
    set(CURLOPT_WRITEFUNCTION, &MetadataClient::take_body);
    set(CURLOPT_HEADERDATA, &transfer);
    set(CURLOPT_HEADERFUNCTION, &MetadataClient::take_header);
  }

  CURLcode perform(std::string const& url) {
    struct RemoveWhenDone {
      ~RemoveWhenDone() { curl_multi_remove_handle(multi, easy); }
      CURLM* multi;
      CURL* easy;
    };
    CURLM* const multi = multi_.get();
    // The only libcurl call that another thread may make.
    std::stop_callback const wake(stop_, [multi] { curl_multi_wakeup(multi); });
    if (curl_multi_add_handle(multi, easy_.get()) != CURLM_OK) throw unusable();
    RemoveWhenDone const removed{multi, easy_.get()};
    for (int running = 1; running != 0;) {
      if (stop_.stop_requested()) {
        throw MetadataError({.what = "a request to the metadata service was cancelled",
                             .where = url,
                             .why = "the caller cancelled it",
                             .fix = ""});
      }
      if (curl_multi_perform(multi, &running) != CURLM_OK) throw unusable();
      // Returns when there is work, including libcurl's own timeouts.
      if (running != 0) curl_multi_poll(multi, nullptr, 0, 1000, nullptr);
    }
    int left = 0;
    CURLMsg const* const message = curl_multi_info_read(multi, &left);
    return message == nullptr ? CURLE_RECV_ERROR : message->data.result;
  }

  [[noreturn]] void throw_failure(MetadataRequest const& request, Transfer const& transfer,
                                  CURLcode result, char const* said) {
    long sent = 0;
    curl_easy_getinfo(easy_.get(), CURLINFO_REQUEST_SIZE, &sent);
    set(CURLOPT_ERRORBUFFER, static_cast<char*>(nullptr));
    std::string const why = *said != '\0' ? said : curl_easy_strerror(result);
    if (transfer.too_long) {
      throw MetadataError({.what = "the answer of the metadata service is too long",
                           .where = request.url,
                           .why = "more than " + std::to_string(most_bytes) + " bytes came",
                           .fix = "Check whether something else listens at this address."});
    }
    if (result == CURLE_COULDNT_CONNECT || result == CURLE_COULDNT_RESOLVE_HOST ||
        (result == CURLE_OPERATION_TIMEDOUT && sent == 0)) {
      throw UnreachableError({.what = "there is no metadata service",
                              .where = request.url,
                              .why = why,
                              .fix = "Leave the notices of this cloud out where the machine is "
                                     "not in it, or look at the machine's routes."});
    }
    throw MetadataError({.what = "the metadata service gave no answer",
                         .where = request.url,
                         .why = why,
                         .fix = "Try again; if it stays so, query the service by hand with curl."});
  }

  // Exceptions must not pass through libcurl; a short count ends the transfer.
  static std::size_t take_body(char* data, std::size_t one, std::size_t count,
                               void* into) noexcept {
    Transfer& transfer = *static_cast<Transfer*>(into);
    std::size_t const size = one * count;
    if (size > most_bytes - transfer.answer.body.size()) {
      transfer.too_long = true;
      return 0;
    }
    try {
      transfer.answer.body.append(data, size);
    } catch (...) {
      return 0;
    }
    return size;
  }

  static std::size_t take_header(char* data, std::size_t one, std::size_t count,
                                 void* into) noexcept {
    Transfer& transfer = *static_cast<Transfer*>(into);
    std::size_t const size = one * count;
    if (size > most_bytes - transfer.head) {
      transfer.too_long = true;
      return 0;
    }
    transfer.head += size;
    try {
      transfer.answer.add_header_line({data, size});
    } catch (...) {
      return 0;
    }
    return size;
  }

  std::stop_token stop_;
  std::unique_ptr<CURLM, FreeMulti> multi_;
  std::unique_ptr<CURL, FreeEasy> easy_;
};

}  // namespace frugal
