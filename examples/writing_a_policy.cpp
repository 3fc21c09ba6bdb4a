// SPDX-License-Identifier: Apache-2.0
// A policy from scratch, outside of frugal: LossSpike ends a run whose loss has jumped.
// docs/writing_a_policy.md goes through this file, tests/docs/writing_a_policy.cpp tests it.
#include <frugal/frugal.hpp>

#include <iostream>
#include <string>
#include <string_view>

namespace mine {

// [begin small]
/// Ends the run after an epoch whose mean loss is below a goal.
struct StopBelow {
  struct kind : frugal::optional_kind {
    static constexpr std::string_view name = "StopBelow";
  };
  using listens = frugal::list<frugal::on::epoch_end>;

  double goal = 0.1;

  struct State {
    using transient = void;  // there is nothing to save
    explicit State(StopBelow const& settings) : goal(settings.goal) {}
    frugal::flow on_epoch_end(frugal::EpochEnd& phase) {
      return phase.mean_loss() < goal ? frugal::flow::stop : frugal::flow::proceed;
    }
    double goal;
  };
};
// [end small]

// [begin kind]
namespace kinds {
struct loss_spike : frugal::optional_kind {
  static constexpr std::string_view name = "LossSpike";
  static constexpr frugal::Stage stage = frugal::Stage::decide;
};
}  // namespace kinds
// [end kind]

// [begin head]
/// Ends a run whose loss has jumped to a multiple of its running mean.
///
/// Lever   hours per run: a run that has diverged is not paid for to its end.
/// Cost    at its cadence one comparison and, with the losses on a device, one host sync.
/// State   the running mean and how many losses are in it; both survive a resume.
/// Errors  SettingsError for a ratio that is not above 1.
template <class Cadence = frugal::Every<10>>
struct LossSpike {
  static_assert(!Cadence::per_epoch,
                "frugal: LossSpike looks at steps. Write LossSpike<Every<100>>.");

  using kind = kinds::loss_spike;
  using listens = frugal::list<frugal::on::fit_begin, frugal::on::step>;

  FRUGAL_DIAGNOSTIC(without_log,
                    "frugal: LossSpike needs Log: a run that ends itself leaves a record of why. "
                    "Add Log<Every<10>>.");
  using needs = frugal::list<frugal::need<frugal::kinds::log, without_log>>;

  static constexpr frugal::About about{frugal::Term::hours_per_run,
                                       "one reading of the loss at its cadence"};

  Cadence every{};     ///< when it looks
  double ratio = 3.0;  ///< a loss above this many running means is a spike
  double keep = 0.9;   ///< share of the running mean that each look keeps
  int grace = 5;       ///< looks before the first verdict
  // [end head]

  // [begin state]
  class State {
   public:
    explicit State(LossSpike const& settings)
        : every_(settings.every),
          ratio_(settings.ratio),
          keep_(settings.keep),
          grace_(settings.grace) {}

    void on_fit_begin(frugal::FitBegin&) {
      if (ratio_ > 1) return;
      throw frugal::SettingsError({.what = "ratio is " + std::to_string(ratio_),
                                   .where = "LossSpike",
                                   .why = "every loss would be a spike",
                                   .fix = "Give more than 1; 3 is the default."});
    }

    frugal::flow on_step(frugal::Step& phase) {
      if (!every_.due_at_step(phase.counters())) return frugal::flow::proceed;
      double const loss = phase.last_loss();
      if (looks_ >= grace_ && loss > ratio_ * mean_) {
        phase.warn("LossSpike: the loss went from about " + std::to_string(mean_) + " to " +
                   std::to_string(loss) + "; lower the learning rate");
        return frugal::flow::stop;
      }
      mean_ = looks_ == 0 ? loss : keep_ * mean_ + (1 - keep_) * loss;
      ++looks_;
      return frugal::flow::proceed;
    }

    template <class Archive>
    void persist(Archive& archive) {
      archive("mean", mean_);
      archive("looks", looks_);
    }

   private:
    Cadence every_;
    double ratio_;
    double keep_;
    int grace_;
    double mean_ = 0;
    int looks_ = 0;
  };
  // [end state]
};

}  // namespace mine

// [begin use]
int main() {
  namespace fr = frugal;
  // A line through noisy points, and a learning rate that rises until the run diverges.
  torch::manual_seed(0);
  at::Tensor const x = torch::randn({1024, 4});
  at::Tensor const y = x.sum(1, /*keepdim=*/true) + 0.1 * torch::randn({1024, 1});
  fr::TensorDataset train(x, y, {.batch = 64});

  fr::Trainer trainer{torch::nn::Linear(4, 1),
                      fr::MeanSquaredError{},
                      fr::Settings{.run_dir = "runs/writing_a_policy", .epochs = 200},
                      fr::Optimize<fr::SGD>{.lr = 1.0},
                      fr::Schedule<fr::Warmup<2000>>{},
                      fr::Log<fr::Every<10>>{},
                      mine::LossSpike<fr::Every<10>>{.ratio = 5}};
  fr::explain(trainer);
  std::cout << trainer.fit(train) << '\n';
  return 0;
}
// [end use]
