// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <frugal/policy/optimize.hpp>
#include <frugal/report/find_learning_rate.hpp>
#include <frugal/report/plan_memory.hpp>
#include <frugal/trainer.hpp>

#include "core/loop/stand_ins.hpp"
#include "support/running.hpp"

#include <functional>
#include <future>
#include <map>
#include <memory>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace frugal_test::loop_call_in_progress {

using namespace frugal;
using namespace frugal_test::loop;
using support::Mlp;
using support::Spy;
using Sgd = Optimize<SGD>;
using MlpPtr = std::shared_ptr<Mlp>;

at::Tensor generator() { return at::detail::getDefaultCPUGenerator().get_state(); }

MlpPtr with_dropout() { return std::make_shared<Mlp>(Mlp::Shape{.dropout = 0.3}); }

/// Six steps of a module with dropout; `at_step(number)` is called after each.
struct Outer {
  std::function<void(std::uint64_t)> at_step{};
  MlpPtr module = with_dropout();
  TensorDataset train{support::samples(48), {.batch = 8, .shuffle = true}};
  Trainer<MlpPtr, CrossEntropy, Sgd, Spy> trainer{module, CrossEntropy{}, Settings{.seed = 5},
                                                  Sgd{.lr = 0.1},
                                                  Spy{.each_step = [this](Counters const& at) {
                                                    if (at_step) at_step(at.step);
                                                  }}};

  std::vector<std::string> warnings{};

  std::map<std::string, at::Tensor> run() {
    Report const report = trainer.fit(train);
    CHECK(report.steps == 6);
    warnings = report.warnings;
    return support::tensors_of(*module);
  }
};

auto alone() {
  Outer outer;
  auto tensors = outer.run();
  CHECK(outer.warnings.empty());
  return tensors;
}

auto around_nested(std::function<void()> const& nested) {
  Outer outer{.at_step = [&](std::uint64_t step) {
    if (step == 3) nested();
  }};
  return outer.run();
}

template <class F>
std::string refusal(F&& f) {
  auto const error = thrown_by<ConcurrentFitError>(std::forward<F>(f));
  return error ? error->what() : "";
}

TEST_CASE("a fit leaves the generators as it has found them, also when it ends by an exception") {
  Outer outer;  // the layers of a new module draw
  at::manual_seed(77);
  at::Tensor const before = generator();
  outer.run();
  CHECK(at::equal(generator(), before));
  outer.at_step = [](std::uint64_t) { throw std::runtime_error("no"); };
  CHECK_THROWS_AS(static_cast<void>(outer.trainer.fit(outer.train)), std::runtime_error);
  CHECK(at::equal(generator(), before));
}

TEST_CASE("a fit, a range test and an evaluation inside of a fit change no bit of it") {
  auto const expected = alone();
  Outer inner, tested, read;
  std::ostringstream ignored;
  CHECK(support::same_bits(around_nested([&] { inner.run(); }), expected));
  CHECK(support::same_bits(
      around_nested([&] { find_learning_rate(tested.trainer, tested.train, {.steps = 10}); }),
      expected));
  CHECK(support::same_bits(around_nested([&] {
                             read.trainer.evaluate(read.train);
                             CHECK(plan_memory(read.trainer, support::samples(8)).peak > 0);
                             read.trainer.dry_run(read.train, ignored);
                           }),
                           expected));
  // The inner one is a run like any other, too.
  CHECK(support::same_bits(support::tensors_of(*inner.module), expected));
}

TEST_CASE("a fit inside of a fit may not train its module, and the trainer works afterwards") {
  std::string text, other_text, plan_text;
  Outer outer;
  outer.at_step = [&](std::uint64_t step) {
    if (step != 2) return;
    TensorDataset other(support::samples(16), {.batch = 8});
    text = refusal([&] { static_cast<void>(outer.trainer.fit(other)); });
    Trainer second{outer.module, CrossEntropy{}, Settings{}, Sgd{}};
    other_text = refusal([&] { static_cast<void>(second.fit(other)); });
    plan_text = refusal([&] { plan_memory(second, support::samples(8)); });
    CHECK(outer.trainer.evaluate(other)["loss"] > 0);  // reads only
  };
  auto const first = outer.run();
  CHECK(says(text, "a call in progress, fit, trains parameters of this module (fit)"));
  CHECK(says(text, "or train a copy of the module."));
  CHECK(text == other_text);
  CHECK(says(plan_text, "(plan_memory)"));
  CHECK(support::same_bits(first, alone()));
  outer.at_step = {};
  outer.run();
}

TEST_CASE("a source that a fit reads is read by no other call until that is over") {
  std::vector<std::string> texts;
  Outer outer, other;
  outer.at_step = [&](std::uint64_t step) {
    if (step != 2) return;
    texts.push_back(refusal([&] { other.trainer.evaluate(outer.train); }));
    texts.push_back(refusal([&] { static_cast<void>(other.trainer.fit(outer.train)); }));
    texts.push_back(
        refusal([&] { static_cast<void>(other.trainer.fit(other.train, outer.train)); }));
    std::ostringstream ignored;
    texts.push_back(refusal([&] { other.trainer.dry_run(outer.train, ignored); }));
  };
  CHECK(support::same_bits(outer.run(), alone()));
  REQUIRE(texts.size() == 4);
  for (std::string const& text : texts) {
    CHECK(says(text, "a call in progress, fit, reads this source"));
    CHECK(says(text, "Make another source over the same data."));
  }
  CHECK(outer.trainer.evaluate(outer.train)["loss"] > 0);
}

TEST_CASE("a validation source may be read between two validations") {
  MlpPtr const module = with_dropout();
  TensorDataset train(support::samples(16), {.batch = 8});
  TensorDataset valid(support::samples(16, 92), {.batch = 8});
  double inside = 0;
  Trainer<MlpPtr, CrossEntropy, Sgd, Spy> trainer{module, CrossEntropy{}, Settings{}, Sgd{}};
  trainer.policy<support::kinds::spy>().each_step = [&](Counters const&) {
    inside = trainer.evaluate(valid)["loss"];
  };
  Report const report = trainer.fit(train, valid);
  CHECK(report.last()["loss"] == inside);
}

TEST_CASE("a second thread may not train next to a fit, which goes on undisturbed") {
  std::string text;
  std::optional<std::string> alike;
  Outer other;
  auto const weights = around_nested([&] {
    std::thread([&] {
      text = refusal([&] { other.run(); });
      std::ostringstream ignored;
      alike = refusal([&] { other.trainer.dry_run(other.train, ignored); });
    }).join();
  });
  CHECK(says(text, "another thread of this process trains, in fit (fit)"));
  CHECK(says(text, "Make the calls one after the other, or in separate processes."));
  CHECK(says(*alike, "(dry_run)"));
  CHECK(support::same_bits(weights, alone()));
}

/// Gives its first batch at once, and the second when it may.
struct Waiting {
  std::future<void>* may;
  std::promise<void>* began;
  int at = 0;

  void seek(Cursor const&) { at = 0; }
  std::optional<Batch> next() {
    if (at == 2) return std::nullopt;
    if (at++ == 0) {
      began->set_value();
    } else {
      may->wait();
    }
    return support::samples(8);
  }
};

TEST_CASE("an evaluation in another thread gives a fit none of its numbers twice") {
  std::promise<void> may, began;
  std::future<void> until = may.get_future();
  Outer other;
  std::thread evaluation;
  Outer outer{.at_step = [&](std::uint64_t step) {
    if (step == 2) {
      evaluation = std::thread([&] {
        Waiting source{&until, &began};
        other.trainer.evaluate(source);
      });
      began.get_future().wait();
    }
    if (step == 4) {
      may.set_value();
      evaluation.join();
    }
  }};
  CHECK(support::same_bits(outer.run(), alone()));
}

TEST_CASE("a module that a fit trains is evaluated by no other thread") {
  std::string text;
  Outer outer;
  outer.at_step = [&](std::uint64_t step) {
    if (step != 1) return;
    std::thread([&] {
      TensorDataset other(support::samples(16), {.batch = 8});
      text = refusal([&] { outer.trainer.evaluate(other); });
    }).join();
  };
  outer.run();
  CHECK(says(text, "another thread uses this module, in fit (evaluate)"));
}

TEST_CASE("fits that agree, in two threads, must exchange through different processes") {
  using frugal::detail::CallInProgress;
  int one = 0, other = 0;
  auto const beside = [&](void const* exchanges) {
    return std::async(std::launch::async,
                      [exchanges] {
                        return refusal([&] {
                          CallInProgress const call(
                              {.name = "fit", .agrees = true, .exchanges = exchanges});
                        });
                      })
        .get();
  };
  CallInProgress const call({.name = "fit", .agrees = true, .exchanges = &one});
  CHECK(beside(&one).find("another thread of this process trains with the same processes") !=
        std::string::npos);
  CHECK(beside(&other) == "");
  CHECK(beside(nullptr) == "");  // a policy of the user's own that does not say it
}

}  // namespace frugal_test::loop_call_in_progress
