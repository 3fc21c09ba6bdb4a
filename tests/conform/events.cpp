// SPDX-License-Identifier: Apache-2.0
// No policy changes the loop's events: which there are, how often, in which order.
#include <doctest/doctest.h>

#include "conform/policies.hpp"
#include "support/files.hpp"

namespace frugal_test::conform_events {

using namespace frugal_test::support;
using namespace frugal_test::conform;

struct counter_kind : frugal::optional_kind {
  static constexpr std::string_view name = "test.Counter";
};

/// Records every event as one letter.
struct Counter {
  using kind = counter_kind;
  using listens = frugal::all_hooks;
  using after = everything;

  std::string* out = nullptr;

  class State {
   public:
    using transient = void;
    explicit State(Counter const& counter) : out_(counter.out) {}

    void on_module(frugal::ModuleSetup&) { *out_ += 'm'; }
    template <class Next>
    void around_fit(frugal::FitRun const&, Next&& next) {
      *out_ += '{';
      next();
      *out_ += '}';
    }
    void on_fit_begin(frugal::FitBegin&) { *out_ += '('; }
    void on_ready(frugal::Ready&) { *out_ += 'r'; }
    template <class Next>
    void around_epoch(frugal::EpochRun const&, Next&& next) {
      *out_ += 'E';
      next();
      *out_ += 'e';
    }
    void on_window(frugal::WindowBegin&) { *out_ += 'w'; }
    template <class Next>
    void around_micro_batch(frugal::MicroBatchRun const& phase, Next&& next) {
      *out_ += phase.first ? 'F' : '.';
      next();
      *out_ += phase.last ? 'L' : '.';
    }
    void on_preempt(frugal::Preemption&) { *out_ += 'q'; }
    bool stop_requested(frugal::Phase const&) const { return false; }
    void on_epoch_begin(frugal::EpochBegin&) { *out_ += '['; }
    template <class Next>
    frugal::Loss around_forward(frugal::Forward const& phase, Next&& next) {
      *out_ += phase.training ? 'f' : 'v';
      return next();
    }
    void on_loss(frugal::LossReady&) { *out_ += 'l'; }
    void on_backward(frugal::Backward&) { *out_ += 'b'; }
    void on_gradients(frugal::Gradients&) { *out_ += 'g'; }
    void on_update(frugal::Update&) { *out_ += 'u'; }
    void on_step(frugal::Step&) { *out_ += 's'; }
    template <class Next>
    frugal::Metrics around_validate(frugal::ValidationRun const&, Next&& next) {
      *out_ += '<';
      frugal::Metrics metrics = next();
      *out_ += '>';
      return metrics;
    }
    void on_validated(frugal::Validated&) { *out_ += '!'; }
    void on_epoch_end(frugal::EpochEnd&) { *out_ += ']'; }
    void on_fit_end(frugal::FitEnd&) { *out_ += ')'; }
    void on_undo(frugal::WindowRetry&) { *out_ += 'x'; }
    void on_recorded(frugal::Recorded const&) {}  // a policy's event, not one of the loop's
    void on_saved(frugal::Saved const&) {}        // likewise

   private:
    std::string* out_;
  };
};

/// The events of `epochs` epochs of `batches` micro-batches in windows of `window`, by the loop's
/// rules alone. `every` is the validation's cadence in steps; 0 means once per epoch.
std::string expected(int epochs, int batches, int window, int valid_batches, int every) {
  std::string const validation =
      '<' + std::string(static_cast<std::size_t>(valid_batches), 'v') + ">!";
  // Two batches are tried before the first step.
  std::string text = "m{(vvr";
  int step = 0;
  for (int epoch = 0; epoch < epochs; ++epoch) {
    text += "E[";
    for (int batch = 0; batch < batches;) {
      text += 'w';
      for (int i = 0; i < window && batch < batches; ++i, ++batch) {
        bool const last = i + 1 == window || batch + 1 == batches;
        text += std::string(i == 0 ? "F" : ".") + "flb" + (last ? 'L' : '.');
      }
      text += "gu";
      ++step;
      // The observer runs after Validate, so it sees a step after that step's validation.
      if (every != 0 && step % every == 0) text += validation;
      text += 's';
    }
    text += 'w';  // the epoch ends when the next window has no batch
    if (every == 0) text += validation;
    text += "]e";
  }
  return text + ")}";
}

template <class... Ps>
std::string events(int epochs) {
  std::string text;
  TemporaryFolder folder;
  frugal::Trainer<std::shared_ptr<Mlp>, frugal::CrossEntropy, Ps..., Counter> trainer{
      std::make_shared<Mlp>(),
      {},
      {.run_dir = folder.path(), .epochs = static_cast<std::uint64_t>(epochs)},
      Counter{.out = &text}};
  prepare_all(trainer, frugal::list<Ps...>{});
  trainer.fit(frugal::TensorDataset(samples(14), {.batch = 2}),
              frugal::TensorDataset(samples(5, 92), {.batch = 2}));
  return text;
}

using frugal::Accumulate;
using frugal::AdamW;
using frugal::Optimize;

TEST_CASE("the bare loop has the events of its drawing, epoch by epoch") {
  CHECK(events<Optimize<AdamW>>(2) == expected(2, 7, 1, 3, 0));
  CHECK(events<Optimize<frugal::Nothing>>(3) == expected(3, 7, 1, 3, 0));
}

TEST_CASE("a window has one update for its micro-batches, the ragged last one too") {
  CHECK(events<Optimize<AdamW>, Accumulate<2>>(2) == expected(2, 7, 2, 3, 0));
  CHECK(events<Optimize<AdamW>, Accumulate<3>>(2) == expected(2, 7, 3, 3, 0));
  CHECK(events<Optimize<AdamW>, Accumulate<8>>(1) == expected(1, 7, 8, 3, 0));
}

TEST_CASE("no policy adds or removes an event, except DryRun, whose dry run has two forwards") {
  std::string const plain = expected(2, 7, 3, 3, 2);
  using Base = frugal::Recipe<Accumulate<3>, frugal::Validate<frugal::Every<2>>>;
  CHECK(events<Optimize<AdamW>, Accumulate<3>, frugal::Validate<frugal::Every<2>>>(2) == plain);
  CHECK(events<Optimize<frugal::Any>, Accumulate<3>, frugal::Validate<frugal::Every<2>>,
               frugal::Precision<frugal::BF16>, frugal::ClipNorm<>,
               frugal::Schedule<frugal::Warmup<3>, frugal::Cosine>>(2) == plain);
  CHECK(events<Optimize<AdamW>, Accumulate<3>, frugal::Validate<frugal::Every<2>>,
               frugal::EarlyStop<frugal::Patience<50>>, frugal::Log<>, frugal::Progress<>>(2) ==
        plain);
  CHECK(
      events<Optimize<AdamW>, Accumulate<3>, frugal::Validate<frugal::Every<2>>, frugal::DryRun<2>>(
          2) == "m{ff" + plain.substr(2));
  static_assert(Base::legal);
}

/// Requests a stop at a step.
struct stopper_kind : frugal::optional_kind {
  static constexpr std::string_view name = "test.Stopper";
};
struct Stopper {
  using kind = stopper_kind;
  using listens = frugal::list<frugal::on::step>;
  using before = frugal::list<counter_kind, frugal::kinds::validate>;
  std::uint64_t step = 0;

  class State {
   public:
    using transient = void;
    explicit State(Stopper const& stopper) : step_(stopper.step) {}
    frugal::flow on_step(frugal::Step& phase) {
      return phase.counters().step == step_ ? frugal::flow::stop : frugal::flow::proceed;
    }

   private:
    std::uint64_t step_;
  };
};

TEST_CASE("a stop request does not short-circuit the step's events and ends the run after it") {
  std::string text;
  frugal::Trainer trainer{std::make_shared<Mlp>(),
                          frugal::CrossEntropy{},
                          frugal::Settings{.epochs = 3},
                          Optimize<AdamW>{},
                          frugal::Validate<frugal::Every<2>>{},
                          Stopper{.step = 2},
                          Counter{.out = &text}};
  auto const report = trainer.fit(frugal::TensorDataset(samples(14), {.batch = 2}),
                                  frugal::TensorDataset(samples(5, 92), {.batch = 2}));
  CHECK(text == "m{(vvrE[wFflbLguswFflbLgu<vvv>!se)}");
  CHECK(report.stopped_by == "test.Stopper");
  CHECK(report.steps == 2);
  CHECK(report.epochs == 0);
}

}  // namespace frugal_test::conform_events
