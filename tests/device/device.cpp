// SPDX-License-Identifier: Apache-2.0
// Where Settings::device puts a run: all that a trainer does is there, and its settings are the
// user's.
#include <doctest/doctest.h>

#include <frugal/frugal.hpp>
#include <frugal/report.hpp>

#include "support/fake_device.hpp"
#include "support/running.hpp"

#include <set>
#include <sstream>
#include <string>

namespace frugal_test::device_device {

using namespace support;

/// Cross entropy that records its batches' devices.
struct Witness {
  std::set<std::string>* where;
  frugal::Loss operator()(std::shared_ptr<Mlp>& module, frugal::Batch const& batch) const {
    where->insert(batch.data.device().str());
    return frugal::CrossEntropy{}(module, batch);
  }
};

constexpr auto there = "fake:1";

auto trainer_for(std::set<std::string>& where, frugal::Settings const& settings,
                 auto const&... policies) {
  return frugal::Trainer{std::make_shared<Mlp>(), Witness{&where}, settings,
                         frugal::Optimize<frugal::AdamW>{}, policies...};
}

/// Where the batches of a fit, a range test, an evaluation and a prediction are.
void check_all(auto& trainer, std::set<std::string>& where) {
  frugal::TensorDataset train(samples(48), {.batch = 4});
  std::set<std::string> const only{fake::device(1).str()};

  auto const found = trainer.evaluate(train);
  CHECK(found["loss"] > 0);
  CHECK(where == only);

  where.clear();
  static_cast<void>(trainer.fit(train));
  CHECK(where == only);

  where.clear();
  static_cast<void>(frugal::find_learning_rate(trainer, train, {.steps = 10}));
  CHECK(where == only);

  std::set<std::string> seen;
  trainer.predict(
      train, [&](at::Tensor const& output, auto const&) { seen.insert(output.device().str()); });
  CHECK(seen == only);

  where.clear();
  std::ostringstream out;
  CHECK(trainer.dry_run(train, out));
  CHECK(where == std::set<std::string>{"cpu"});  // a dry run is on the host
  CHECK(trainer.module()->parameters().front().device() == fake::device(1));
  CHECK(fake::complaints().empty());
}

TEST_CASE("all that a trainer does is on Settings::device, with Device and without") {
  std::set<std::string> where;
  auto plain = trainer_for(where, {.epochs = 1, .device = there});
  CHECK(plain.device() == fake::device(1));
  check_all(plain, where);
  where.clear();
  auto ahead = trainer_for(where, {.epochs = 1, .device = there}, frugal::DevicePrefetch<>{});
  check_all(ahead, where);
}

TEST_CASE("with no device named a trainer stays where its module is") {
  std::set<std::string> where;
  auto trainer = trainer_for(where, {.epochs = 1});
  CHECK(trainer.device() == c10::Device(c10::kCPU));
  trainer.module()->to(fake::device(1));
  CHECK(trainer.device() == fake::device(1));
  check_all(trainer, where);
  CHECK(!trainer.settings().device.is_given());
  CHECK(trainer.resolved_settings().device == fake::device(1));
}

TEST_CASE("a device without a number is the current one") {
  std::set<std::string> where;
  auto trainer = trainer_for(where, {.device = "fake"});
  CHECK(trainer.device() == fake::device(0));
}

TEST_CASE("a module on several devices needs a word where the run is, and is moved there whole") {
  std::set<std::string> where;
  auto trainer = trainer_for(where, {});
  trainer.module()->parameters().back().set_data(
      trainer.module()->parameters().back().to(fake::device(1)));
  frugal::TensorDataset train(samples(8), {.batch = 4});
  CHECK_THROWS_WITH_AS(trainer.fit(train),
                       doctest::Contains("the module's parameters are on cpu and on fake:1"),
                       frugal::DeviceError);
  trainer.settings().device = "cpu";
  static_cast<void>(trainer.fit(train));
  for (at::Tensor const& each : trainer.module()->parameters()) CHECK(each.is_cpu());
}

}  // namespace frugal_test::device_device
