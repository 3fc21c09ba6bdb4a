// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <frugal/core/state/state_dict.hpp>
#include <frugal/core/state/state_reader.hpp>
#include <frugal/core/state/state_writer.hpp>
#include <frugal/policy/rollback/bad_windows.hpp>

namespace frugal_test::policy_rollback_bad_windows {

using frugal::LossError;
using frugal::detail::BadWindows;

TEST_CASE("a window is known by its epoch and position") {
  BadWindows bad;
  bad.add(1, 8);
  CHECK(bad.has(1, 8));
  CHECK_FALSE(bad.has(0, 8));
  CHECK_FALSE(bad.has(1, 4));
}

TEST_CASE("a search ends at its step, and the suspect is what is left") {
  BadWindows bad;
  bad.search({.epoch = 0, .position = 8, .step = 2}, 2);
  CHECK(bad.has(0, 8));
  bad.cleared(1);
  CHECK(bad.searching());
  bad.cleared(2);
  CHECK_FALSE(bad.searching());
  CHECK(bad.has(0, 8));
}

TEST_CASE("if another window is found, the suspect is innocent") {
  BadWindows bad;
  bad.search({.epoch = 0, .position = 8, .step = 2}, 2);
  bad.found({.epoch = 0, .position = 4, .step = 1});
  CHECK_FALSE(bad.searching());
  CHECK(bad.has(0, 4));
  CHECK_FALSE(bad.has(0, 8));
}

TEST_CASE("a search without a suspect passes over nothing") {
  BadWindows bad;
  bad.search({.epoch = 0, .position = LossError::Window::elsewhere, .step = 2}, 2);
  CHECK_FALSE(bad.has(0, LossError::Window::elsewhere));
  bad.cleared(2);
  CHECK_FALSE(bad.has(0, LossError::Window::elsewhere));
}

TEST_CASE("windows and a search are saved and loaded, and a loaded state has no others") {
  auto const loaded = [](BadWindows saved) {
    frugal::StateDict memory;
    frugal::StateWriter writer(memory);
    saved.persist(writer);
    BadWindows bad;
    bad.add(9, 9);
    bad.search({.epoch = 9, .position = 12, .step = 9}, 9);
    frugal::StateReader reader(memory);
    bad.persist(reader);
    CHECK_FALSE(reader.unread());
    return bad;
  };
  BadWindows bad;
  bad.add(1, 8);
  CHECK(loaded(bad).has(1, 8));
  CHECK_FALSE(loaded(bad).has(9, 9));
  CHECK_FALSE(loaded(bad).searching());
  CHECK_FALSE(loaded(bad).has(9, 12));
  bad.search({.epoch = 1, .position = 16, .step = 6}, 6);
  CHECK(loaded(bad).searching());
  CHECK(loaded(bad).has(1, 16));
  BadWindows ended = loaded(bad);
  ended.cleared(6);
  CHECK_FALSE(ended.searching());
}

}  // namespace frugal_test::policy_rollback_bad_windows
