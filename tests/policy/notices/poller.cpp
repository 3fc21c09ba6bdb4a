// SPDX-License-Identifier: Apache-2.0
// torch-free
// needs: notices
#include <doctest/doctest.h>

#include <frugal/policy/notices.hpp>
#include <frugal/policy/spot/clouds.hpp>

#include "support/files.hpp"
#include "support/loopback_server.hpp"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace frugal_test::cluster_notice_poller {

using namespace std::chrono_literals;
using frugal::MetadataClient;
using frugal::Notice;
using frugal::NoticePoller;
using frugal::NoticePolling;
using frugal::NoticeStatus;
using support::ages;
using support::answer;
using support::HttpRequest;
using support::LoopbackServer;

/// Shared by a scripted provider and its test.
struct Stage {
  std::mutex mutex;
  std::condition_variable changed;
  int polls = 0;  // begun

  /// Waits until that many polls have begun: then all earlier ones are in the status.
  bool wait_for(int begun) {
    std::unique_lock lock(mutex);
    return changed.wait_for(lock, ages, [&] { return polls >= begun; });
  }
};

/// A provider whose result is a function of the poll's number (from 1).
struct Scripted {
  static constexpr std::string_view name = "scripted";
  static constexpr std::chrono::milliseconds interval{1};

  std::function<std::optional<Notice>(int)> script;
  std::shared_ptr<Stage> stage = std::make_shared<Stage>();

  class Session;
};

class Scripted::Session {
 public:
  Session(Scripted const& settings, MetadataClient&) : settings_(settings) {}

  std::optional<Notice> poll() {
    int turn = 0;
    {
      std::lock_guard const lock(settings_.stage->mutex);
      turn = ++settings_.stage->polls;
      settings_.stage->changed.notify_all();
    }
    return settings_.script(turn);
  }

 private:
  Scripted settings_;
};

Notice notice(Notice::Kind kind, std::string text) {
  return {.kind = kind, .source = "scripted", .text = std::move(text)};
}

NoticePolling quick() { return {.longest_pause = 1ms, .rare_pause = 1ms}; }

/// A Google metadata service that answers with these words and then repeats the last one.
LoopbackServer::Handler words(std::vector<std::string> script) {
  return [script, turn = std::size_t{0}](HttpRequest const&) mutable {
    std::string const& word = script[std::min(turn++, script.size() - 1)];
    return answer(200, word, "Metadata-Flavor: Google\r\n");
  };
}

TEST_CASE("without a notice nothing is pending, however often it polls") {
  Scripted quiet{[](int) { return std::optional<Notice>(); }};
  NoticePoller poller(quiet);
  REQUIRE(quiet.stage->wait_for(20));
  CHECK_FALSE(poller.pending());
  CHECK_FALSE(poller.advised());
  CHECK_FALSE(poller.seen());
  NoticeStatus const status = poller.status();
  CHECK(status.polls >= 19);
  CHECK(status.failures == 0);
  CHECK(status.answered);
  CHECK(status.last_error.empty());
}

TEST_CASE("a preempt notice is pending, with the cloud's text") {
  LoopbackServer server(words({"FALSE", "FALSE", "TRUE"}));
  NoticePoller<frugal::Gcp> poller({.base = server.base()}, {.interval = 1ms});
  REQUIRE(poller.wait(ages));
  CHECK(poller.pending());
  CHECK(poller.advised());
  REQUIRE(poller.seen());
  CHECK(poller.seen()->source == "gcp");
  CHECK(poller.seen()->deadline);
}

TEST_CASE("after a preempt notice polling ends") {
  Scripted once{[](int turn) {
    return turn < 3 ? std::nullopt : std::optional(notice(Notice::Kind::preempt, "now"));
  }};
  {
    NoticePoller poller(once);
    REQUIRE(poller.wait(ages));
  }
  CHECK(once.stage->polls == 3);
}

TEST_CASE("a hint is advised, not pending, and polling continues until the notice") {
  Scripted hinting{[](int turn) {
    if (turn < 5) return std::optional(notice(Notice::Kind::rebalance, std::to_string(turn)));
    return turn < 8 ? std::nullopt : std::optional(notice(Notice::Kind::preempt, "now"));
  }};
  std::promise<void> go;
  std::shared_future<void> const gone(go.get_future());
  auto const inner = hinting.script;
  hinting.script = [inner, gone](int turn) {
    if (turn == 6) gone.wait();
    return inner(turn);
  };
  NoticePoller poller(hinting);
  REQUIRE(hinting.stage->wait_for(6));
  CHECK(poller.advised());
  CHECK_FALSE(poller.pending());
  CHECK(poller.seen()->text == "4");  // the newest hint, kept through polls without one
  go.set_value();
  REQUIRE(poller.wait(ages));
  CHECK(poller.seen()->text == "now");
}

TEST_CASE("failures are counted, the last text is kept, and an answer ends the row") {
  std::promise<void> go;
  std::shared_future<void> const gone(go.get_future());
  Scripted failing{[gone](int turn) -> std::optional<Notice> {
    if (turn == 4) gone.wait();
    if (turn < 4) throw std::runtime_error("failure " + std::to_string(turn));
    return {};
  }};
  NoticePoller poller(failing, quick());
  REQUIRE(failing.stage->wait_for(4));
  NoticeStatus status = poller.status();
  CHECK(status.polls == 3);
  CHECK(status.failures == 3);
  CHECK(status.failures_in_row == 3);
  CHECK_FALSE(status.answered);
  CHECK(status.last_error == "failure 3");
  go.set_value();
  REQUIRE(failing.stage->wait_for(5));
  status = poller.status();
  CHECK(status.failures == 3);
  CHECK(status.failures_in_row == 0);
  CHECK(status.answered);
  CHECK(status.last_error == "failure 3");
}

TEST_CASE("a thrown value that is not an exception is a failure like any other") {
  Scripted odd{[](int turn) -> std::optional<Notice> {
    if (turn < 3) throw 5;
    return notice(Notice::Kind::preempt, "now");
  }};
  NoticePoller poller(odd, quick());
  REQUIRE(poller.wait(ages));
  CHECK(poller.status().failures == 2);
  CHECK(poller.status().last_error == "a value that is not a std::exception was thrown");
}

TEST_CASE("a notice is found after failures") {
  Scripted mending{[](int turn) -> std::optional<Notice> {
    if (turn < 10) throw std::runtime_error("not yet");
    return notice(Notice::Kind::preempt, "now");
  }};
  NoticePoller poller(mending, quick());
  CHECK(poller.wait(ages));
}

TEST_CASE("one warning is given, after the set number of failures, and never a second") {
  Scripted failing{[](int turn) -> std::optional<Notice> {
    if (turn == 6) return {};
    throw std::runtime_error("failure " + std::to_string(turn));
  }};
  std::mutex mutex;
  std::vector<std::string> said;
  NoticePolling polling = quick();
  polling.warn_after = 4;
  polling.warn = [&](std::string const& text) {
    std::lock_guard const lock(mutex);
    said.push_back(text);
  };
  NoticePoller poller(failing, polling);
  REQUIRE(failing.stage->wait_for(20));
  std::lock_guard const lock(mutex);
  REQUIRE(said.size() == 1);
  CHECK(said[0] ==
        "frugal: no notices from scripted since 4 polls; this machine is probably not in that "
        "cloud. The last error was: failure 4");
  CHECK(poller.status().warning == said[0]);
}

TEST_CASE("a warning about a service that has answered does not doubt the cloud") {
  Scripted ending{[](int turn) -> std::optional<Notice> {
    if (turn == 1) return {};
    throw std::runtime_error("gone");
  }};
  NoticePoller poller(ending, quick());
  REQUIRE(ending.stage->wait_for(6));
  CHECK(poller.status().warning ==
        "frugal: no notices from scripted since 3 polls. The last error was: gone");
}

TEST_CASE("a warning that throws is dropped") {
  Scripted failing{[](int) -> std::optional<Notice> { throw std::runtime_error("no"); }};
  NoticePolling polling = quick();
  polling.warn = [](std::string const&) { throw std::runtime_error("the log is full"); };
  NoticePoller poller(failing, polling);
  CHECK(failing.stage->wait_for(6));
}

TEST_CASE("a machine that is not in the cloud is warned about once, and keeps running") {
  support::RefusingPort nobody;
  std::promise<std::string> warned;
  NoticePolling polling = quick();
  polling.interval = 1ms;
  polling.warn = [&](std::string const& text) { warned.set_value(text); };
  NoticePoller<frugal::Aws> poller({.base = nobody.base()}, polling);
  auto text = warned.get_future();
  REQUIRE(text.wait_for(ages) == std::future_status::ready);
  CHECK(text.get().starts_with(
      "frugal: no notices from aws since 3 polls; this machine is probably not in that cloud. The "
      "last error was: frugal: there is no metadata service (" +
      nobody.base() + "/latest/api/token)"));
  CHECK_FALSE(poller.pending());
}

TEST_CASE("pauses double with every failure, to 10 s if the service has answered before") {
  NoticePolling const polling{.interval = 1s};
  auto const after = [&](std::uint64_t failures) {
    return frugal::detail::pause_after(polling, {.failures_in_row = failures, .answered = true});
  };
  CHECK(after(0) == 1s);
  CHECK(after(1) == 2s);
  CHECK(after(2) == 4s);
  CHECK(after(3) == 8s);
  CHECK(after(4) == 10s);
  CHECK(after(1000000000) == 10s);
}

TEST_CASE("pauses grow to a minute if the service has never answered") {
  NoticePolling const polling{.interval = 5s};
  auto const after = [&](std::uint64_t failures) {
    return frugal::detail::pause_after(polling, {.failures_in_row = failures});
  };
  CHECK(after(3) == 40s);
  CHECK(after(4) == 60s);
  CHECK(after(1000000000) == 60s);
}

TEST_CASE("no failure makes polls more frequent than their interval") {
  NoticePolling const polling{.interval = 2min};
  CHECK(frugal::detail::pause_after(polling, {.failures_in_row = 3}) == 2min);
}

TEST_CASE("the destructor does not wait for the next poll") {
  Scripted quiet{[](int) { return std::optional<Notice>(); }};
  auto done = std::async(std::launch::async, [&] {
    NoticePoller poller(quiet, {.interval = 1h});
    return quiet.stage->wait_for(1);
  });
  REQUIRE(done.wait_for(ages) == std::future_status::ready);
  CHECK(done.get());
  CHECK(quiet.stage->polls == 1);
}

TEST_CASE("the destructor ends a request to a service that hangs") {
  LoopbackServer server([](HttpRequest const&) { return support::hang(); });
  auto done = std::async(std::launch::async, [&] {
    NoticePoller<frugal::Azure> poller({.base = server.base(), .machine = "m"});
    return server.wait_for(1);  // Azure's first response may take two minutes; this one has not
                                // come
  });
  REQUIRE(done.wait_for(ages) == std::future_status::ready);
  CHECK(done.get());
}

TEST_CASE("the destructor does not wait for a service that responds without end") {
  LoopbackServer server([](HttpRequest const&) {
    return support::Reply{.bytes = "HTTP/1.1 200 OK\r\n\r\n", .then = support::Reply::Then::flood};
  });
  NoticePoller<frugal::Gcp> poller({.base = server.base()}, {.interval = 1ms});
  CHECK(server.wait_for(3));
}

TEST_CASE("training is not delayed while the service hangs") {
  LoopbackServer server([](HttpRequest const&) { return support::hang(); });
  NoticePoller<frugal::Azure> poller({.base = server.base(), .machine = "m"});
  REQUIRE(server.wait_for(1));
  auto steps = std::async(std::launch::async, [&poller] {
    bool any = false;
    for (int step = 0; step < 100000; ++step) {
      any = any || poller.pending() || poller.advised();
      if (step % 1000 == 0) any = any || poller.seen() || poller.status().polls > 0;
    }
    return any;
  });
  REQUIRE(steps.wait_for(ages) == std::future_status::ready);
  CHECK_FALSE(steps.get());
}

TEST_CASE("signals of the program do not reach the polling thread") {
  sigset_t mask;
  sigemptyset(&mask);
  Scripted looking{[&mask](int) {
    pthread_sigmask(SIG_BLOCK, nullptr, &mask);
    return std::optional(notice(Notice::Kind::preempt, "now"));
  }};
  {
    NoticePoller poller(looking);
    REQUIRE(poller.wait(ages));
  }
  CHECK(sigismember(&mask, SIGTERM) == 1);
  CHECK(sigismember(&mask, SIGUSR1) == 1);
}

TEST_CASE("an acknowledgement is sent after its request, and not before") {
  constexpr auto events =
      R"({"Events": [{"EventId": "7", "EventType": "Preempt", "Resources": ["m"]}]})";
  LoopbackServer server([](HttpRequest const&) { return answer(200, events); });
  NoticePoller<frugal::Azure> poller(
      {.base = server.base(), .machine = "m", .acknowledge = true, .timeout = ages});
  REQUIRE(poller.wait(ages));
  CHECK(server.requests().size() == 1);
  CHECK(poller.acknowledge(ages));
  auto const requests = server.requests();
  REQUIRE(requests.size() == 2);
  CHECK(requests[1].method == "POST");
  CHECK(requests[1].body == R"({"StartRequests":[{"EventId":"7"}]})");
  CHECK(poller.acknowledge(ages));  // once is enough
  CHECK(server.requests().size() == 2);
}

TEST_CASE("without the setting nothing is acknowledged, even on request") {
  constexpr auto events =
      R"({"Events": [{"EventId": "7", "EventType": "Preempt", "Resources": ["m"]}]})";
  LoopbackServer server([](HttpRequest const&) { return answer(200, events); });
  NoticePoller<frugal::Azure> poller({.base = server.base(), .machine = "m", .timeout = ages});
  REQUIRE(poller.wait(ages));
  CHECK_FALSE(poller.acknowledge(ages));
  CHECK(server.requests().size() == 1);
}

TEST_CASE(
    "without a notice, and in clouds without acknowledgements, there is nothing to acknowledge") {
  LoopbackServer azure([](HttpRequest const&) { return answer(200, R"({"Events": []})"); });
  NoticePoller<frugal::Azure> quiet(
      {.base = azure.base(), .machine = "m", .acknowledge = true, .timeout = ages});
  CHECK_FALSE(quiet.acknowledge(ages));
  LoopbackServer google(words({"TRUE"}));
  NoticePoller<frugal::Gcp> poller({.base = google.base()}, {.interval = 1ms});
  REQUIRE(poller.wait(ages));
  CHECK_FALSE(poller.acknowledge(ages));
}

TEST_CASE("an acknowledgement that fails is reported and harms nothing") {
  constexpr auto events =
      R"({"Events": [{"EventId": "7", "EventType": "Preempt", "Resources": ["m"]}]})";
  LoopbackServer server([](HttpRequest const& request) {
    return request.method == "POST" ? answer(500, "") : answer(200, events);
  });
  NoticePoller<frugal::Azure> poller(
      {.base = server.base(), .machine = "m", .acknowledge = true, .timeout = ages});
  REQUIRE(poller.wait(ages));
  CHECK_FALSE(poller.acknowledge(ages));
  CHECK(poller.status().last_error.find("it answered 500") != std::string::npos);
  CHECK(poller.pending());
}

TEST_CASE("an acknowledgement to a service that hangs waits no longer than its timeout") {
  constexpr auto events =
      R"({"Events": [{"EventId": "7", "EventType": "Preempt", "Resources": ["m"]}]})";
  LoopbackServer server([](HttpRequest const& request) {
    return request.method == "POST" ? support::hang() : answer(200, events);
  });
  auto done = std::async(std::launch::async, [&] {
    NoticePoller<frugal::Azure> poller(
        {.base = server.base(), .machine = "m", .acknowledge = true, .timeout = 10 * ages});
    return poller.wait(ages) && !poller.acknowledge(50ms);
  });
  REQUIRE(done.wait_for(ages) == std::future_status::ready);
  CHECK(done.get());
}

TEST_CASE("invalid pauses are refused") {
  Scripted quiet{[](int) { return std::optional<Notice>(); }};
  using Poller = NoticePoller<Scripted>;
  CHECK_THROWS_AS(Poller(quiet, {.interval = 0ms}), frugal::SettingsError);
  CHECK_THROWS_AS(Poller(quiet, {.interval = 25h}), frugal::SettingsError);
  CHECK_THROWS_AS(Poller(quiet, {.longest_pause = -1ms}), frugal::SettingsError);
  CHECK_THROWS_AS(Poller(quiet, {.rare_pause = 0ms}), frugal::SettingsError);
  CHECK_THROWS_AS(Poller(quiet, {.warn_after = 0}), frugal::SettingsError);
  CHECK(quiet.stage->polls == 0);
}

TEST_CASE("settings that the cloud refuses are refused by the constructor, and start no thread") {
  CHECK_THROWS_AS(NoticePoller<frugal::Gcp>({.base = "metadata"}), frugal::SettingsError);
}

TEST_CASE("pollers of several clouds run side by side") {
  LoopbackServer google(words({"FALSE", "TRUE"}));
  LoopbackServer other(words({"FALSE"}));
  NoticePoller<frugal::Gcp> first({.base = google.base()}, {.interval = 1ms});
  NoticePoller<frugal::Gcp> second({.base = other.base()}, {.interval = 1ms});
  CHECK(first.wait(ages));
  CHECK_FALSE(second.pending());
}

TEST_CASE("two hundred pollers leak no descriptor and no thread") {
  auto const run = [](int times) {
    LoopbackServer server(words({"FALSE"}));
    for (int i = 0; i < times; ++i) NoticePoller<frugal::Gcp>({.base = server.base()});
  };
  run(1);
  std::size_t const descriptors = support::entries("/proc/self/fd");
  std::size_t const threads = support::entries("/proc/self/task");
  run(200);
  CHECK(support::entries("/proc/self/fd") == descriptors);
  // A joined thread may remain visible for a moment.
  CHECK(support::entries("/proc/self/task") < threads + 100);
}

}  // namespace frugal_test::cluster_notice_poller
