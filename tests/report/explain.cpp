// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>
#include <torch/optim/sgd.h>

#include <frugal/frugal.hpp>
#include <frugal/report/explain_plan.hpp>

#include <algorithm>
#include <filesystem>
#include <sstream>
#include <string>
#include <string_view>

#include "support/running.hpp"

namespace frugal_test::trainer_explain {

using namespace frugal_test::support;

/// Policies of a user: one with a page of its own, and one that says nothing of itself.
struct Counted {
  struct kind : frugal::optional_kind {
    static constexpr std::string_view name = "Counted";
    static constexpr std::string_view page = "https://example.org/counted";
  };
  using listens = frugal::list<>;
  static constexpr frugal::About about{frugal::Term::price_per_hour, "one addition per step"};
};
template <int N>
struct Silent {
  struct kind : frugal::optional_kind {
    static constexpr std::string_view name = "Silent";
  };
  using listens = frugal::list<frugal::around::validate>;  // may add the metric that is watched
  struct State {
    explicit State(Silent const&) {}
    frugal::Metrics around_validate(frugal::ValidationRun const&, auto&& next) { return next(); }
  };
};

using Module = std::shared_ptr<Mlp>;
using Full = frugal::Trainer<
    Module, frugal::CrossEntropy, frugal::Optimize<frugal::AdamW>, frugal::ClipNorm<>,
    frugal::Schedule<frugal::Warmup<100>, frugal::Cosine>,
    frugal::EarlyStop<frugal::Patience<2>, frugal::Watch<"recall", frugal::Better::higher>>,
    frugal::Average<>, frugal::Checkpoint<frugal::Every<1, frugal::Epoch>>, Counted, Silent<3>>;

template <class Trainer>
std::string plan_of() {
  std::ostringstream out;
  frugal::explain<Trainer>(out);
  return out.str();
}

// The text is the same with every compiler. Events reach slots in their order, then observers.
TEST_CASE("the plan is a table of the policies as they are written, in the order of events") {
  std::string const expected =
      R"(AdamW + ClipNorm + Warmup<100> + Cosine + EarlyStop<Patience<2>, Watch<"recall",
    Better::higher>> + Ema + Checkpoint<Every<1, Epoch>> + Counted + Silent<3>
#  policy                  lever                cost                 docs/
1  ClipNorm<1.0>           runs to convergence  one norm and one     policy/clip.md
                                                product over the
                                                gradients per step
2  Optimize<AdamW>         hours per run        one fused kernel     policy/optimize.md
                                                per parameter group
                                                and step
3  Average<Ema<0.999>>     runs to convergence  the parameters once  policy/average.md
                                                more, and one
                                                operator at its
                                                cadence
4  Counted                 price per hour       one addition per     https://example.org/counted
                                                step
5  Silent<3>
6  Schedule<Warmup<100>,   runs to convergence  one curve on the     policy/schedule.md
   Cosine>                                      host per step
7  EarlyStop<Patience<2>,  runs to convergence  one comparison per   policy/early_stop.md
   Watch<"recall",                              validation
   Better::higher>>
8  Checkpoint<Every<1,     price per hour       at its cadence the   policy/checkpoint.md
   Epoch>>                                      writing of the
                                                state
defaults: Accumulate<1>, Eager, Precision<FP32>, Replicate<>, Validate<>
host syncs per step: 0
)";
  CHECK(plan_of<Full>() == expected);
}

TEST_CASE("no line of a plan is wider than 100 columns") {
  using Wide = frugal::Trainer<
      Module, frugal::CrossEntropy, frugal::Optimize<frugal::AdamW>, frugal::FlushDenormals,
      frugal::Precision<frugal::FromEnv<frugal::FP32, frugal::BF16, frugal::FP16>>,
      frugal::Schedule<frugal::Warmup<1000>, frugal::Constant<>, frugal::LinearDecay<0.1, 10000>>,
      frugal::Checkpoint<frugal::Every<1, frugal::Epoch>, frugal::Keep<5>,
                         frugal::KeepBest<frugal::WatchAccuracy, 3>, frugal::Async>,
      frugal::Validate<frugal::Every<500>, frugal::Accuracy>, frugal::KeepHostMemory,
      frugal::StartOn<frugal::Cpu, frugal::Steps<100>>, frugal::Throughput<>, frugal::Log<>>;
  std::istringstream lines(plan_of<Wide>());
  std::size_t longest = 0;
  for (std::string line; std::getline(lines, line);) longest = std::max(longest, line.size());
  CHECK(longest <= 100);
  CHECK(longest > 80);  // the table uses the room
}

TEST_CASE("every page that a plan names is there") {
  std::filesystem::path const docs = std::filesystem::path(FRUGAL_TEST_DIR).parent_path() / "docs";
  auto const there = [&]<class Kind>(std::type_identity<Kind>) {
    CAPTURE(std::string(Kind::page));
    CHECK(std::filesystem::exists(docs / Kind::page));
  };
  namespace k = frugal::kinds;
  auto const each = [&]<class... Kinds>(frugal::list<Kinds...>) {
    (there(std::type_identity<Kinds>{}), ...);
  };
  each(
      frugal::list<k::precision, k::accumulate, k::clip, k::optimizer, k::schedule, k::validate,
                   k::execution, k::activations, k::audit, k::auto_batch, k::average, k::checkpoint,
                   k::device, k::early_stop, k::flush_denormals, k::keep_host_memory, k::log,
                   k::progress, k::recompute, k::rollback, k::skip_non_finite, k::dry_run, k::spot,
                   k::start_on, k::stop_after, k::throughput>{});
}

TEST_CASE("cautions for this machine are in the plan") {
  std::ostringstream out;
  frugal::explain<
      frugal::Trainer<std::shared_ptr<Mlp>, frugal::CrossEntropy, frugal::Precision<frugal::BF16>>>(
      out);
  bool const has = out.str().find("caution: Precision<BF16>") != std::string::npos;
  CHECK(has == !frugal::Precision<frugal::BF16>::caution(/*on_gpu=*/false).empty());
}

TEST_CASE("products in 8 bits are cautioned against on a GPU, where they were measured as slower") {
  auto const explained = [](auto precision, std::string const& device) {
    std::ostringstream out;
    frugal::Trainer trainer{std::make_shared<Mlp>(), frugal::CrossEntropy{},
                            frugal::Settings{.device = device}, frugal::Optimize<frugal::SGD>{},
                            precision};
    frugal::explain(trainer, out);
    return out.str();
  };
  for (std::string const& text : {explained(frugal::Precision<frugal::INT8>{}, "cuda:99"),
                                  explained(frugal::Precision<frugal::FP8>{}, "cuda:99")}) {
    CHECK(text.find("times as long as FP32") != std::string::npos);
    CHECK(text.find("CPU") == std::string::npos);
  }
  CHECK(explained(frugal::Precision<frugal::FP8>{}, "cpu").find("nothing on a CPU") !=
        std::string::npos);
}

TEST_CASE("the plan of a trainer says first what the run is") {
  auto const first_line = [](frugal::Settings const& settings) {
    std::ostringstream out;
    frugal::Trainer trainer{std::make_shared<Mlp>(), frugal::CrossEntropy{}, settings,
                            frugal::Optimize<frugal::SGD>{}, frugal::ClipNorm<>{}};
    frugal::explain(trainer, out);
    return out.str().substr(0, out.str().find('\n'));
  };
  CHECK(first_line({}) == "SGD + ClipNorm: 83 parameters, 1 epoch, seed 0, on cpu");
  CHECK(first_line({.run_dir = "runs/demo", .epochs = 5, .steps = 90, .seed = 3, .name = "lean"}) ==
        "lean: 83 parameters, 5 epochs, at most 90 steps, seed 3, on cpu, in runs/demo");
  CHECK(first_line({.steps = 1}) == "SGD + ClipNorm: 83 parameters, 1 step, seed 0, on cpu");
  CHECK(first_line({.device = "cuda:99"}).ends_with(", on cuda:99"));
}

TEST_CASE("what the run does not come to is a caution, from the settings or from the source") {
  frugal::Trainer trainer{std::make_shared<Mlp>(),
                          frugal::CrossEntropy{},
                          frugal::Settings{.epochs = 2},
                          frugal::Optimize<frugal::SGD>{},
                          frugal::Schedule<frugal::Warmup<200>, frugal::Constant<>>{},
                          frugal::Average<frugal::Swa<frugal::From<3, frugal::Epoch>>>{},
                          frugal::Checkpoint<frugal::KeepEvery<1000>>{},
                          frugal::EarlyStop<frugal::GraceEpochs<2>>{}};
  auto const text_of = [](auto&& print) {
    std::ostringstream out;
    print(out);
    std::string text = out.str();
    // Long lines are wrapped.
    for (std::size_t at; (at = text.find("\n    ")) != std::string::npos;) text.replace(at, 5, " ");
    return text;
  };
  std::string const by_epochs = text_of([&](auto& out) { frugal::explain(trainer, out); });
  CHECK(by_epochs.find("caution: Schedule") == std::string::npos);
  CHECK(by_epochs.find("caution: Average: Swa averages from epoch 3 on, and the run ends after "
                       "epoch 2\n") != std::string::npos);
  CHECK(by_epochs.find("caution: EarlyStop: its grace period is 2 epochs, and the run ends with "
                       "its epoch 2: it watches no validation\n") != std::string::npos);
  frugal::TensorDataset train(samples(18), {.batch = 4});
  std::string const by_source =
      text_of([&](auto& out) { frugal::explain(trainer, train, {}, out); });
  std::string const warm_up =
      "caution: Schedule: Warmup ends at step 200, and the run ends at step 10: its last step has "
      "the factor 0.05\n";
  CHECK(by_source.find(warm_up) != std::string::npos);
  CHECK(by_source.find("caution: Schedule", by_source.find(warm_up) + 1) == std::string::npos);
  CHECK(by_source.find("caution: Checkpoint: KeepEvery saves and keeps each step that is a "
                       "multiple of 1000, and the run ends at step 10\n") != std::string::npos);
  CHECK(by_source.find("caution: Validate") == std::string::npos);
  trainer.settings().steps = 4;
  CHECK(text_of([&](auto& out) {
          frugal::explain(trainer, train, {}, out);
        }).find("caution: Validate: it measures after 1 epoch, and the run completes 0") !=
        std::string::npos);
  trainer.settings().steps = 10;
  CHECK(text_of([&](auto& out) { frugal::explain(trainer, out); }).find(warm_up) !=
        std::string::npos);
}

template <class... Ps>
std::string plan(Mlp::Shape const& shape, Ps const&... policies) {
  std::ostringstream out;
  frugal::Trainer trainer{std::make_shared<Mlp>(shape), frugal::CrossEntropy{}, frugal::Settings{},
                          policies...};
  frugal::explain(trainer, out);
  return out.str();
}

TEST_CASE("the checkpoint's size is weights, buffers and the optimizer's state for them") {
  // 6 x 8 + 8 + 8 x 3 + 3 = 83 floats.
  CHECK(plan({}, frugal::Optimize<frugal::SGD>{})
            .find("checkpoint: 332 B (332 B weights and buffers, 0 B optimizer)") !=
        std::string::npos);
  CHECK(plan({}, frugal::Optimize<frugal::SGD>{.momentum = 0.9}).find("332 B optimizer") !=
        std::string::npos);
  CHECK(plan({}, frugal::Optimize<frugal::AdamW>{}).find("checkpoint: 996 B") != std::string::npos);
  CHECK(plan({}, frugal::Optimize<frugal::AdamW>{.amsgrad = true}).find("996 B optimizer") !=
        std::string::npos);
  // Normalization adds 16 parameters, 16 running floats and a count of 8 bytes.
  std::string const norm = plan({.norm = true}, frugal::Optimize<frugal::SGD>{});
  CHECK(norm.find(": 99 parameters, ") != std::string::npos);
  CHECK(norm.find("checkpoint: 468 B (468 B weights and buffers") != std::string::npos);
}

TEST_CASE("the averaged weights are part of a checkpoint's size") {
  CHECK(
      plan({}, frugal::Optimize<frugal::AdamW>{}, frugal::Average<>{})
          .find(
              "checkpoint: 1.3 KiB (332 B weights and buffers, 664 B optimizer, 332 B average)") !=
      std::string::npos);
}

TEST_CASE("so are the weights that EarlyStop restores") {
  std::string const with = plan({}, frugal::Optimize<frugal::SGD>{},
                                frugal::EarlyStop<frugal::Patience<3>>{.restore_best = true});
  CHECK(with.find("checkpoint: 664 B (332 B weights and buffers, 0 B optimizer, 332 B best "
                  "weights)") != std::string::npos);
  CHECK(plan({}, frugal::Optimize<frugal::SGD>{}, frugal::EarlyStop<frugal::Patience<3>>{})
            .find("checkpoint: 332 B") != std::string::npos);
}

TEST_CASE("the size of a torch optimizer's state is not known beforehand, and the plan says so") {
  frugal::Optimize<frugal::Any> const any{.make = [](std::vector<at::Tensor> parameters) {
    return std::make_unique<torch::optim::SGD>(std::move(parameters), 0.1);
  }};
  std::string const text = plan({}, any);
  CHECK(text.find("checkpoint: 332 B weights and buffers, and what the optimizer keeps") !=
        std::string::npos);
  CHECK(text.find("host syncs per step: 1\n") != std::string::npos);
}

}  // namespace frugal_test::trainer_explain
