// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <doctest/doctest.h>

#include <frugal/report/notify/command.hpp>

#include "support/files.hpp"

#include <chrono>
#include <stop_token>
#include <string>
#include <thread>

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
