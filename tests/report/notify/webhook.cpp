// SPDX-License-Identifier: Apache-2.0
// torch-free
// needs: notices
#include <doctest/doctest.h>

#include <frugal/report/notify/alert.hpp>
#include <frugal/report/notify/webhook.hpp>

#include "support/loopback_server.hpp"

#include <chrono>
#include <stop_token>
#include <string>
#include <thread>

#include <unistd.h>

namespace frugal_test::notify_webhook {

using namespace support;
using namespace std::chrono_literals;
using frugal::Webhook;
using frugal::notify::Alert;
using frugal::notify::Attempt;

Attempt send(Webhook const& settings, Alert const& alert = {"half is spent", {{"level", 0.5}}}) {
  settings.require_valid("Budget");
  return Webhook::Sender(settings)(alert, {});
}

TEST_CASE("an alert is a POST of one JSON object, with the user's headers") {
  LoopbackServer server([](HttpRequest const&) { return answer(200, "ok"); });
  CHECK(send({.url = server.base() + "/hook?a=1", .headers = {"Authorization: Bearer x"}}).result ==
        Attempt::Result::sent);
  auto const requests = server.requests();
  REQUIRE(requests.size() == 1);
  CHECK(requests[0].method == "POST");
  CHECK(requests[0].target == "/hook?a=1");
  CHECK(requests[0].header("content-type") == "application/json");
  CHECK(requests[0].header("authorization") == "Bearer x");
  CHECK(requests[0].body == R"({"text":"half is spent","level":0.5})");
}

TEST_CASE("a busy server is tried again, and one that refuses is not") {
  int status = 204;
  LoopbackServer server([&](HttpRequest const&) { return answer(status, ""); });
  using Result = Attempt::Result;
  for (auto const& [code, expected] :
       {std::pair(201, Result::sent), std::pair(429, Result::again), std::pair(503, Result::again),
        std::pair(404, Result::refused), std::pair(301, Result::refused)}) {
    status = code;
    Attempt const attempt = send({.url = server.base()});
    CHECK(attempt.result == expected);
    if (expected != Result::sent) CHECK(attempt.why == "HTTP status " + std::to_string(code));
  }
}

TEST_CASE("a server that says when to come again is not asked before") {
  std::string header;
  LoopbackServer server([&](HttpRequest const&) { return answer(429, "", header); });
  auto const wait_for = [&](std::string const& value) {
    header = "Retry-After: " + value + "\r\n";
    return send({.url = server.base()}).wait;
  };
  CHECK(send({.url = server.base()}).wait == 0ms);
  CHECK(wait_for("7") == 7s);
  CHECK(wait_for("0") == 0s);
  CHECK(wait_for("Wed, 21 Oct 2015 07:28:00 GMT") == 0s);  // that is over
  CHECK(wait_for("Fri, 31 Dec 9999 23:59:59 GMT") == 24h);
  CHECK(wait_for("soon") == 0s);
}

TEST_CASE("an endpoint that is gone, hangs or breaks off is a failure that may pass") {
  int port = 0;
  int const nobody = LoopbackServer::bound(port);
  Attempt const gone = send({.url = "http://127.0.0.1:" + std::to_string(port)});
  ::close(nobody);
  CHECK(gone.result == Attempt::Result::again);
  CHECK_FALSE(gone.why.empty());

  LoopbackServer hangs([](HttpRequest const&) { return hang(); });
  CHECK(send({.url = hangs.base(), .timeout = 50ms}).result == Attempt::Result::again);
  LoopbackServer breaks(
      [](HttpRequest const&) { return Reply{.bytes = "HTTP/1.1 2", .then = Reply::Then::close}; });
  CHECK(send({.url = breaks.base()}).result == Attempt::Result::again);
}

TEST_CASE("a request to a server that hangs ends when it is cancelled") {
  LoopbackServer server([](HttpRequest const&) { return hang(); });
  Webhook::Sender const sender({.url = server.base(), .timeout = 600s});
  std::stop_source stop;
  std::thread cancels([&] {
    server.wait_for(1);
    stop.request_stop();
  });
  CHECK(sender(Alert{"x"}, stop.get_token()).result == Attempt::Result::refused);
  cancels.join();
}

TEST_CASE("through an outbox, a server that answers the third attempt has the alert once") {
  int seen = 0;
  LoopbackServer server([&](HttpRequest const&) { return answer(++seen < 3 ? 500 : 200, ""); });
  frugal::notify::Outbox outbox(Webhook::Sender({.url = server.base()}),
                                {.first_wait = 1ms, .at_end = 600s});
  outbox.post({"x"});
  CHECK(outbox.finish().sent == 1);
  CHECK(server.requests().size() == 3);
}

TEST_CASE("settings that cannot be meant are refused, and a name shows no secret") {
  CHECK_THROWS_AS(send({}), frugal::SettingsError);
  CHECK_THROWS_AS(send({.url = "ftp://example.org"}), frugal::SettingsError);
  CHECK_THROWS_AS(send({.url = "http://127.0.0.1", .headers = {"A: b\r\nC: d"}}),
                  frugal::SettingsError);
  CHECK_THROWS_AS(send({.url = "http://127.0.0.1", .timeout = 0ms}), frugal::SettingsError);
  CHECK(Webhook{.url = "https://me:pass@example.org/T0/secret"}.name() ==
        "the webhook at example.org");
  CHECK(Webhook{.url = "https://example.org"}.name() == "the webhook at example.org");
  CHECK(Webhook{.url = "https://example.org?token=s"}.name() == "the webhook at example.org");
}

}  // namespace frugal_test::notify_webhook
