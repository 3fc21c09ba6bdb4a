// SPDX-License-Identifier: Apache-2.0
// A second Rollback as a user writes it: restores the run to before the window with a non-finite
// loss, and skips that window.
#include <doctest/doctest.h>

#include <frugal/frugal.hpp>

#include "support/files.hpp"
#include "support/running.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace frugal_test::outside_second_rollback {

namespace fr = frugal;
using namespace support;

// [begin policy]
struct PassOver {
  struct kind : fr::optional_kind {
    static constexpr std::string_view name = "outside.PassOver";
  };
  using listens = fr::list<fr::on::window>;
  using provides = fr::list<fr::service::recover>;

  class State {
   public:
    explicit State(PassOver const&) {}

    void on_window(fr::WindowBegin& phase) {
      if (is_bad(phase.counters())) {
        phase.skip();
      } else {
        phase.take(before_, fr::Part::resumable);
      }
    }

    bool recover(fr::CheckpointPhase& phase, fr::LossError const& error) {
      if (before_.empty()) return false;
      // restore() also restores this State, as it was when the snapshot was taken.
      std::vector<std::uint64_t> bad = bad_;
      bad.insert(bad.end(), {error.window.epoch, error.window.position});
      phase.restore(before_);
      bad_ = std::move(bad);
      phase.record({"passed_over", {{"position", error.window.position}}});
      return true;
    }

    template <class Archive>
    void persist(Archive& archive) {
      archive("bad", bad_);
    }

   private:
    bool is_bad(fr::Counters const& now) const {
      for (std::size_t i = 0; i + 1 < bad_.size(); i += 2) {
        if (bad_[i] == now.epoch && bad_[i + 1] == now.position) return true;
      }
      return false;
    }

    fr::RunSnapshot before_;
    std::vector<std::uint64_t> bad_;  ///< epoch and position of each window to skip
  };
};
// [end policy]

/// The loss of the nth training batch is NaN; 0: of none.
struct Spoilt {
  int nth = 0;
  int* count;

  fr::Loss operator()(std::shared_ptr<Mlp>& module, fr::Batch const& batch) const {
    fr::Loss loss = fr::CrossEntropy{}(module, batch);
    if (++*count == nth) loss.value = loss.value * std::numeric_limits<double>::quiet_NaN();
    return loss;
  }
};

struct Outcome {
  fr::Report report;
  std::map<std::string, at::Tensor> tensors;
  Seen seen;
};

/// Windows of 4 samples, with dropout and BatchNorm, whose state must be restored too.
template <class... Ps>
Outcome run(fr::Batch const& data, fr::Settings const& settings, bool shuffle, int nth,
            Ps const&... policies) {
  Outcome outcome;
  int count = 0;
  auto const module = std::make_shared<Mlp>(Mlp::Shape{.dropout = 0.3, .norm = true});
  fr::Trainer trainer{module,     Spoilt{nth, &count},        settings,   fr::Optimize<fr::AdamW>{},
                      PassOver{}, Spy{.seen = &outcome.seen}, policies...};
  fr::TensorDataset train(data, {.batch = 4, .shuffle = shuffle});
  outcome.report = trainer.fit(train);
  outcome.tensors = tensors_of(*module);
  return outcome;
}

/// 44 samples, 4 of them NaN.
fr::Batch spoilt(std::int64_t first) {
  fr::Batch all = samples(44);
  all.data = all.data.clone();
  all.data.narrow(0, first, 4).fill_(std::numeric_limits<float>::quiet_NaN());
  return all;
}
/// The same without these.
fr::Batch without(std::int64_t first) {
  fr::Batch const all = samples(44);
  auto const cut = [&](at::Tensor const& tensor) {
    return at::cat({tensor.narrow(0, 0, first), tensor.narrow(0, first + 4, 40 - first)});
  };
  return {cut(all.data), cut(all.target)};
}

TEST_CASE("a NaN batch is never trained: the weights are those of a run without it") {
  for (std::int64_t const first : {20, 0, 40}) {  // the middle, and an epoch's first and last
                                                  // window
    CAPTURE(first);
    Outcome const clean = run(without(first), {.epochs = 3}, false, 0);
    Outcome const outcome = run(spoilt(first), {.epochs = 3}, false, 0);
    CHECK(same_bits(outcome.tensors, clean.tensors));
    CHECK(outcome.report.steps == clean.report.steps);
    CHECK(outcome.report.samples == clean.report.samples);
    CHECK(outcome.report.epochs == 3);
    CHECK(outcome.seen.epoch_losses == clean.seen.epoch_losses);
  }
}

TEST_CASE("an epoch whose only window is skipped is an epoch without a loss") {
  fr::Batch const one = samples(4);
  Outcome const clean = run(one, {.epochs = 3}, false, 0);
  Outcome const outcome = run(one, {.epochs = 4}, false, 2);
  CHECK(same_bits(outcome.tensors, clean.tensors));
  CHECK(outcome.report.epochs == 4);
  CHECK(outcome.report.steps == 3);
  REQUIRE(outcome.seen.epoch_losses.size() == 4);
  CHECK(std::isnan(outcome.seen.epoch_losses[1]));
  CHECK(std::isfinite(outcome.report.train_loss));
  // The last epoch's loss is NaN too, and the report shows it.
  CHECK(std::isnan(run(one, {.epochs = 4}, false, 4).report.train_loss));
}

TEST_CASE("in shuffled data every window with a NaN is skipped, and logged") {
  TemporaryFolder const folder;
  Outcome const outcome =
      run(spoilt(20), {.run_dir = folder.path(), .epochs = 3}, true, 0, fr::Log<fr::Every<1>>{});
  CHECK(std::isfinite(outcome.report.train_loss));
  CHECK(outcome.report.samples < 3 * 44);
  std::string const log = text_of(folder / "metrics.jsonl");
  std::size_t returns = 0;
  for (auto const& line : lines_of(log)) {
    returns += line.find(R"("event":"passed_over")") != std::string::npos ? 1 : 0;
  }
  CHECK(outcome.report.samples == 3 * 44 - 4 * returns);
}

TEST_CASE("a resumed run knows the windows to skip") {
  TemporaryFolder const folder;
  auto const start = [&](std::string const& name, std::uint64_t steps) {
    return run(spoilt(20), {.run_dir = folder / name, .epochs = 3, .steps = steps}, false, 0,
               fr::Checkpoint<fr::Every<3>>{});
  };
  Outcome const whole = start("whole", 30);
  for (std::uint64_t steps = 1; steps < 30; steps += 4) {
    CAPTURE(steps);
    start(std::to_string(steps), steps);
    CHECK(same_bits(start(std::to_string(steps), 30).tensors, whole.tensors));
  }
}

}  // namespace frugal_test::outside_second_rollback
