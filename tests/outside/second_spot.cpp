// SPDX-License-Identifier: Apache-2.0
// A second Spot as a user writes it: a flag of the program requests the preemption.
#include <doctest/doctest.h>

#include <frugal/frugal.hpp>

#include "support/files.hpp"
#include "support/running.hpp"

#include <atomic>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

namespace frugal_test::outside_second_spot {

namespace fr = frugal;
using namespace support;

/// How a run was preempted.
struct Left {
  bool has_begun = false;
  bool saved = false;
  std::string by;
};

// [begin policy]
struct Leaves {
  struct kind : fr::optional_kind {
    static constexpr std::string_view name = "outside.Leaves";
  };
  using listens = fr::list<fr::query::stop_requested, fr::on::preempt>;

  std::atomic<bool> const* asked = nullptr;
  fr::Outcome<Left> outcome{};

  class State {
   public:
    using transient = void;
    explicit State(Leaves const& settings) : asked_(settings.asked), outcome_(&settings.outcome) {}

    bool stop_requested(fr::Phase const&) const { return *asked_; }
    void on_preempt(fr::Preemption& phase) {
      outcome_->set({phase.has_begun, phase.saved, phase.requested_by()});
    }

   private:
    std::atomic<bool> const* asked_;
    fr::Outcome<Left> const* outcome_;
  };
};
// [end policy]

/// Counts the events that it sees, over all processes of a run.
struct Told {
  std::uint64_t steps = 0, epochs = 0, validations = 0;
  friend bool operator==(Told const&, Told const&) = default;
};

template <fr::fixed_string Name>
struct Tally {
  struct kind : fr::optional_kind {
    static constexpr std::string_view name = Name;
  };
  using listens = fr::list<fr::on::step, fr::on::epoch_end, fr::on::validated>;

  fr::Outcome<Told> told{};

  class State {
   public:
    explicit State(Tally const& settings) : out_(&settings.told) {}

    void on_step(fr::Step&) { count(told_.steps); }
    void on_epoch_end(fr::EpochEnd&) { count(told_.epochs); }
    void on_validated(fr::Validated&) { count(told_.validations); }

    template <class Archive>
    void persist(Archive& archive) {
      archive("steps", told_.steps);
      archive("epochs", told_.epochs);
      archive("validations", told_.validations);
    }

   private:
    void count(std::uint64_t& what) {
      ++what;
      out_->set(told_);
    }
    Told told_;
    fr::Outcome<Told> const* out_;
  };
};
// Before Validate in the order of an event, and after it.
using Early = Tally<"outside.A">;
using Late = Tally<"outside.Z">;

struct Result {
  fr::Report report;
  std::map<std::string, at::Tensor> tensors;
  Told early, late;
  Left left;
  int training = 0;    ///< batches
  int validation = 0;  ///< batches
  int after = 0;       ///< batches begun after the request
};

/// Requests before the nth batch, counted over training and validation; 0: never.
struct Asking {
  int nth;
  std::atomic<bool>* asked;
  Result* result;

  fr::Loss operator()(std::shared_ptr<Mlp>& module, fr::Batch const& batch) const {
    if (*asked) ++result->after;
    ++(module->is_training() ? result->training : result->validation);
    if (result->training + result->validation == nth) *asked = true;
    return fr::CrossEntropy{}(module, batch);
  }
};

/// Two epochs of 11 batches, with a validation of 4 batches after every 5 steps.
template <class... Ps>
Result run(std::filesystem::path const& folder, int nth, Ps const&... policies) {
  Result result;
  std::atomic<bool> asked = false;
  auto const module = std::make_shared<Mlp>(Mlp::Shape{.dropout = 0.3, .norm = true});
  fr::Trainer trainer{module,
                      Asking{nth, &asked, &result},
                      fr::Settings{.run_dir = folder, .epochs = 2, .seed = 7},
                      fr::Optimize<fr::AdamW>{},
                      fr::Validate<fr::Every<5>, fr::SanityBatches<0>>{},
                      fr::Checkpoint<fr::Every<100>>{},
                      Early{},
                      Late{},
                      Leaves{.asked = &asked},
                      policies...};
  fr::TensorDataset train(samples(43), {.batch = 4, .shuffle = true});
  fr::TensorDataset valid(samples(15, 92), {.batch = 4});
  result.report = trainer.fit(train, valid);
  result.tensors = tensors_of(*module);
  if (auto const* told = trainer.template policy<Early::kind>().told.get()) result.early = *told;
  if (auto const* told = trainer.template policy<Late::kind>().told.get()) result.late = *told;
  if (auto const* left = trainer.template policy<Leaves::kind>().outcome.get()) result.left = *left;
  return result;
}

/// Wherever the request comes (before every batch, or every third), the resumed run ends like an
/// uninterrupted one.
template <class First, class Second>
void goes_on_exactly(int every, First&& first_run, Second&& second_run) {
  TemporaryFolder const folder;
  Result const whole = second_run(folder / "whole", 0);
  REQUIRE_FALSE(whole.report.preempted);
  REQUIRE(whole.early == Told{22, 2, 4});
  REQUIRE(whole.late == whole.early);
  for (int nth = 1; nth <= whole.training + whole.validation; nth += every) {
    CAPTURE(nth);
    auto const place = folder / std::to_string(nth);
    Result const first = first_run(place, nth);
    CHECK(first.report.preempted);
    CHECK(first.report.stopped_by == "outside.Leaves");
    CHECK(first.left.by == "outside.Leaves");
    CHECK(first.left.has_begun);
    CHECK(first.left.saved);
    CHECK(first.after == 0);
    Result const second = second_run(place, 0);
    CHECK_FALSE(second.report.preempted);
    CHECK(second.report.stopped_by.empty());
    CHECK(same_bits(second.tensors, whole.tensors));
    CHECK(second.report.train_loss == whole.report.train_loss);
    CHECK(first.training + second.training == whole.training);
    CHECK(second.early == whole.early);
    CHECK(second.late == whole.late);
    REQUIRE(second.report.validations.size() == whole.report.validations.size());
    for (std::size_t i = 0; i < whole.report.validations.size(); ++i) {
      CHECK(second.report.validations[i].metrics == whole.report.validations[i].metrics);
    }
  }
}

TEST_CASE("a run preempted before any batch stops after its step, is saved, and resumes exactly") {
  auto const same = [](auto const& folder, int nth) { return run(folder, nth); };
  goes_on_exactly(1, same, same);
}

TEST_CASE("it does so even if the resuming recipe has lost an observer, or gained one") {
  auto const plain = [](auto const& folder, int nth) { return run(folder, nth); };
  auto const logged = [](auto const& folder, int nth) {
    return run(folder, nth, fr::Log<fr::Every<1>>{}, fr::Throughput<fr::Every<4>>{});
  };
  goes_on_exactly(3, logged, plain);
  goes_on_exactly(3, plain, logged);
}

}  // namespace frugal_test::outside_second_spot
