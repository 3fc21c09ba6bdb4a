// SPDX-License-Identifier: Apache-2.0
// A user's policy that skips every third window, and ends the run at a budget of windows.
#include <doctest/doctest.h>

#include <frugal/frugal.hpp>

#include "support/files.hpp"
#include "support/running.hpp"

#include <cstdint>
#include <limits>
#include <memory>
#include <stop_token>
#include <string>
#include <vector>

namespace frugal_test::outside_skips_windows {

namespace fr = frugal;
using namespace support;

struct TwoOfThree {
  struct kind : fr::optional_kind {
    static constexpr std::string_view name = "outside.TwoOfThree";
  };
  using listens = fr::list<fr::on::window>;

  std::uint64_t budget = std::numeric_limits<std::uint64_t>::max();  ///< windows

  class State {
   public:
    using transient = void;  // the counters hold all state
    explicit State(TwoOfThree const& settings) : budget_(settings.budget) {}

    // [begin hook]
    fr::flow on_window(fr::WindowBegin& phase) const {
      fr::Counters const& now = phase.counters();
      std::uint64_t const windows = now.step + now.non_finite_windows + now.skipped_windows;
      if (windows >= budget_) return fr::flow::stop;
      if (windows % 3 == 2) phase.skip();
      return fr::flow::proceed;
    }
    // [end hook]

   private:
    std::uint64_t budget_;
  };
};

struct Outcome {
  fr::Report report;
  std::map<std::string, at::Tensor> tensors;
  fr::Counters last;  ///< after the last step
};

struct Plan {
  std::filesystem::path folder{};
  std::uint64_t epochs = 1;
  bool shuffle = false;
  int leave_at = 0;  ///< preempt at this training batch; 0: none
};

template <class... Ps>
Outcome run(fr::Batch const& data, Plan const& plan, Ps const&... policies) {
  Outcome outcome;
  std::stop_source stop;
  int count = 0;
  auto const module = std::make_shared<Mlp>(Mlp::Shape{.dropout = 0.3, .norm = true});
  auto const objective = [&](std::shared_ptr<Mlp>& net, fr::Batch const& batch) {
    if (++count == plan.leave_at) stop.request_stop();
    return fr::CrossEntropy{}(net, batch);
  };
  fr::Trainer trainer{
      module,
      objective,
      fr::Settings{.run_dir = plan.folder, .epochs = plan.epochs, .stop = stop.get_token()},
      fr::Optimize<fr::AdamW>{},
      Spy{.each_step = [&](fr::Counters const& now) { outcome.last = now; }},
      policies...};
  fr::TensorDataset train(data, {.batch = 4, .shuffle = plan.shuffle});
  outcome.report = trainer.fit(train);
  outcome.tensors = tensors_of(*module);
  return outcome;
}

/// The samples of 44 that are in the listed windows of `size` samples each.
fr::Batch windows(std::vector<std::int64_t> const& which, std::int64_t size = 4) {
  fr::Batch const all = samples(44);
  std::vector<at::Tensor> data, target;
  for (std::int64_t const window : which) {
    data.push_back(all.data.narrow(0, window * size, size));
    target.push_back(all.target.narrow(0, window * size, size));
  }
  return {at::cat(data), at::cat(target)};
}

TEST_CASE("a skipped window is consumed, and neither trained nor a step") {
  Outcome const outcome = run(samples(44), {}, TwoOfThree{});
  CHECK(outcome.report.epochs == 1);
  CHECK(outcome.report.steps == 8);
  CHECK(outcome.report.samples == 32);
  CHECK(outcome.report.non_finite_windows == 0);  // this counts overflows
  CHECK(outcome.last.skipped_windows == 3);
  CHECK(outcome.last.position == 44);
  CHECK(outcome.last.micro_batch == 8);
  Outcome const without = run(windows({0, 1, 3, 4, 6, 7, 9, 10}), {});
  CHECK(same_bits(outcome.tensors, without.tensors));
  CHECK(outcome.report.train_loss == without.report.train_loss);
}

TEST_CASE("all its micro-batches are, in an epoch's ragged last window too") {
  // Six windows of 8 samples, the last with 4; the third and the last are skipped.
  Outcome const outcome = run(samples(44), {}, fr::Accumulate<2>{}, TwoOfThree{});
  CHECK(outcome.report.epochs == 1);
  CHECK(outcome.report.steps == 4);
  CHECK(outcome.report.samples == 32);
  Outcome const without = run(windows({0, 1, 3, 4}, 8), {}, fr::Accumulate<2>{});
  CHECK(same_bits(outcome.tensors, without.tensors));
}

TEST_CASE("the count continues from epoch to epoch") {
  Outcome const outcome = run(samples(44), {.epochs = 3}, TwoOfThree{});
  CHECK(outcome.report.epochs == 3);
  CHECK(outcome.report.steps == 22);
  CHECK(outcome.last.skipped_windows ==
        10);  // the last window is the eleventh, after the last step
}

TEST_CASE("a budget of windows ends the run, skipped windows included") {
  Outcome const outcome = run(samples(44), {.epochs = 3}, TwoOfThree{.budget = 21});
  CHECK(outcome.report.stopped_by == "outside.TwoOfThree");
  CHECK(outcome.report.epochs == 1);
  CHECK(outcome.report.steps == 14);
  CHECK(outcome.last.skipped_windows == 6);  // the last window of the budget is the seventh
  CHECK(outcome.last.position == 36);
}

TEST_CASE("a run preempted at any batch continues from there") {
  TemporaryFolder const folder;
  auto const start = [&](std::string const& name, int leave_at) {
    return run(samples(43),
               {.folder = folder / name, .epochs = 3, .shuffle = true, .leave_at = leave_at},
               fr::Checkpoint<fr::Every<100>>{}, TwoOfThree{.budget = 31});
  };
  Outcome const whole = start("whole", 0);
  CHECK(whole.report.steps == 21);
  for (int at = 1; at <= 21; ++at) {
    CAPTURE(at);
    std::string const name = std::to_string(at);
    CHECK(start(name, at).report.preempted);
    Outcome const resumed = start(name, 0);
    CHECK(same_bits(resumed.tensors, whole.tensors));
    CHECK(resumed.report.steps == whole.report.steps);
    CHECK(resumed.report.epochs == whole.report.epochs);
    CHECK(resumed.report.samples == whole.report.samples);
    CHECK(resumed.report.train_loss == whole.report.train_loss);
    CHECK(resumed.report.stopped_by == whole.report.stopped_by);
  }
}

}  // namespace frugal_test::outside_skips_windows
