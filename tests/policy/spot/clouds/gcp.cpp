// SPDX-License-Identifier: Apache-2.0
// torch-free
// needs: notices
#include <doctest/doctest.h>

#include <frugal/policy/spot/clouds.hpp>

#include "support/loopback_server.hpp"

#include <chrono>
#include <optional>
#include <string>

namespace frugal_test::cluster_gcp {

using namespace std::chrono_literals;
using frugal::Gcp;
using frugal::MetadataClient;
using frugal::MetadataError;
using frugal::Notice;
using support::answer;
using support::HttpRequest;
using support::LoopbackServer;
using support::Reply;

// Google's response headers.
constexpr auto google =
    "Metadata-Flavor: Google\r\nContent-Type: application/text\r\nServer: Metadata Server for "
    "VM\r\n";

/// One test's session, with a server that gives one response to every request.
struct Running {
  explicit Running(Reply reply, std::chrono::milliseconds timeout = support::ages)
      : server([reply](HttpRequest const& request) {
          return request.header("metadata-flavor") == "Google" ? reply : answer(403, "");
        }),
        session({.base = server.base(), .timeout = timeout}, client) {}

  std::string why() {
    try {
      session.poll();
    } catch (MetadataError const& error) {
      return error.fault().why;
    }
    return "it was answered";
  }

  LoopbackServer server;
  MetadataClient client;
  Gcp::Session session;
};

TEST_CASE("FALSE is no notice") {
  Running run(answer(200, "FALSE", google));
  CHECK_FALSE(run.session.poll());
  CHECK(run.server.requests().at(0).method == "GET");
  CHECK(run.server.requests().at(0).target == "/computeMetadata/v1/instance/preempted");
}

TEST_CASE("TRUE is a preempt notice, with a deadline half a minute after first sight") {
  Running run(answer(200, "TRUE", google));
  auto const before = std::chrono::system_clock::now();
  std::optional<Notice> const notice = run.session.poll();
  auto const after = std::chrono::system_clock::now();
  REQUIRE(notice);
  CHECK(notice->kind == Notice::Kind::preempt);
  CHECK(notice->source == "gcp");
  REQUIRE(notice->deadline);
  CHECK(*notice->deadline >= before + 30s);
  CHECK(*notice->deadline <= after + 30s);
}

TEST_CASE("polling again does not move the deadline") {
  Running run(answer(200, "TRUE", google));
  auto const first = run.session.poll()->deadline;
  CHECK(run.session.poll()->deadline == first);
}

TEST_CASE("a line break after the word does not matter") {
  Running run(answer(200, "TRUE\n", google));
  CHECK(run.session.poll());
}

TEST_CASE("a response that is not Google's is an error, whatever it contains") {
  for (std::string const headers :
       {"", "Metadata-Flavor: Amazon\r\n", "Metadata-Flavor: google\r\n", "Metadata-Flavor:\r\n",
        "X-Metadata-Flavor: Google\r\n"}) {
    CAPTURE(headers);
    Running run(answer(200, "TRUE", headers));
    CHECK(run.why() == "the answer (200) does not say Metadata-Flavor: Google");
  }
}

TEST_CASE("a word other than TRUE and FALSE is an error") {
  for (std::string const& body :
       {std::string(), std::string("true"), std::string("TRUEFALSE"), std::string("1"),
        std::string("TRUE\0", 5), std::string("<html>\xff</html>"), std::string("\"TRUE\"")}) {
    CAPTURE(body);
    Running run(answer(200, body, google));
    CHECK(run.why().starts_with("neither TRUE nor FALSE"));
  }
}

TEST_CASE("errors of Google's service are errors: 403, 404, 429, 500, 503") {
  for (int const status : {403, 404, 429, 500, 503}) {
    Running run(answer(status, "", google));
    CHECK(run.why() == "it answered " + std::to_string(status));
  }
}

TEST_CASE("a redirect of Google's address is an error, and is not followed") {
  LoopbackServer elsewhere([](HttpRequest const&) { return answer(200, "TRUE", google); });
  Running run(answer(301, "", google + ("Location: " + elsewhere.base() + "/\r\n")));
  CHECK(run.why() == "it answered 301");
  CHECK(elsewhere.requests().empty());
}

TEST_CASE("a service that hangs costs the timeout, before its response and within it") {
  Running before(support::hang(), 50ms);
  CHECK(before.why().find("timed out") != std::string::npos);
  Running within(
      {.bytes = "HTTP/1.1 200 OK\r\nMetadata-Flavor: Google\r\nContent-Length: 5\r\n\r\nTRUE",
       .then = Reply::Then::hang},
      50ms);
  CHECK(within.why().find("timed out") != std::string::npos);
}

TEST_CASE("half a response is not TRUE") {
  Running run(
      {.bytes = "HTTP/1.1 200 OK\r\nMetadata-Flavor: Google\r\nContent-Length: 5\r\n\r\nTRUE",
       .then = Reply::Then::close});
  CHECK(run.why() != "it was answered");
}

TEST_CASE("an endless response is cut off") {
  Running run({.bytes = "HTTP/1.1 200 OK\r\nMetadata-Flavor: Google\r\n\r\nTRUE",
               .then = Reply::Then::flood});
  CHECK(run.why() == "more than 65536 bytes came");
}

TEST_CASE("a refused connection is a machine that is not in Google Cloud") {
  support::RefusingPort nobody;
  MetadataClient client;
  Gcp::Session session({.base = nobody.base()}, client);
  CHECK_THROWS_AS(session.poll(), frugal::UnreachableError);
}

TEST_CASE("an invalid base of Google is refused at once") {
  MetadataClient client;
  CHECK_THROWS_AS(Gcp::Session({.base = "metadata.google.internal"}, client),
                  frugal::SettingsError);
}

}  // namespace frugal_test::cluster_gcp
