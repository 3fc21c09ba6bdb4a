// SPDX-License-Identifier: Apache-2.0
// torch-free
// needs: notices
#include <doctest/doctest.h>

#include <frugal/policy/spot/clouds.hpp>

#include "support/loopback_server.hpp"

#include <chrono>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace frugal_test::cluster_aws {

using namespace std::chrono_literals;
using frugal::Aws;
using frugal::MetadataClient;
using frugal::MetadataError;
using frugal::Notice;
using support::answer;
using support::HttpRequest;
using support::LoopbackServer;
using support::Reply;

constexpr auto token_path = "/latest/api/token";
constexpr auto action_path = "/latest/meta-data/spot/instance-action";
constexpr auto rebalance_path = "/latest/meta-data/events/recommendations/rebalance";

// AWS's response when there is no notice.
Reply not_found() {
  return answer(404,
                "<?xml version=\"1.0\" encoding=\"iso-8859-1\"?>\n<html><head><title>404 - Not "
                "Found</title></head><body><h1>404 - Not Found</h1></body></html>\n",
                "Content-Type: text/html\r\nServer: EC2ws\r\n");
}

/// An instance's metadata service with tokens; paths that are not set return 404.
struct Instance {
  std::optional<Reply> action = {};
  std::optional<Reply> rebalance = {};
  std::optional<Reply> token = {};  // instead of a valid one
  std::string granted = "21600";    // seconds
  int forgets_after = 1000000;      // requests with one token before it answers 401

  Reply operator()(HttpRequest const& request) {
    if (request.target == token_path) {
      if (request.method != "PUT") return answer(405, "");
      if (request.header("x-aws-ec2-metadata-token-ttl-seconds").empty()) return answer(400, "");
      if (token) return *token;
      used = 0;
      current = "AQAEAK_token_" + std::to_string(++tokens) + "==";
      return answer(200, current,
                    "X-Aws-Ec2-Metadata-Token-Ttl-Seconds: " + granted + "\r\nServer: EC2ws\r\n");
    }
    if (request.method != "GET") return answer(405, "");
    if (request.header("x-aws-ec2-metadata-token") != current || ++used > forgets_after) {
      return answer(401, "<html><h1>401 - Unauthorized</h1></html>");
    }
    if (request.target == action_path) return action ? *action : not_found();
    if (request.target == rebalance_path) return rebalance ? *rebalance : not_found();
    return not_found();
  }

  int tokens = 0;
  int used = 0;
  std::string current = "nobody has this one";
};

/// One test's session and server.
struct Running {
  explicit Running(Instance instance, Aws settings = {})
      : server(std::move(instance)), session(pointed(std::move(settings)), client) {}

  Aws pointed(Aws settings) {
    settings.base = server.base();
    if (settings.timeout == Aws{}.timeout) settings.timeout = support::ages;
    return settings;
  }

  std::string why() {
    try {
      session.poll();
    } catch (MetadataError const& error) {
      return error.fault().why;
    }
    return "it was answered";
  }

  int count(std::string const& target) {
    int found = 0;
    for (HttpRequest const& request : server.requests()) found += request.target == target;
    return found;
  }

  LoopbackServer server;
  MetadataClient client;
  Aws::Session session;
};

TEST_CASE("an instance that is not interrupted has no notice") {
  Running run({});
  CHECK_FALSE(run.session.poll());
}

TEST_CASE("AWS's own example of a termination is a preempt notice with its time") {
  Running run(
      {.action = answer(200, "{\"action\": \"terminate\", \"time\": \"2017-09-18T08:22:00Z\"}",
                        "Content-Type: application/json\r\n")});
  std::optional<Notice> const notice = run.session.poll();
  REQUIRE(notice);
  CHECK(notice->kind == Notice::Kind::preempt);
  CHECK(notice->deadline == std::chrono::system_clock::time_point(1505722920s));
  CHECK(notice->source == "aws");
  CHECK(notice->text == "AWS will terminate this instance at 2017-09-18T08:22:00Z");
}

TEST_CASE("stop and hibernate are preempt notices too") {
  for (std::string const action : {"stop", "hibernate"}) {
    Running run({.action = answer(
                     200, "{\"action\":\"" + action + "\",\"time\":\"2017-09-18T08:22:00Z\"}")});
    std::optional<Notice> const notice = run.session.poll();
    REQUIRE(notice);
    CHECK(notice->kind == Notice::Kind::preempt);
    CHECK(notice->text.find(action) != std::string::npos);
  }
}

TEST_CASE("a rebalance recommendation is a hint without a deadline") {
  Running run({.rebalance = answer(200, "{\"noticeTime\":\"2020-10-27T08:22:00Z\"}")});
  std::optional<Notice> const notice = run.session.poll();
  REQUIRE(notice);
  CHECK(notice->kind == Notice::Kind::rebalance);
  CHECK_FALSE(notice->deadline);
  CHECK(notice->text == "AWS recommends since 2020-10-27T08:22:00Z to leave this instance");
}

TEST_CASE("a termination outweighs a recommendation that comes with it") {
  Running run({.action = answer(200, "{\"action\":\"stop\",\"time\":\"2017-09-18T08:22:00Z\"}"),
               .rebalance = answer(200, "{\"noticeTime\":\"2020-10-27T08:22:00Z\"}")});
  CHECK(run.session.poll()->kind == Notice::Kind::preempt);
}

TEST_CASE("without rebalance there is no request for recommendations") {
  Running run({.rebalance = answer(200, "{\"noticeTime\":\"2020-10-27T08:22:00Z\"}")},
              {.rebalance = false});
  CHECK_FALSE(run.session.poll());
  CHECK(run.count(rebalance_path) == 0);
}

TEST_CASE("one token serves many polls") {
  Running run({});
  for (int i = 0; i < 5; ++i) CHECK_FALSE(run.session.poll());
  CHECK(run.count(token_path) == 1);
  CHECK(run.server.requests().at(0).header("x-aws-ec2-metadata-token-ttl-seconds") == "21600");
}

TEST_CASE("a token granted for no time is renewed for every request") {
  Running run({.granted = "0"});
  CHECK_FALSE(run.session.poll());
  CHECK_FALSE(run.session.poll());
  CHECK(run.count(token_path) == 4);
}

TEST_CASE("a token that expires early is renewed on 401, and the request repeated") {
  Running run({.action = answer(200, "{\"action\":\"stop\",\"time\":\"2017-09-18T08:22:00Z\"}"),
               .forgets_after = 1});
  CHECK(run.session.poll());
  CHECK(run.session.poll());
  CHECK(run.count(token_path) == 2);
  CHECK(run.count(action_path) == 3);  // answered, 401, answered
}

TEST_CASE("an invalid lifetime counts as the requested one") {
  for (std::string const granted : {"soon", "-1", "99999999999999999999", "60s", "999999999999"}) {
    Running run({.granted = granted});
    CHECK_FALSE(run.session.poll());
    CHECK_FALSE(run.session.poll());
    CHECK(run.count(token_path) == 1);
  }
}

TEST_CASE("401 even with a new token is an error and no endless loop") {
  Running run({.forgets_after = 0});
  CHECK(run.why() == "it answered 401 \"<html><h1>401 - Unauthorized</h1></html>\"");
  CHECK(run.count(token_path) == 2);
}

TEST_CASE("a disabled metadata service (403) is an error that says what to enable") {
  Running run({.token = answer(403, "")});
  try {
    run.session.poll();
    FAIL("it was answered");
  } catch (MetadataError const& error) {
    CHECK(std::string(error.what()) ==
          "frugal: the metadata service refused (" + run.server.base() +
              "/latest/api/token): it answered 403. Turn the instance's metadata service on "
              "(HttpEndpoint).");
  }
}

TEST_CASE("a service without tokens (404) is not AWS") {
  Running run({.token = answer(404, "nothing here")});
  CHECK(run.why() == "it answered 404 \"nothing here\"");
}

TEST_CASE("errors of AWS's service are errors: 400, 403, 429, 500, 503") {
  for (int const status : {400, 403, 429, 500, 503}) {
    Running run({.action = answer(status, "")});
    CHECK(run.why() == "it answered " + std::to_string(status));
  }
}

TEST_CASE("a redirect of AWS's address is an error, and is not followed") {
  LoopbackServer elsewhere([](HttpRequest const&) { return answer(200, "{}"); });
  Running run({.action = answer(302, "", "Location: " + elsewhere.base() + "/\r\n")});
  CHECK(run.why() == "it answered 302");
  CHECK(elsewhere.requests().empty());
}

TEST_CASE("a response that is not a JSON object is an error and no notice") {
  for (std::string const body : {"", "{", "{\"action\":", "[]", "null", "5", "\"terminate\"",
                                 "terminate", "<html>Log in to the hotel's network</html>",
                                 "{\"action\":\"terminate\"} {}", "{\"action\":\"\xff\xfe\"}"}) {
    CAPTURE(body);
    Running run({.action = answer(200, body)});
    CHECK(run.why().starts_with("no JSON object"));
  }
}

TEST_CASE("brackets nested as deep as they fit are an error and no crash") {
  Running run({.action = answer(200, std::string(65536, '['))});
  CHECK(run.why().starts_with("no JSON object"));
  Running closed({.action = answer(200, std::string(32768, '[') + std::string(32768, ']'))});
  CHECK(closed.why().starts_with("no JSON object"));
}

TEST_CASE("an action that is missing or of the wrong type is an error") {
  for (std::string const body : {"{}", "{\"action\": 5}", "{\"action\": null}",
                                 "{\"action\": [\"terminate\"]}", "{\"Action\": \"terminate\"}"}) {
    CAPTURE(body);
    Running run({.action = answer(200, body)});
    CHECK(run.why() == "there is no text under \"action\"");
  }
}

TEST_CASE("an action that AWS does not document is an error that names it") {
  Running run({.action = answer(200, "{\"action\": \"dance\\n\"}")});
  CHECK(run.why() == "the action is \"dance?\"");
}

TEST_CASE("an invalid time loses the deadline but not the notice") {
  for (std::string const time : {"\"2017-02-30T08:22:00Z\"", "\"soon\"", "\"\"", "5", "null"}) {
    CAPTURE(time);
    Running run({.action = answer(200, "{\"action\":\"terminate\",\"time\":" + time + "}")});
    std::optional<Notice> const notice = run.session.poll();
    REQUIRE(notice);
    CHECK_FALSE(notice->deadline);
  }
  Running run({.action = answer(200, "{\"action\":\"terminate\"}")});
  CHECK(run.session.poll()->text == "AWS will terminate this instance at an unknown time");
}

TEST_CASE("a malformed recommendation is an error") {
  for (std::string const body : {"", "{}", "{\"noticeTime\": 5}", "[]"}) {
    CAPTURE(body);
    Running run({.rebalance = answer(200, body)});
    CHECK_THROWS_AS(run.session.poll(), MetadataError);
  }
}

TEST_CASE("a token that cannot be a header is an error: empty, with line breaks, a whole page") {
  for (std::string const& token :
       {std::string(), std::string("a\r\nX: y"), std::string("a\0b", 3), std::string(5000, 'a')}) {
    Running run({.token = answer(200, token)});
    CHECK(run.why().starts_with("no token"));
    CHECK(run.count(action_path) == 0);
  }
}

TEST_CASE("a service that hangs at the token, or at the action, costs the timeout") {
  Running token({.token = support::hang()}, {.timeout = 50ms});
  CHECK(token.why().find("timed out") != std::string::npos);
  Running action({.action = support::hang()}, {.timeout = 500ms});
  CHECK(action.why().find("timed out") != std::string::npos);
}

TEST_CASE("an endless token is cut off") {
  Running run({.token = Reply{.bytes = "HTTP/1.1 200 OK\r\n\r\n", .then = Reply::Then::flood}});
  CHECK(run.why() == "more than 65536 bytes came");
}

TEST_CASE("after errors of every kind a session finds the notice") {
  int turn = 0;
  Instance good{.action = answer(200, "{\"action\":\"stop\",\"time\":\"2017-09-18T08:22:00Z\"}")};
  LoopbackServer server([&](HttpRequest const& request) -> Reply {
    switch (turn++) {
      case 0:
        return {.bytes = "", .then = Reply::Then::close};
      case 1:
        return answer(500, "");
      case 2:
        return answer(200, "\x01");
      default:
        return good(request);
    }
  });
  MetadataClient client;
  Aws::Session session({.base = server.base()}, client);
  for (int i = 0; i < 3; ++i) CHECK_THROWS_AS(session.poll(), MetadataError);
  CHECK(session.poll());
}

TEST_CASE("a refused connection is a machine that is not in AWS") {
  support::RefusingPort nobody;
  MetadataClient client;
  Aws::Session session({.base = nobody.base()}, client);
  CHECK_THROWS_AS(session.poll(), frugal::UnreachableError);
}

TEST_CASE("invalid settings are refused at once") {
  MetadataClient client;
  CHECK_THROWS_AS(Aws::Session({.base = "https://169.254.169.254"}, client), frugal::SettingsError);
  CHECK_THROWS_AS(Aws::Session({.token_lifetime = 0s}, client), frugal::SettingsError);
  CHECK_THROWS_AS(Aws::Session({.token_lifetime = 21601s}, client), frugal::SettingsError);
}

}  // namespace frugal_test::cluster_aws
