// SPDX-License-Identifier: Apache-2.0
// needs: notices
#include <doctest/doctest.h>

#include <frugal/frugal.hpp>
#include <frugal/policy/notices.hpp>

#include "support/files.hpp"
#include "support/loopback_server.hpp"
#include "support/running.hpp"

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <string>

namespace frugal_test::policy_notices {

using namespace support;
using namespace std::chrono_literals;
using frugal::Every;
using frugal::SigtermSave;

/// Calls back before each batch.
struct Witness {
  std::function<void()> each;

  frugal::Loss operator()(std::shared_ptr<Mlp>& module, frugal::Batch const& batch) const {
    each();
    return frugal::CrossEntropy{}(module, batch);
  }
};

template <class Provider>
frugal::Report train(std::filesystem::path const& folder, frugal::Notices<Provider> notices,
                     std::function<void()> each, std::uint64_t epochs) {
  frugal::Trainer trainer{
      std::make_shared<Mlp>(),
      Witness{std::move(each)},
      frugal::Settings{.run_dir = folder, .epochs = epochs},
      frugal::Optimize<frugal::AdamW>{},
      frugal::Checkpoint<Every<1000000>>{},
      frugal::Log<Every<1000000>>{},
      frugal::Spot<SigtermSave, frugal::Notices<Provider>>{
          .on_preemption = frugal::Preempted::Return, .notices = std::move(notices)}};
  frugal::TensorDataset data(samples(12), {.batch = 4});
  return trainer.fit(data);
}

TEST_CASE("a run is saved when the cloud preempts the machine") {
  TemporaryFolder const folder;
  std::atomic<bool> taken{false};
  LoopbackServer server([&](HttpRequest const&) {
    return answer(200, taken ? "TRUE" : "FALSE", "Metadata-Flavor: Google\r\n");
  });
  int batches = 0;
  auto const report = train<frugal::Gcp>(
      folder.path(), {.provider = {.base = server.base()}, .polling = {.interval = 1ms}},
      [&] { taken = ++batches >= 5; }, frugal::RunLimits::unlimited);
  CHECK(report.preempted);
  CHECK(report.steps >= 5);
  auto const newest = frugal::RunDirectory(folder.path(), frugal::Access::read).newest_valid();
  REQUIRE(newest.checkpoint);
  CHECK(newest.checkpoint->step() == report.steps);
  CHECK(text_of(folder / "metrics.jsonl").find(R"("event":"preempted")") != std::string::npos);
}

TEST_CASE("a cloud that hangs delays no step, and an absent one is reported") {
  TemporaryFolder const folder;
  LoopbackServer server([](HttpRequest const&) { return hang(); });
  auto const report =
      train<frugal::Gcp>(folder / "hangs", {.provider = {.base = server.base()}}, [] {}, 2);
  CHECK_FALSE(report.preempted);
  CHECK(report.steps == 6);

  int port = 0;
  int const nobody = LoopbackServer::bound(port);
  std::atomic<bool> warned{false};
  frugal::Notices<frugal::Gcp> const notices{
      .provider = {.base = "http://127.0.0.1:" + std::to_string(port)},
      .polling = {.interval = 1ms, .warn_after = 1, .warn = [&](auto const&) {
                    warned = true;
                    warned.notify_all();
                  }}};
  auto const alone = train<frugal::Gcp>(folder / "nobody", notices, [&] { warned.wait(false); }, 1);
  ::close(nobody);
  CHECK_FALSE(alone.preempted);
  CHECK(alone.steps == 3);
  REQUIRE(alone.warnings.size() == 1);
}

}  // namespace frugal_test::policy_notices
