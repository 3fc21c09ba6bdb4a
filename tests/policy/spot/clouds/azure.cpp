// SPDX-License-Identifier: Apache-2.0
// torch-free
// needs: notices
#include <doctest/doctest.h>

#include <frugal/policy/spot/clouds.hpp>

#include "support/loopback_server.hpp"

#include <nlohmann/json.hpp>

#include <chrono>
#include <condition_variable>
#include <future>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

namespace frugal_test::cluster_azure {

using namespace std::chrono_literals;
using frugal::Azure;
using frugal::MetadataClient;
using frugal::MetadataError;
using frugal::Notice;
using support::answer;
using support::HttpRequest;
using support::LoopbackServer;
using support::Reply;

constexpr auto name_target = "/metadata/instance/compute/name?api-version=2021-02-01&format=text";
constexpr auto events_target = "/metadata/scheduledevents?api-version=2020-07-01";

/// An event in Azure's format.
nlohmann::json event(std::string const& type = "Preempt",
                     std::vector<nlohmann::json> const& resources = {"trainer_3"}) {
  return {{"EventId", "C7061BAC-AFDC-4513-B24B-AA5F13A16123"},
          {"EventStatus", "Scheduled"},
          {"EventType", type},
          {"ResourceType", "VirtualMachine"},
          {"Resources", resources},
          {"NotBefore", "Mon, 19 Sep 2016 18:29:47 GMT"},
          {"Description", "Spot eviction."},
          {"EventSource", "Platform"},
          {"DurationInSeconds", -1}};
}

nlohmann::json with(std::string const& key, nlohmann::json const& value) {
  nlohmann::json changed = event();
  changed[key] = value;
  return changed;
}

nlohmann::json without(std::string const& key) {
  nlohmann::json changed = event();
  changed.erase(key);
  return changed;
}

Reply document(std::vector<nlohmann::json> const& events) {
  return answer(200, nlohmann::json{{"DocumentIncarnation", 2}, {"Events", events}}.dump(),
                "Content-Type: application/json; charset=utf-8\r\nServer: Microsoft-IIS/10.0\r\n");
}

/// A machine's metadata service.
struct Machine {
  Reply events = document({});
  Reply name = answer(200, "trainer_3", "Content-Type: text/plain; charset=utf-8\r\n");
  Reply approval = answer(200, "");

  Reply operator()(HttpRequest const& request) const {
    if (request.header("metadata") != "true") {
      return answer(400, "{\"error\":\"Bad request. Required metadata header not specified\"}");
    }
    if (request.target == name_target) return name;
    if (request.target != events_target) return answer(404, "");
    return request.method == "POST" ? approval : events;
  }
};

/// One test's session and server.
struct Running {
  explicit Running(Machine machine, Azure settings = {})
      : server(std::move(machine)), session(pointed(std::move(settings)), client) {}

  Azure pointed(Azure settings) {
    settings.base = server.base();
    if (settings.timeout == Azure{}.timeout) settings.timeout = support::ages;
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

  LoopbackServer server;
  MetadataClient client;
  Azure::Session session;
};

TEST_CASE("no events are no notice") {
  Running run({});
  CHECK_FALSE(run.session.poll());
}

TEST_CASE("a Preempt event of this machine is a preempt notice with its NotBefore") {
  Running run({.events = document({event()})});
  std::optional<Notice> const notice = run.session.poll();
  REQUIRE(notice);
  CHECK(notice->kind == Notice::Kind::preempt);
  CHECK(notice->deadline == std::chrono::system_clock::time_point(1474309787s));
  CHECK(notice->source == "azure");
  CHECK(notice->text ==
        "Azure evicts trainer_3 not before Mon, 19 Sep 2016 18:29:47 GMT: Spot eviction.");
}

TEST_CASE("a Preempt event of another machine is ignored") {
  Running run({.events = document({event("Preempt", {"trainer_4", "trainer_33", "rainer_3"}),
                                   event("Preempt", {})})});
  CHECK_FALSE(run.session.poll());
}

TEST_CASE("this machine among others, and after other events, is found") {
  Running run({.events = document({event("Freeze"), event("Preempt", {"trainer_4"}),
                                   event("Preempt", {"trainer_2", "TRAINER_3"})})});
  CHECK(run.session.poll());
}

TEST_CASE("events of other types are ignored, even of this machine") {
  Running run({.events = document({event("Freeze"), event("Reboot"), event("Redeploy"),
                                   event("Terminate"), event("preempt"), event("")})});
  CHECK_FALSE(run.session.poll());
}

TEST_CASE("the deadline of an event that has begun is its first sight") {
  nlohmann::json started = with("EventStatus", "Started");
  started["NotBefore"] = "";
  Running run({.events = document({started})});
  auto const before = std::chrono::system_clock::now();
  std::optional<Notice> const notice = run.session.poll();
  auto const after = std::chrono::system_clock::now();
  REQUIRE(notice);
  REQUIRE(notice->deadline);
  CHECK(*notice->deadline >= before);
  CHECK(*notice->deadline <= after);
  CHECK(notice->text == "Azure evicts trainer_3 now: Spot eviction.");
  CHECK(run.session.poll()->deadline == notice->deadline);
}

TEST_CASE("an invalid NotBefore loses the deadline but not the notice") {
  for (nlohmann::json const& time :
       {nlohmann::json("Wed, 30 Feb 2022 10:00:00 GMT"), nlohmann::json("soon"), nlohmann::json(""),
        nlohmann::json(5), nlohmann::json(nullptr)}) {
    CAPTURE(time.dump());
    Running run({.events = document({with("NotBefore", time)})});
    std::optional<Notice> const notice = run.session.poll();
    REQUIRE(notice);
    CHECK_FALSE(notice->deadline);
  }
}

TEST_CASE("an event needs only its type and its resources") {
  for (char const* const key : {"EventId", "EventStatus", "NotBefore", "Description"}) {
    CAPTURE(key);
    Running run({.events = document({without(key)})});
    CHECK(run.session.poll());
    Running wrong({.events = document({with(key, nlohmann::json::array({1, 2}))})});
    CHECK(wrong.session.poll());
  }
}

TEST_CASE("the machine's name is requested once") {
  Running run({});
  run.session.poll();
  run.session.poll();
  auto const requests = run.server.requests();
  REQUIRE(requests.size() == 3);
  CHECK(requests[0].target == name_target);
  CHECK(requests[1].target == events_target);
  CHECK(requests[2].target == events_target);
}

TEST_CASE("a given name is not requested") {
  Running run({.events = document({event("Preempt", {"mine"})})}, {.machine = "mine"});
  CHECK(run.session.poll());
  CHECK(run.server.requests().at(0).target == events_target);
}

TEST_CASE("without a name there is an error and no guess") {
  for (Reply const& reply :
       {answer(404, ""), answer(500, ""), answer(200, ""), answer(200, "a\r\nb"),
        answer(200, std::string(300, 'a')), answer(302, "", "Location: /\r\n")}) {
    Running run({.events = document({event()}), .name = reply});
    CHECK_THROWS_AS(run.session.poll(), MetadataError);
    CHECK_THROWS_AS(run.session.poll(), MetadataError);  // and the next poll asks again
    CHECK(run.server.requests().size() == 2);
  }
}

TEST_CASE("the first response may be slow, later ones may not") {
  // The first response comes later than every other timeout of this test.
  int asked = 0;
  Machine const machine;
  std::mutex mutex;
  std::condition_variable never;
  LoopbackServer server([&](HttpRequest const& request) {
    if (++asked > 1) return support::hang();
    std::unique_lock lock(mutex);
    never.wait_for(lock, 300ms, [] { return false; });
    return machine(request);
  });
  std::stop_source stop;
  MetadataClient client(stop.get_token());
  Azure::Session session({.base = server.base(),
                          .machine = "m",
                          .first_timeout = 10 * support::ages,
                          .timeout = 100ms},
                         client);
  CHECK_FALSE(session.poll());
  auto later = std::async(std::launch::async, [&session] { session.poll(); });
  bool const ended = later.wait_for(support::ages) == std::future_status::ready;
  stop.request_stop();
  CHECK(ended);
  CHECK_THROWS_AS(later.get(), MetadataError);
}

TEST_CASE("until events were answered once, every request may be slow") {
  int asked = 0;
  Machine const machine;
  LoopbackServer server([&](HttpRequest const& request) {
    return ++asked == 1 ? answer(500, "") : machine(request);
  });
  MetadataClient client;
  // A timeout of 1 ms would break most answers; the error must not have switched to it.
  Azure::Session session(
      {.base = server.base(), .machine = "m", .first_timeout = support::ages, .timeout = 1ms},
      client);
  CHECK_THROWS_AS(session.poll(), MetadataError);
  CHECK_FALSE(session.poll());
}

TEST_CASE("errors of Azure's service are errors: 400, 403, 404, 410, 429, 500, 503") {
  for (int const status : {400, 403, 404, 410, 429, 500, 503}) {
    Running run({.events = answer(status, "")});
    CHECK(run.why() == "it answered " + std::to_string(status));
  }
}

TEST_CASE("a redirect of Azure's address is an error, and is not followed") {
  LoopbackServer elsewhere([](HttpRequest const&) { return document({event()}); });
  Running run({.events = answer(307, "", "Location: " + elsewhere.base() + "/\r\n")});
  CHECK(run.why() == "it answered 307");
  CHECK(elsewhere.requests().empty());
}

TEST_CASE("a response that is not a document of events is an error") {
  for (std::string const body :
       {"", "{", "[]", "null", "{}", "{\"Events\": null}", "{\"Events\": {}}",
        "{\"Events\": \"Preempt\"}", "{\"events\": []}", "<html></html>", "{\"Events\": [}",
        "{\"Events\": [\"\xff\"]}"}) {
    CAPTURE(body);
    Running run({.events = answer(200, body)});
    CHECK(run.why().starts_with("no JSON object with an array of Events"));
  }
}

TEST_CASE("a malformed event is an error") {
  for (nlohmann::json const& broken :
       {nlohmann::json(5), nlohmann::json("Preempt"), nlohmann::json(nullptr),
        nlohmann::json::array(), nlohmann::json::object(), without("EventType"),
        with("EventType", 7), without("Resources"), with("Resources", "trainer_3"),
        with("Resources", nullptr)}) {
    CAPTURE(broken.dump());
    Running run({.events = document({broken})});
    CHECK(run.why().starts_with("an invalid event"));
  }
}

TEST_CASE("a malformed event does not hide a valid one") {
  Running run({.events = document({5, without("Resources"), event()})});
  CHECK(run.session.poll());
}

TEST_CASE("resources that are not names are not this machine") {
  Running run({.events = document({event("Preempt", {1, nullptr, {{"a", "trainer_3"}}})})});
  CHECK_FALSE(run.session.poll());
}

TEST_CASE("a description is truncated and made printable") {
  Running run({.events = document({with("Description", "\n" + std::string(1000, 'x'))})});
  std::string const text = run.session.poll()->text;
  CHECK(text.size() < 400);
  CHECK(text.find('\n') == std::string::npos);
}

TEST_CASE("a service that hangs costs the timeout, and an endless response is cut off") {
  Running hanging({.events = support::hang()}, {.machine = "m", .first_timeout = 50ms});
  CHECK(hanging.why().find("timed out") != std::string::npos);
  Running endless(
      {.events = {.bytes = "HTTP/1.1 200 OK\r\n\r\n{\"Events\": [", .then = Reply::Then::flood}});
  CHECK(endless.why() == "more than 65536 bytes came");
}

TEST_CASE("nothing is acknowledged without the setting") {
  Running run({.events = document({event()})});
  CHECK(run.session.poll());
  CHECK_FALSE(run.session.acknowledge());
  for (HttpRequest const& request : run.server.requests()) CHECK(request.method == "GET");
}

TEST_CASE("a poll acknowledges nothing, even with the setting") {
  Running run({.events = document({event()})}, {.acknowledge = true});
  CHECK(run.session.poll());
  for (HttpRequest const& request : run.server.requests()) CHECK(request.method == "GET");
}

TEST_CASE("an acknowledgement names the event, in Azure's form") {
  Running run({.events = document({event()})}, {.acknowledge = true});
  CHECK(run.session.poll());
  CHECK(run.session.acknowledge());
  HttpRequest const last = run.server.requests().back();
  CHECK(last.method == "POST");
  CHECK(last.target == events_target);
  CHECK(last.header("metadata") == "true");
  CHECK(nlohmann::json::parse(last.body) ==
        nlohmann::json::parse(
            R"({"StartRequests": [{"EventId": "C7061BAC-AFDC-4513-B24B-AA5F13A16123"}]})"));
}

TEST_CASE("without a notice, or without its id, there is nothing to acknowledge") {
  Running none({}, {.acknowledge = true});
  none.session.poll();
  CHECK_FALSE(none.session.acknowledge());
  Running anonymous({.events = document({without("EventId")})}, {.acknowledge = true});
  CHECK(anonymous.session.poll());
  CHECK_FALSE(anonymous.session.acknowledge());
}

TEST_CASE("an acknowledgement that Azure refuses is an error") {
  Running run({.events = document({event()}), .approval = answer(400, "")}, {.acknowledge = true});
  CHECK(run.session.poll());
  CHECK_THROWS_AS(run.session.acknowledge(), MetadataError);
}

TEST_CASE("a refused connection is a machine that is not in Azure") {
  support::RefusingPort nobody;
  MetadataClient client;
  Azure::Session session({.base = nobody.base()}, client);
  CHECK_THROWS_AS(session.poll(), frugal::UnreachableError);
}

TEST_CASE("an invalid base of Azure is refused at once") {
  MetadataClient client;
  CHECK_THROWS_AS(Azure::Session({.base = "169.254.169.254"}, client), frugal::SettingsError);
}

}  // namespace frugal_test::cluster_azure
