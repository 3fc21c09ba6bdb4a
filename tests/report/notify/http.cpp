// SPDX-License-Identifier: Apache-2.0
// torch-free
// needs: notices
#include <doctest/doctest.h>

#include <frugal/report/notify/http.hpp>

#include "support/loopback_server.hpp"

#include <stop_token>
#include <string>

// Bodies of posts, waits and failures: webhook.cpp.
namespace frugal_test::notify_http {

using namespace support;
using frugal::detail::HttpAnswer;
using frugal::detail::HttpClient;

TEST_CASE(
    "a GET sends no body, names and passwords as basic authentication, and keeps so many bytes") {
  LoopbackServer server([](auto const&) { return answer(200, "0123456789"); });
  HttpAnswer const got = HttpClient()({.method = "GET",
                                       .url = server.base() + "/a?b=c",
                                       .headers = {"X-One: 1"},
                                       .body = "not sent",
                                       .user = "me",
                                       .password = "secret",
                                       .most_bytes = 4},
                                      {});
  CHECK(got.status == 200);
  CHECK(got.body == "0123");
  CHECK(got.failure.empty());
  auto const requests = server.requests();
  REQUIRE(requests.size() == 1);
  CHECK(requests[0].method == "GET");
  CHECK(requests[0].target == "/a?b=c");
  CHECK(requests[0].body.empty());
  CHECK(requests[0].header("content-type").empty());
  CHECK(requests[0].header("x-one") == "1");
  CHECK(requests[0].header("authorization") == "Basic bWU6c2VjcmV0");  // base64 of me:secret
}

TEST_CASE("a POST is JSON unless its headers say otherwise, and no redirect is followed") {
  LoopbackServer server(
      [&](auto const&) { return answer(302, "", "Location: http://127.0.0.1:1/\r\n"); });
  HttpClient const client;
  CHECK(client({.url = server.base(), .body = "{}"}, {}).status == 302);
  CHECK(client({.url = server.base(), .headers = {"content-type: text/plain"}, .body = "x"}, {})
            .status == 302);
  auto const requests = server.requests();
  REQUIRE(requests.size() == 2);
  CHECK(requests[0].header("content-type") == "application/json");
  CHECK(requests[1].header("content-type") == "text/plain");
  CHECK(requests[1].body == "x");
}

TEST_CASE("another protocol than HTTP is a failure, and so is a request that is stopped") {
  HttpClient const client;
  HttpAnswer const file = client({.method = "GET", .url = "file:///etc/hostname"}, {});
  CHECK(file.status == 0);
  CHECK_FALSE(file.failure.empty());
  LoopbackServer server([](auto const&) { return hang(); });
  std::stop_source stop;
  stop.request_stop();
  CHECK(client({.url = server.base()}, stop.get_token()).status == 0);
}

}  // namespace frugal_test::notify_http
