// SPDX-License-Identifier: Apache-2.0
// Where the policy Device puts a run: everything that a trainer does happens there, and its
// settings stay the user's.
#include <doctest/doctest.h>

#include <frugal/frugal.hpp>

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

TEST_CASE("a fit, a range test and a dry run use the policy's device, and do not change Settings") {
  std::set<std::string> where;
  std::string const there = fake::device(1).str();
  frugal::Settings const settings{.epochs = 1};
  frugal::Trainer trainer{std::make_shared<Mlp>(), Witness{&where}, settings,
                          frugal::Optimize<frugal::AdamW>{}, frugal::Device<>{.device = there}};
  frugal::Resident train(samples(48), {.batch = 4});

  trainer.fit(train);
  CHECK(where == std::set<std::string>{there});
  CHECK(trainer.settings().device == settings.device);
  CHECK(trainer.resolved_settings().device == fake::device(1));

  where.clear();
  frugal::find_learning_rate(trainer, train, {.steps = 10});
  CHECK(where == std::set<std::string>{there});
  CHECK(trainer.settings().device == settings.device);

  where.clear();
  std::ostringstream out;
  CHECK(trainer.smoke(train, out));
  CHECK(where == std::set<std::string>{"cpu"});  // a dry run is on the host
  CHECK(trainer.module()->parameters().front().device() == fake::device(1));
  CHECK(trainer.settings().device == settings.device);
  CHECK(fake::complaints().empty());
}

}  // namespace frugal_test::device_device
