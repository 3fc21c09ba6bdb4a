// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <frugal/data/loading/loader_settings.hpp>

#include <doctest/doctest.h>

#include <sched.h>

#include <chrono>
#include <string>

namespace frugal_test::data_loader_settings {

using frugal::LoaderSettings;
using frugal::detail::default_workers;

TEST_CASE(
    "by default there are four workers for each GPU, at least four, and never more than cores") {
  CHECK(default_workers(0, 16) == 4);
  CHECK(default_workers(1, 16) == 4);
  CHECK(default_workers(3, 16) == 12);
  CHECK(default_workers(8, 16) == 16);
  CHECK(default_workers(1, 2) == 2);
}

std::string where_refused(LoaderSettings const& settings) {
  try {
    frugal::detail::require_loadable(settings);
  } catch (frugal::SettingsError const& error) {
    return error.fault().where;
  }
  return "nowhere";
}

TEST_CASE("impossible settings are refused by their names") {
  CHECK(where_refused({}) == "nowhere");
  CHECK(where_refused({.workers = 0}) == "nowhere");
  CHECK(where_refused({.workers = -1}) == "LoaderSettings::workers");
  CHECK(where_refused({.depth = 0}) == "LoaderSettings::depth");
  CHECK(where_refused({.patience = std::chrono::seconds(0)}) == "LoaderSettings::patience");
  CHECK(where_refused({.skip_limit = 1.5}) == "LoaderSettings::skip_limit");
  CHECK(where_refused({.skip_limit = -0.1}) == "LoaderSettings::skip_limit");
}

TEST_CASE("cores that the process may not use do not count") {
  cpu_set_t before, one;
  REQUIRE(::sched_getaffinity(0, sizeof before, &before) == 0);
  CPU_ZERO(&one);
  int first = 0;
  while (!CPU_ISSET(first, &before)) ++first;
  CPU_SET(first, &one);
  REQUIRE(::sched_setaffinity(0, sizeof one, &one) == 0);
  CHECK(frugal::detail::cores_here() == 1);
  REQUIRE(::sched_setaffinity(0, sizeof before, &before) == 0);
  CHECK(frugal::detail::cores_here() == CPU_COUNT(&before));
}

}  // namespace frugal_test::data_loader_settings
