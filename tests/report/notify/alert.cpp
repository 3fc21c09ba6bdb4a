// SPDX-License-Identifier: Apache-2.0
// torch-free
#include "support/files.hpp"

#include <doctest/doctest.h>

#include <frugal/report/notify/alert.hpp>

#include <atomic>
#include <chrono>
#include <functional>
#include <mutex>
#include <semaphore>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

namespace frugal_test::notify_outbox {

using namespace std::chrono_literals;
using frugal::notify::Alert;
using frugal::notify::Attempt;
using frugal::notify::Delivery;
using frugal::notify::Outbox;
using Pauses = std::vector<std::chrono::milliseconds>;

/// Far longer than a test: whoever reaches it fails by ctest's limit.
constexpr Delivery patient{.at_end = 600s};

/// Outcomes of attempts, in order; the last one is repeated.
struct Endpoint {
  std::vector<Attempt::Result> results;
  std::vector<std::string> texts{};
  Pauses pauses{};

  Outbox::Send send() {
    return [this](Alert const& alert, std::stop_token const&) {
      std::size_t const at = std::min(texts.size(), results.size() - 1);
      texts.push_back(alert.text);
      return Attempt{results[at], results[at] == Attempt::Result::sent ? "" : "no route"};
    };
  }
  Outbox::Pause pause() {
    return
        [this](std::chrono::milliseconds time, std::stop_token const&) { pauses.push_back(time); };
  }
};

TEST_CASE("alerts are sent in their order, and the end waits for them") {
  Endpoint endpoint{{Attempt::Result::sent}};
  Outbox outbox(endpoint.send(), patient);
  for (char const* const text : {"a", "b", "c"}) outbox.post({text});
  auto const status = outbox.finish();
  CHECK(endpoint.texts == std::vector<std::string>{"a", "b", "c"});
  CHECK(status.sent == 3);
  CHECK(status.failed + status.dropped == 0);
  CHECK(outbox.finish().sent == 3);
}

TEST_CASE("a failed attempt is repeated after pauses that double up to the longest") {
  Endpoint endpoint{{Attempt::Result::again}};
  Delivery delivery = patient;
  delivery.attempts = 5;
  delivery.first_wait = 100ms;
  delivery.longest_wait = 300ms;
  Outbox outbox(endpoint.send(), delivery, endpoint.pause());
  outbox.post({"a"});
  auto const status = outbox.finish();
  CHECK(endpoint.texts.size() == 5);
  CHECK(endpoint.pauses == Pauses{100ms, 200ms, 300ms, 300ms});
  CHECK(status.failed == 1);
  CHECK(status.first_failure == "no route");
}

TEST_CASE("a pause is as long as the server asks, up to an hour") {
  Pauses pauses;
  std::vector<std::chrono::milliseconds> asked{1ms, 90s, 24h, 0ms};
  Delivery delivery = patient;
  delivery.attempts = 5;
  delivery.first_wait = 100ms;
  delivery.longest_wait = 300ms;
  Outbox outbox(
      [&](Alert const&, std::stop_token const&) {
        if (asked.empty()) return Attempt{};
        Attempt const attempt{Attempt::Result::again, "HTTP status 429", asked.front()};
        asked.erase(asked.begin());
        return attempt;
      },
      delivery,
      [&](std::chrono::milliseconds time, std::stop_token const&) { pauses.push_back(time); });
  outbox.post({"a"});
  CHECK(outbox.finish().sent == 1);
  CHECK(pauses == Pauses{100ms, 90s, 1h, 300ms});
}

TEST_CASE("an attempt that succeeds ends the repetition, and one that is refused too") {
  Endpoint endpoint{{Attempt::Result::again, Attempt::Result::sent, Attempt::Result::refused}};
  Outbox outbox(endpoint.send(), patient, endpoint.pause());
  outbox.post({"a"});
  outbox.post({"b"});
  auto const status = outbox.finish();
  CHECK(endpoint.texts == std::vector<std::string>{"a", "a", "b"});
  CHECK(status.sent == 1);
  CHECK(status.failed == 1);
}

TEST_CASE("an exception of the sender is a failed attempt") {
  Delivery delivery = patient;
  delivery.attempts = 1;
  Outbox outbox(
      [](Alert const&, std::stop_token const&) -> Attempt {
        throw std::runtime_error("out of memory");
      },
      delivery);
  outbox.post({"a"});
  CHECK(outbox.finish().first_failure == "out of memory");
}

TEST_CASE("posting never waits: what does not fit is dropped and counted") {
  std::binary_semaphore begun(0), go(0);
  Delivery delivery = patient;
  delivery.most_waiting = 2;
  Outbox outbox(
      [&](Alert const&, std::stop_token const&) {
        begun.release();
        go.acquire();
        return Attempt{};
      },
      delivery);
  outbox.post({"being sent"});
  begun.acquire();
  for (int i = 0; i < 5; ++i) outbox.post({"waits"});
  CHECK(outbox.status().dropped == 3);
  go.release();
  for (int i = 0; i < 2; ++i) {
    begun.acquire();
    go.release();
  }
  CHECK(outbox.finish().sent == 3);
}

TEST_CASE("the end of a fit does not wait longer than it may, and what waits is counted") {
  Delivery delivery = patient;
  delivery.at_end = 0ms;
  std::binary_semaphore begun(0);
  Outbox outbox(
      [&](Alert const&, std::stop_token const& stop) {
        begun.release();
        std::mutex mutex;
        std::condition_variable_any stopped;
        std::unique_lock lock(mutex);
        stopped.wait(lock, stop, [] { return false; });
        return Attempt{Attempt::Result::again, "cut off"};
      },
      delivery);
  outbox.post({"hangs"});
  begun.acquire();
  outbox.post({"waits"});
  outbox.post({"waits"});
  auto const status = outbox.finish();
  CHECK(status.failed == 1);
  CHECK(status.dropped == 2);
  CHECK(status.first_failure == "cut off");
}

TEST_CASE("a pause before the next attempt ends with the fit") {
  Delivery delivery = patient;
  delivery.first_wait = 600s;
  delivery.longest_wait = 600s;
  delivery.at_end = 0ms;
  std::binary_semaphore begun(0);
  Outbox outbox(
      [&](Alert const&, std::stop_token const&) {
        begun.release();
        return Attempt{Attempt::Result::again, "no route"};
      },
      delivery);
  outbox.post({"a"});
  begun.acquire();
  CHECK(outbox.finish().failed == 1);
}

TEST_CASE("waiting for ever is waiting, and no overflow of the clock") {
  constexpr auto ever = std::chrono::milliseconds::max();
  Endpoint endpoint{{Attempt::Result::again, Attempt::Result::sent}};
  // The second attempt begins unless the end has been reached meanwhile.
  auto const pause = [](std::chrono::milliseconds, std::stop_token const& stop) {
    for (int i = 0; i < 1000 && !stop.stop_requested(); ++i) std::this_thread::yield();
  };
  Outbox outbox(endpoint.send(), {.first_wait = ever, .longest_wait = ever, .at_end = ever}, pause);
  outbox.post({"a"});
  CHECK(outbox.finish().sent == 1);
}

TEST_CASE("a command gets numbers that a shell can compare") {
  Alert const alert{.text = "x",
                    .fields = {{"spent", 1234567.89},
                               {"share", 0.5},
                               {"limit", 20.0},
                               {"hours", 1e-5},
                               {"less", -3.25}}};
  auto const words = alert.words();
  CHECK(words.at("spent") == "1234567.89");
  CHECK(words.at("share") == "0.5");
  CHECK(words.at("limit") == "20");
  CHECK(words.at("hours") == "0.00001");
  CHECK(words.at("less") == "-3.25");
}

TEST_CASE("an alert is one JSON object, and words for a command") {
  Alert const alert{"Half of \"20\" is spent.",
                    {{"level", 0.5}, {"step", std::uint64_t{7}}, {"unit", std::string("USD")}}};
  CHECK(alert.json() == R"({"text":"Half of \"20\" is spent.","level":0.5,"step":7,"unit":"USD"})");
  auto const words = alert.words();
  CHECK(words.at("text") == alert.text);
  CHECK(words.at("level") == "0.5");
  CHECK(words.at("step") == "7");
  CHECK(words.at("unit") == "USD");
}

}  // namespace frugal_test::notify_outbox

namespace frugal_test::notify_command {

using frugal::NotifyCommand;
using frugal::notify::Alert;
using frugal::notify::Attempt;
using support::TemporaryFolder;

Attempt run(NotifyCommand const& settings, Alert const& alert) {
  settings.require_valid("Budget");
  return NotifyCommand::Sender(settings)(alert, {});
}

TEST_CASE("the alert's fields are arguments of the program, and no shell reads them") {
  TemporaryFolder const folder;
  std::string const file = (folder / "out").string();
  Alert const alert{"$(rm -rf x); done", {{"level", 0.8}}};
  Attempt const attempt = run(
      {.words = {"sh", "-c", R"(printf '%s|%s' "$1" "$2" > "$0")", file, "{text}", "at {level}"}},
      alert);
  CHECK(attempt.result == Attempt::Result::sent);
  CHECK(support::text_of(file) == "$(rm -rf x); done|at 0.8");
}

TEST_CASE("a program that fails, or is not there, gives the reason") {
  Attempt const failed = run({.words = {"sh", "-c", "echo no >&2; exit 3"}}, {"x"});
  CHECK(failed.result == Attempt::Result::again);
  CHECK(failed.why == "exit code 3, and it said \"no\"");
  Attempt const absent = run({.words = {"frugal-no-such-program"}}, {"x"});
  CHECK(absent.why.starts_with("it cannot be started: "));
}

TEST_CASE("a program is killed soon after a stop is requested, and not only when its time is up") {
  std::stop_source stop;
  NotifyCommand const settings{.words = {"sleep", "60"}, .patience = std::chrono::seconds(50)};
  std::jthread const later([&] { stop.request_stop(); });
  auto const began = std::chrono::steady_clock::now();
  Attempt const attempt = NotifyCommand::Sender(settings)({"x"}, stop.get_token());
  CHECK(attempt.result == Attempt::Result::refused);
  CHECK(attempt.why == "the fit ended before the program did");
  CHECK(std::chrono::steady_clock::now() - began < std::chrono::seconds(25));
}

TEST_CASE("settings with which nothing could be run are refused") {
  CHECK_THROWS_AS(run({}, {"x"}), frugal::SettingsError);
  CHECK_THROWS_AS(run({.words = {"true"}, .patience = std::chrono::seconds(0)}, {"x"}),
                  frugal::SettingsError);
}

}  // namespace frugal_test::notify_command
