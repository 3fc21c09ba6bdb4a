// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <doctest/doctest.h>

#include <frugal/checkpoint/retention.hpp>

#include "support/checkpoints.hpp"
#include "support/files.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <vector>

namespace frugal_test::store_retention {

using frugal::plan_retention;
using frugal::Retention;
using frugal::RunDirectory;
using frugal::SavedCheckpoint;
using support::save;
using support::TemporaryFolder;

SavedCheckpoint at(std::uint64_t step, std::map<std::string, double> metrics = {},
                   bool gold = false, std::uint64_t serial = 1) {
  SavedCheckpoint checkpoint;
  checkpoint.folder = "step-" + std::to_string(step) + "." + std::to_string(serial);
  checkpoint.manifest.step = step;
  checkpoint.manifest.serial = serial;
  checkpoint.manifest.metrics = std::move(metrics);
  checkpoint.gold = gold;
  return checkpoint;
}

using Steps = std::vector<std::uint64_t>;

Steps steps_of(std::vector<SavedCheckpoint> const& checkpoints) {
  Steps steps;
  for (SavedCheckpoint const& checkpoint : checkpoints) steps.push_back(checkpoint.step());
  return steps;
}

TEST_CASE("the last ones are kept, in whatever order they are listed") {
  CHECK(steps_of(plan_retention({at(2), at(9), at(5), at(7)}, {.last = 2, .best = {}})) ==
        Steps{5, 2});
}

TEST_CASE("fewer checkpoints than the limit are all kept") {
  CHECK(plan_retention({at(1), at(2)}, {.last = 3, .best = {}}).empty());
  CHECK(plan_retention({}, {}).empty());
}

TEST_CASE("the best by a metric is kept, lowest or highest") {
  std::vector<SavedCheckpoint> const all = {at(1, {{"loss", 0.5}}), at(2, {{"loss", 0.1}}),
                                            at(3, {{"loss", 0.9}}), at(4, {{"loss", 0.4}})};
  CHECK(steps_of(plan_retention(all, {.last = 1, .best = {{.metric = "loss"}}})) == Steps{3, 1});
  CHECK(steps_of(plan_retention(all, {.last = 1, .best = {{.metric = "loss", .highest = true}}})) ==
        Steps{2, 1});
  CHECK(steps_of(plan_retention(
            all, {.last = 1, .best = {{.metric = "loss", .highest = false, .count = 2}}})) ==
        Steps{3, 1});
}

TEST_CASE("of equally good checkpoints the newest is the best") {
  std::vector<SavedCheckpoint> const all = {at(1, {{"loss", 0.1}}), at(2, {{"loss", 0.1}}), at(3)};
  CHECK(steps_of(plan_retention(all, {.last = 1, .best = {{.metric = "loss"}}})) == Steps{1});
}

TEST_CASE("a NaN is never the best, and neither is a checkpoint without the metric") {
  std::vector<SavedCheckpoint> const all = {at(1, {{"loss", std::nan("")}}), at(2),
                                            at(3, {{"loss", 7.0}}), at(4)};
  for (bool const highest : {false, true}) {
    CHECK(steps_of(plan_retention(
              all, {.last = 1, .best = {{.metric = "loss", .highest = highest}}})) == Steps{2, 1});
  }
}

TEST_CASE("every k-th step is kept for ever") {
  std::vector<SavedCheckpoint> all;
  for (std::uint64_t step = 100; step <= 1000; step += 100) all.push_back(at(step));
  CHECK(steps_of(plan_retention(all, {.last = 1, .best = {}, .every = 500})) ==
        Steps{900, 800, 700, 600, 400, 300, 200, 100});
}

TEST_CASE("gold is kept and does not count among the last") {
  CHECK(steps_of(plan_retention({at(1, {}, true), at(2), at(3)}, {.last = 1, .best = {}})) ==
        Steps{2});
}

TEST_CASE("a newest checkpoint that is gold does not replace the last") {
  CHECK(steps_of(plan_retention({at(1), at(2), at(3, {}, true)}, {.last = 1, .best = {}})) ==
        Steps{1});
}

TEST_CASE("an older save of a step is deleted and does not count among the last") {
  auto const gone = plan_retention({at(3, {}, false, 4), at(3, {}, false, 2), at(2), at(1)},
                                   {.last = 2, .best = {}});
  REQUIRE(steps_of(gone) == Steps{3, 1});
  CHECK(gone[0].manifest.serial == 2);
}

TEST_CASE("an older save of a step is kept if it is the best and the newer one has no metrics") {
  Retention const keep{.last = 1, .best = {{.metric = "loss"}}};
  std::vector<SavedCheckpoint> const apart = {at(3, {{"loss", 0.1}}, false, 2), at(3, {}, false, 3),
                                              at(4, {{"loss", 0.5}}, false, 4)};
  auto const gone = plan_retention(apart, keep);
  REQUIRE(steps_of(gone) == Steps{3});
  CHECK(gone[0].manifest.serial == 3);
  // A newer one with metrics supersedes it, even if it is worse.
  std::vector<SavedCheckpoint> const again = {at(3, {{"loss", 0.1}}, false, 2),
                                              at(3, {{"loss", 0.9}}, false, 3),
                                              at(4, {{"loss", 0.5}}, false, 4)};
  CHECK(steps_of(plan_retention(again, keep)) == Steps{3, 3});
}

TEST_CASE("a retention that keeps nothing is refused") {
  CHECK_THROWS_AS(plan_retention({at(1)}, {.last = 0, .best = {}}), frugal::SettingsError);
}

/// 2,000 random sets of checkpoints and settings.
template <class Check>
void with_random_plans(Check&& check) {
  std::mt19937_64 random(20240521);
  auto const below = [&](std::uint64_t n) { return random() % n; };
  for (int turn = 0; turn < 2000; ++turn) {
    std::vector<SavedCheckpoint> all;
    for (std::uint64_t n = below(14), i = 0; i < n; ++i) {
      std::map<std::string, double> metrics;
      if (below(4) != 0) metrics["loss"] = below(6) == 0 ? std::nan("") : double(below(5));
      all.push_back(at(below(12), metrics, below(6) == 0, i + 1));
    }
    std::shuffle(all.begin(), all.end(), random);
    Retention retention{.last = 1 + below(4), .best = {}, .every = below(4)};
    if (below(2) != 0) {
      retention.best = {{.metric = "loss", .highest = below(2) != 0, .count = below(3)}};
    }
    CAPTURE(turn);
    auto const gone = plan_retention(all, retention);
    std::set<std::string> names;
    for (SavedCheckpoint const& checkpoint : gone) names.insert(checkpoint.folder.string());
    std::vector<SavedCheckpoint> kept;
    for (SavedCheckpoint const& checkpoint : all) {
      if (!names.contains(checkpoint.folder.string())) kept.push_back(checkpoint);
    }
    REQUIRE(kept.size() + gone.size() == all.size());
    check(retention, all, kept, gone);
  }
}

TEST_CASE("no plan deletes the newest, a gold one, or the last save of a k-th step") {
  with_random_plans([](Retention const& retention, auto const& all, auto const& kept,
                       auto const& gone) {
    auto const newest = std::max_element(all.begin(), all.end(), [](auto const& a, auto const& b) {
      return frugal::detail::newer(b.manifest, a.manifest);
    });
    for (SavedCheckpoint const& checkpoint : gone) {
      CHECK_FALSE(checkpoint.gold);
      CHECK(checkpoint.folder != newest->folder);
      // Every run begins with step 0; it is no milestone.
      if (retention.every == 0 || checkpoint.step() == 0) continue;
      if (checkpoint.step() % retention.every != 0) continue;
      CHECK(std::any_of(kept.begin(), kept.end(), [&](SavedCheckpoint const& other) {
        return other.step() == checkpoint.step() &&
               other.manifest.serial > checkpoint.manifest.serial;
      }));
    }
    CHECK(kept.empty() == all.empty());
  });
}

TEST_CASE("no plan keeps more than requested") {
  with_random_plans([](Retention const& retention, auto const&, auto const& kept, auto const&) {
    auto const others = std::count_if(kept.begin(), kept.end(), [&](SavedCheckpoint const& one) {
      return !one.gold && (retention.every == 0 || one.step() % retention.every != 0);
    });
    std::size_t allowed = retention.last;
    for (auto const& best : retention.best) allowed += best.count;
    CHECK(static_cast<std::size_t>(others) <= allowed);
  });
}

TEST_CASE("no plan deletes one that is better than the best that it keeps") {
  with_random_plans(
      [](Retention const& retention, auto const& all, auto const& kept, auto const& gone) {
        if (retention.best.empty() || retention.best[0].count == 0) return;
        double const sign = retention.best[0].highest ? -1 : 1;
        auto const value = [&](SavedCheckpoint const& one) -> std::optional<double> {
          auto const found = one.manifest.metrics.find("loss");
          if (found == one.manifest.metrics.end() || std::isnan(found->second)) return std::nullopt;
          return sign * found->second;
        };
        for (SavedCheckpoint const& lost : gone) {
          bool const superseded =
              std::any_of(all.begin(), all.end(), [&](SavedCheckpoint const& other) {
                return other.step() == lost.step() && other.manifest.serial > lost.manifest.serial;
              });
          if (superseded || !value(lost)) continue;
          CHECK(std::any_of(kept.begin(), kept.end(), [&](SavedCheckpoint const& one) {
            return !one.gold && value(one) && *value(one) <= *value(lost);
          }));
        }
      });
}

TEST_CASE("a completed plan has nothing left to do") {
  with_random_plans([](Retention const& retention, auto const&, auto const& kept, auto const&) {
    CHECK(plan_retention(kept, retention).empty());
  });
}

TEST_CASE("retention deletes folders, and says which") {
  TemporaryFolder folder;
  RunDirectory run(folder / "run");
  for (std::uint64_t step = 1; step <= 5; ++step) save(run, step);
  auto const gone = frugal::retain(run, {.last = 2, .best = {}}).removed;
  CHECK(steps_of(gone) == Steps{3, 2, 1});
  CHECK(steps_of(run.list().whole) == Steps{5, 4});
  for (SavedCheckpoint const& checkpoint : gone) {
    CHECK_FALSE(std::filesystem::exists(checkpoint.folder));
  }
}

TEST_CASE("retention does not delete the last valid checkpoint when all newer ones are damaged") {
  TemporaryFolder folder;
  RunDirectory run(folder / "run");
  for (std::uint64_t step = 1; step <= 5; ++step) {
    SavedCheckpoint const checkpoint = save(run, step);
    if (step > 2) support::flip_bit(checkpoint.folder / "model.safetensors", 5);
  }
  CHECK(steps_of(frugal::retain(run, {.last = 1, .best = {}}).removed) == Steps{1});
  CHECK(run.newest_valid().checkpoint->step() == 2);
}

TEST_CASE("checkpoints that cannot be listed now are reported, and none is deleted") {
  TemporaryFolder folder;
  RunDirectory run(folder / "run");
  for (std::uint64_t step = 1; step <= 3; ++step) save(run, step);
  // A newer library's checkpoint cannot be judged, so nothing is deleted next to it.
  auto const newer = run.checkpoints_folder() / "step-00000009";
  std::filesystem::create_directory(newer);
  std::string const body = R"({"format": "frugal checkpoint", "version": 9)";
  support::write_text(newer / "manifest.json",
                      body + ",\n  \"xxh3\": \"" +
                          frugal::hex_of(frugal::Hash::of(support::bytes_of(body))) + "\"\n}\n");
  auto const removal = frugal::retain(run, {.last = 1, .best = {}});
  CHECK(removal.removed.empty());
  REQUIRE(removal.left.size() == 1);
  CHECK(removal.left[0].why.find("its version is 9") != std::string::npos);
  CHECK(run.take_leftovers().size() == 1);
}

TEST_CASE("retention deletes nothing in a folder that belongs to another run now") {
  TemporaryFolder folder;
  RunDirectory old(folder / "run");
  for (std::uint64_t step = 1; step <= 3; ++step) save(old, step);
  std::filesystem::rename(folder / "run", folder / "was");
  RunDirectory next(folder / "run");
  for (std::uint64_t step = 1; step <= 3; ++step) save(next, step);
  CHECK_THROWS_AS(frugal::retain(old, {.last = 1, .best = {}}), frugal::LockError);
  CHECK(next.list().whole.size() == 3);
}

TEST_CASE("retention deletes nothing when no checkpoint is valid") {
  TemporaryFolder folder;
  RunDirectory run(folder / "run");
  for (std::uint64_t step = 1; step <= 3; ++step) {
    support::flip_bit(save(run, step).folder / "state.json", 5);
  }
  CHECK(frugal::retain(run, {.last = 1, .best = {}}).removed.empty());
  CHECK(run.list().whole.size() == 3);
}

}  // namespace frugal_test::store_retention
