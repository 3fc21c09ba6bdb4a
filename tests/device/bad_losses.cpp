// SPDX-License-Identifier: Apache-2.0
// Losses on a device are read late: what is kept, saved or ended in between must not be bad.
#include <doctest/doctest.h>

#include <frugal/cluster/summed_windows.hpp>
#include <frugal/frugal.hpp>

#include "support/fake_device.hpp"
#include "support/files.hpp"
#include "support/running.hpp"

#include <cstdint>
#include <limits>
#include <memory>
#include <stop_token>
#include <string>
#include <vector>

namespace frugal_test::device_bad_losses {

namespace fr = frugal;
using namespace support;

/// Its loss is NaN in one batch, by number; then it makes a given request.
struct Bad {
  int nth;
  int* count;
  std::stop_source* stop = nullptr;

  fr::Loss operator()(std::shared_ptr<Mlp>& module, fr::Batch const& batch) const {
    fr::Loss loss = fr::CrossEntropy{}(module, batch);
    if (++*count != nth) return loss;
    if (stop != nullptr) stop->request_stop();
    loss.value = loss.value * std::numeric_limits<double>::quiet_NaN();
    return loss;
  }
};

/// Requests a stop after a step.
struct Stops {
  struct kind : fr::optional_kind {
    static constexpr std::string_view name = "test.Stops";
  };
  using listens = fr::list<fr::on::step>;
  std::uint64_t at = 0;
  struct State {
    using transient = void;
    explicit State(Stops const& stops) : at_(stops.at) {}
    fr::flow on_step(fr::Step& phase) const {
      return phase.counters().step == at_ ? fr::flow::stop : fr::flow::proceed;
    }

   private:
    std::uint64_t at_;
  };
};

/// A single process that agrees with itself: what waits for agreement is postponed.
struct Alone {
  struct kind : fr::optional_kind {
    static constexpr std::string_view name = "test.Alone";
  };
  using listens = fr::list<>;
  using provides = fr::list<fr::service::reduce>;
  using strategy = fr::SummedWindows;
  struct State {
    explicit State(Alone const&) {}
    double reduce(fr::Quantity, double value) const { return value; }
    at::Tensor reduce(fr::Quantity, at::Tensor value) const { return value; }
  };
};

template <class... Ps>
fr::Report run(std::filesystem::path const& folder, Bad const& bad, std::stop_token stop,
               Ps const&... policies) {
  fr::Trainer trainer{
      std::make_shared<Mlp>(), bad,
      fr::Settings{
          .run_dir = folder, .epochs = 2, .device = fake::device(0), .stop = std::move(stop)},
      fr::Optimize<fr::SGD>{.lr = 0.1}, policies...};
  fr::TensorDataset train(samples(44), {.batch = 4});
  return trainer.fit(train);
}

TEST_CASE("a run preempted while a bad loss is unread is rolled back, and then preempted") {
  TemporaryFolder const folder;
  std::stop_source stop;
  int count = 0;
  fr::Rollback<fr::Every<4>> const back;
  fr::Checkpoint<fr::Every<4>> const saves;
  fr::Report const left = run(folder.path(), {10, &count, &stop}, stop.get_token(), back, saves);
  CHECK(left.preempted);
  CHECK(left.exit_code() == 75);
  CHECK(left.stopped_by == "Settings::stop");
  CHECK(left.warnings.size() == 1);
  fr::Report const rest = run(folder.path(), {0, &count}, {}, back, saves);
  CHECK(rest.steps == 21);
  CHECK(rest.epochs == 2);
}

TEST_CASE("a stop request while a bad loss is unread is repeated after the window") {
  TemporaryFolder const folder;
  int count = 0;
  fr::Report const report = run(folder.path(), {10, &count}, {}, fr::Rollback<fr::Every<4>>{},
                                fr::Checkpoint<fr::Every<4>>{}, Stops{10});
  CHECK(report.steps == 10);
  CHECK(report.stopped_by == "test.Stops");
  CHECK_FALSE(report.preempted);
}

TEST_CASE("no checkpoint contains a bad loss, with agreeing processes or without") {
  auto const saves_nothing_bad = [](auto const&... policies) {
    TemporaryFolder const folder;
    int count = 0;
    CHECK_THROWS_AS(
        run(folder.path(), {6, &count}, {}, fr::Checkpoint<fr::Every<1>>{}, policies...),
        fr::NonFiniteLossError);
    fr::Report const again =
        run(folder.path(), {0, &count}, {}, fr::Checkpoint<fr::Every<1>>{}, policies...);
    REQUIRE(again.resumed);
    CHECK(again.resumed->step == 5);
    CHECK(again.steps == 22);
  };
  saves_nothing_bad();
  saves_nothing_bad(Alone{});
}

}  // namespace frugal_test::device_bad_losses
