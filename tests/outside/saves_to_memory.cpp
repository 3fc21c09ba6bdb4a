// SPDX-License-Identifier: Apache-2.0
// A second Checkpoint as a user writes it: saves the whole run to memory, and resumes from there.
#include <doctest/doctest.h>

#include <frugal/frugal.hpp>

#include "support/running.hpp"

#include <cstdint>
#include <limits>
#include <memory>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <vector>

namespace frugal_test::outside_saves_to_memory {

namespace fr = frugal;
using namespace support;

// [begin policy]
struct MemorySave {
  struct kind : fr::optional_kind {
    static constexpr std::string_view name = "outside.MemorySave";
    static constexpr fr::Stage stage = fr::Stage::save;
  };
  using listens = fr::list<fr::on::fit_begin, fr::on::fit_end>;
  using provides = fr::list<fr::service::save>;

  fr::StateDict* store = nullptr;
  bool is_full = false;

  class State {
   public:
    using transient = void;
    explicit State(MemorySave const& settings)
        : store_(settings.store), is_full_(settings.is_full) {
      run_.with_kept = true;
    }

    void on_fit_begin(fr::FitBegin& phase) {
      if (store_->values.empty()) return;
      fr::StateReader reader(*store_);
      run_.persist(reader);
      phase.restore(run_);
      phase.resumed({.from = "memory", .step = phase.counters().step}, 0);
    }
    bool save(fr::CheckpointPhase& phase) {
      if (is_full_) return false;
      phase.take(run_, fr::Part::resumable);
      *store_ = {};
      fr::StateWriter writer(*store_);
      run_.persist(writer);
      writer.finish();
      return true;
    }
    double save_seconds() const { return 0; }
    void on_fit_end(fr::FitEnd& phase) {
      if (!phase.preempted()) static_cast<void>(phase.save());
    }

   private:
    fr::StateDict* store_;
    bool is_full_;
    fr::RunSnapshot run_;
  };
};
// [end policy]

/// Runs first, requests a save in one step, and one more when the run is preempted.
struct Asks {
  struct kind : fr::optional_kind {
    static constexpr std::string_view name = "outside.A";
    static constexpr fr::Stage stage = fr::Stage::enclose;
  };
  using listens = fr::list<fr::on::fit_begin, fr::on::step, fr::on::preempt>;

  std::uint64_t save_at = 0;
  bool stop_at_begin = false;

  class State {
   public:
    using transient = void;
    explicit State(Asks const& asks) : save_at_(asks.save_at), stop_(asks.stop_at_begin) {}

    fr::flow on_fit_begin(fr::FitBegin&) const {
      return stop_ ? fr::flow::stop : fr::flow::proceed;
    }
    void on_step(fr::Step& phase) const {
      if (phase.counters().step == save_at_) CHECK(phase.save());
    }
    void on_preempt(fr::Preemption& phase) const { static_cast<void>(phase.save()); }

   private:
    std::uint64_t save_at_;
    bool stop_;
  };
};

/// Counts the steps that it has seen; saved.
struct Counts {
  struct kind : fr::optional_kind {
    static constexpr std::string_view name = "outside.Counts";
  };
  using listens = fr::list<fr::on::step>;

  fr::Outcome<std::uint64_t> steps{};

  class State {
   public:
    explicit State(Counts const& counts) : out_(&counts.steps) {}
    void on_step(fr::Step&) { out_->set(++steps_); }
    template <class Archive>
    void persist(Archive& archive) {
      archive("steps", steps_);
    }

   private:
    std::uint64_t steps_ = 0;
    fr::Outcome<std::uint64_t> const* out_;
  };
};

struct Ran {
  fr::Report report;
  std::map<std::string, at::Tensor> tensors;
  std::uint64_t counted = 0;
};

/// What happens at which forward pass of this process; 0: never.
struct Events {
  int leave_at = 0;
  int die_at = 0;
  int nan_at = 0;
};

/// Two epochs of 11 steps.
template <class... Ps>
Ran run(MemorySave const& saves, Events const& at = {}, Asks const& asks = {},
        Ps const&... policies) {
  std::stop_source stop;
  int count = 0;
  auto const module = std::make_shared<Mlp>(Mlp::Shape{.dropout = 0.3, .norm = true});
  auto const objective = [&](std::shared_ptr<Mlp>& net, fr::Batch const& batch) {
    if (++count == at.leave_at) stop.request_stop();
    if (count == at.die_at) throw std::runtime_error("the machine is gone");
    fr::Loss loss = fr::CrossEntropy{}(net, batch);
    if (count == at.nan_at) loss.value = loss.value * std::numeric_limits<double>::quiet_NaN();
    return loss;
  };
  fr::Trainer trainer{module,
                      objective,
                      fr::Settings{.epochs = 2, .seed = 5, .stop = stop.get_token()},
                      fr::Optimize<fr::AdamW>{},
                      Counts{},
                      saves,
                      asks,
                      policies...};
  fr::TensorDataset train(samples(44), {.batch = 4, .shuffle = true});
  Ran ran{.report = trainer.fit(train), .tensors = tensors_of(*module)};
  if (auto const* const counted = trainer.template policy<Counts::kind>().steps.get()) {
    ran.counted = *counted;
  }
  return ran;
}

TEST_CASE("a run preempted anywhere resumes from memory with the same bits") {
  fr::StateDict none;
  Ran const whole = run({.store = &none});
  for (int const at : {1, 7, 11, 12, 21}) {
    CAPTURE(at);
    fr::StateDict store;
    Ran const left = run({.store = &store}, {.leave_at = at});
    CHECK(left.report.preempted);
    CHECK(left.report.exit_code() == 75);
    CHECK(left.report.stopped_by == "Settings::stop");
    // Saved once more in on_preempt: a preempted run has not ended.
    Ran const rest = run({.store = &store});
    REQUIRE(rest.report.resumed);
    CHECK(rest.report.steps == 22);
    CHECK(rest.report.stopped_by.empty());
    CHECK(rest.counted == 22);
    CHECK(same_bits(rest.tensors, whole.tensors));
  }
}

TEST_CASE("a save in the middle of an event leaves the rest of the event to the resumed run") {
  fr::StateDict store;
  CHECK_THROWS_AS(run({.store = &store}, {.die_at = 4}, {.save_at = 3}), std::runtime_error);
  REQUIRE_FALSE(store.values.empty());
  Ran const rest = run({.store = &store});
  CHECK(rest.report.steps == 22);
  CHECK(rest.counted == 22);
}

TEST_CASE("what Rollback keeps is saved, so that a resumed run can go back") {
  fr::StateDict store;
  fr::Rollback<fr::Every<4>> const rollback{};
  Ran const left = run({.store = &store}, {.leave_at = 6}, {}, rollback);
  REQUIRE(left.report.preempted);
  Ran const rest = run({.store = &store}, {.nan_at = 1}, {}, rollback);
  CHECK(rest.report.steps == 21);  // of 22 windows, the bad one is skipped
  REQUIRE(rest.report.warnings.size() == 1);
  CHECK(rest.report.warnings[0].find("step 4") != std::string::npos);
  // The same as that of a run which was not preempted.
  fr::StateDict none;
  Ran const whole = run({.store = &none}, {.nan_at = 7}, {}, rollback);
  CHECK(same_bits(rest.tensors, whole.tensors));
}

TEST_CASE("a preempted run whose save fails reports that with its exit code") {
  fr::StateDict store;
  Ran const left = run({.store = &store, .is_full = true}, {.leave_at = 5});
  CHECK(left.report.preempted);
  CHECK(left.report.exit_code() == 74);
  CHECK_FALSE(left.report.unsaved.empty());
}

TEST_CASE("a run that ends and cannot be saved reports that with its exit code") {
  fr::StateDict store;
  Ran const ended = run({.store = &store, .is_full = true});
  CHECK_FALSE(ended.report.preempted);
  CHECK(ended.report.exit_code() == 74);
  CHECK_FALSE(ended.report.unsaved.empty());
}

TEST_CASE("a stop request in the event that resumes the run takes effect") {
  fr::StateDict store;
  run({.store = &store}, {.leave_at = 5});
  Ran const stopped = run({.store = &store}, {}, {.stop_at_begin = true});
  CHECK(stopped.report.steps == 5);
  CHECK(stopped.report.stopped_by == "outside.A");
}

}  // namespace frugal_test::outside_saves_to_memory
