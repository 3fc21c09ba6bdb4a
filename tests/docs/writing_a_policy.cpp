// SPDX-License-Identifier: Apache-2.0
// The tests of the policy in docs/writing_a_policy.md.
#include <doctest/doctest.h>

#include <frugal/frugal.hpp>

#include <filesystem>
#include <initializer_list>
#include <string>
#include <vector>

// Renames the example's main.
#define main main_of_example
#include "../../examples/writing_a_policy.cpp"
#undef main

namespace frugal_test::docs_writing_a_policy {

namespace fr = frugal;

TEST_CASE("StopBelow ends the run after the first epoch whose loss is below its goal") {
  fr::TensorDataset train(torch::ones({8, 1}), torch::ones({8, 1}), {.batch = 8});
  fr::Trainer trainer{torch::nn::Linear(1, 1), fr::MeanSquaredError{}, fr::Settings{.epochs = 500},
                      fr::Optimize<fr::SGD>{.lr = 0.1}, mine::StopBelow{.goal = 1e-3}};
  auto const report = trainer.fit(train);
  CHECK(report.stopped_by == "StopBelow");
  CHECK(report.epochs < 500);
  CHECK(report.train_loss < 1e-3);
}

// [begin test]
// The batch determines a step's loss; the weight is there only for the gradient.
struct Scripted {
  at::Tensor operator()(torch::nn::Linear& net, at::Tensor const& loss) const {
    return loss.mean() + 0 * net->weight.sum();
  }
};

fr::Report run(std::initializer_list<float> losses, mine::LossSpike<fr::Every<1>> policy) {
  std::vector<at::Tensor> batches;
  for (float const loss : losses) batches.push_back(at::full({1}, loss));
  fr::Trainer trainer{
      torch::nn::Linear(1, 1),        Scripted{}, fr::Settings{}, fr::Optimize<fr::Nothing>{},
      fr::Log<>{.path = "/dev/null"}, policy};
  return trainer.fit(batches);
}

TEST_CASE("LossSpike ends the run at the first loss above ratio times the running mean") {
  auto const report = run({1, 1, 1, 2.9F, 9, 1}, {.ratio = 3, .keep = 0.5, .grace = 2});
  CHECK(report.steps == 5);
  CHECK(report.stopped_by == "LossSpike");
  REQUIRE(report.warnings.size() == 1);
}

TEST_CASE("LossSpike ignores a spike within its grace") {
  auto const report = run({1, 9, 1, 1}, {.ratio = 3, .grace = 2});
  CHECK(report.steps == 4);
  CHECK(report.stopped_by.empty());
}

TEST_CASE("LossSpike refuses a ratio of 1") {
  CHECK_THROWS_AS(run({1, 1}, {.ratio = 1}), fr::SettingsError);
}
// [end test]

// [begin resume]
// Saves everything at one step and ends the run, or loads everything when fit begins.
struct Interrupt {
  struct kind : fr::optional_kind {
    static constexpr std::string_view name = "Interrupt";
  };
  using listens = fr::list<fr::on::fit_begin, fr::on::step>;
  using after = fr::list<fr::kinds::optimizer, mine::kinds::loss_spike>;

  fr::StateDict* save = nullptr;
  fr::StateDict const* load = nullptr;

  class State {
   public:
    using transient = void;
    explicit State(Interrupt const& settings) : save_(settings.save), load_(settings.load) {}

    void on_fit_begin(fr::FitBegin& phase) {
      if (!load_) return;
      fr::StateReader reader(*load_);
      phase.persist(reader);
    }
    fr::flow on_step(fr::Step& phase) {
      if (!save_ || phase.counters().step != 3) return fr::flow::proceed;
      fr::StateWriter writer(*save_);
      phase.persist(writer);
      return fr::flow::stop;
    }

   private:
    fr::StateDict* save_;
    fr::StateDict const* load_;
  };
};

TEST_CASE("LossSpike remembers after a resume what it saw before") {
  std::vector<at::Tensor> batches;
  for (float const loss : {1.0F, 1.0F, 1.0F, 9.0F, 1.0F}) batches.push_back(at::full({1}, loss));
  auto const fit = [&](Interrupt interrupt) {
    fr::Trainer trainer{torch::nn::Linear(1, 1),
                        Scripted{},
                        fr::Settings{},
                        fr::Optimize<fr::Nothing>{},
                        fr::Log<>{.path = "/dev/null"},
                        mine::LossSpike<fr::Every<1>>{.grace = 3},
                        interrupt};
    return trainer.fit(batches);
  };
  fr::StateDict saved;
  CHECK(fit({.save = &saved}).steps == 3);
  auto const resumed = fit({.load = &saved});
  CHECK(resumed.steps == 4);
  CHECK(resumed.stopped_by == "LossSpike");
}
// [end resume]

TEST_CASE("the example ends its diverging run") {
  auto const folder = std::filesystem::temp_directory_path() / "frugal-docs-writing-a-policy";
  std::filesystem::create_directories(folder);
  std::filesystem::current_path(folder);
  CHECK(main_of_example() == 0);
  std::ifstream log("runs/writing_a_policy/metrics.jsonl");
  std::string last;
  for (std::string line; std::getline(log, line);) last = line;
  std::filesystem::current_path(folder.parent_path());
  std::filesystem::remove_all(folder);
  CHECK(last.find("\"stopped_by\":\"LossSpike\"") != std::string::npos);
}

}  // namespace frugal_test::docs_writing_a_policy
