// SPDX-License-Identifier: Apache-2.0
// needs: tensorboard
#include <doctest/doctest.h>

#include <frugal/policy/checkpoint.hpp>
#include <frugal/policy/clip.hpp>
#include <frugal/policy/optimize.hpp>
#include <frugal/report/tensorboard.hpp>

#include "support/event_file.hpp"
#include "support/files.hpp"
#include "support/full_disk.hpp"
#include "support/scripted.hpp"

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace frugal_test::policy_tensorboard {

using namespace frugal_test::support;
using frugal::Every;
using frugal::TensorBoard;
using frugal::TensorBoardWriter;
namespace fr = frugal;

template <class... Ps>
auto trainer_of(fr::Settings settings, Ps const&... policies) {
  settings.epochs = 2;
  settings.seed = 5;
  return fr::Trainer{std::make_shared<Mlp>(), fr::CrossEntropy{}, settings, fr::Optimize<fr::SGD>{},
                     policies...};
}
auto train() { return fr::TensorDataset(samples(18), {.batch = 4}); }
auto valid() { return fr::TensorDataset(samples(9, 92), {.batch = 4}); }

TEST_CASE(
    "an event file has the scalars of each record, the texts, and histograms at their cadence") {
  TemporaryFolder const folder;
  TensorBoard<Every<2>, fr::WeightHistograms<Every<5>>, fr::GradientHistograms<Every<4>>> const
      board{.texts = {{"recipe", "**AdamW**"}}};
  auto trainer = trainer_of({.run_dir = folder.path()}, board, fr::ClipNorm<1.0>{});
  static_cast<void>(trainer.fit(train(), valid()));
  auto const files = files_in(folder / "tensorboard");
  REQUIRE(files.size() == 1);
  CHECK(files[0].filename().string().find("events.out.tfevents.") == 0);
  EventsFound const found = events_in(files[0]);
  CHECK(found.restarts.empty());
  for (std::string const tag :
       {"recipe@0", "step/loss@2", "step/loss@10", "step/lr_factor@4", "step/learning_rate@4",
        "step/gradient_norm@2", "step/memory_bytes@2", "epoch/loss@5", "validation/loss@10",
        "weights/first.weight@5", "weights/second.bias@10", "gradients/first.weight@4",
        "gradients/second.bias@8"}) {
    CAPTURE(tag);
    CHECK(found.has(tag));
  }
  CHECK_FALSE(found.has("step/loss@3"));
  CHECK_FALSE(found.has("weights/first.weight@4"));
  CHECK_FALSE(found.has("gradients/first.weight@2"));
}

TEST_CASE("a copy of the writer adds images, texts, scalars and histograms while a fit is open") {
  TemporaryFolder const folder;
  TensorBoardWriter const writer;
  writer.scalar("too/early", 0, 1);  // nothing is open
  Spy const spy{.each_step = [&](fr::Counters const& now) {
    if (now.step != 1) return;
    CHECK(writer.is_open());
    writer.image("picture", now.step, at::rand({3, 4, 5}));
    writer.image("grey", now.step, at::full({4, 5}, 7, at::kByte));
    writer.text("note", now.step, "hello");
    writer.scalar("mine", now.step, 0.5);
    writer.histogram("values", now.step, at::randn({10}));
    writer.scalar("caf\xe9", now.step, 1);  // in Latin-1
  }};
  auto trainer = trainer_of({.run_dir = folder.path()}, TensorBoard<>{.writer = writer}, spy);
  static_cast<void>(trainer.fit(train()));
  CHECK_FALSE(writer.is_open());
  EventsFound const found = events_in(writer.path());
  for (std::string const tag :
       {"picture@1", "grey@1", "note@1", "mine@1", "values@1", "caf\xef\xbf\xbd@1"}) {
    CAPTURE(tag);
    CHECK(found.has(tag));
  }
  CHECK_FALSE(found.has("too/early@0"));
  CHECK(writer.lost() == 0);
}

TEST_CASE("a tensor that is no image is refused") {
  TensorBoardWriter const writer;
  for (at::Tensor const& tensor : {at::Tensor(), at::rand({2, 4, 5}), at::rand({1, 3, 4, 5}),
                                   at::rand({3, 0, 5}), at::zeros({3, 4, 5}, at::kLong)}) {
    CHECK_THROWS_WITH_AS(writer.image("x", 0, tensor), doctest::Contains("is not an image but"),
                         fr::ShapeError);
  }
}

TEST_CASE("a removed folder changes no weight, and is reported once") {
  TemporaryFolder const folder;
  auto plain = trainer_of({});
  static_cast<void>(plain.fit(train(), valid()));
  Spy const remover{.each_step = [&](fr::Counters const& now) {
    if (now.step == 3) std::filesystem::remove_all(folder / "run");
  }};
  auto watched = trainer_of({.run_dir = folder / "run"},
                            TensorBoard<Every<1>, fr::WeightHistograms<Every<1>>>{}, remover);
  auto const report = watched.fit(train(), valid());
  CHECK(same_bits(tensors_of(*plain.module()), tensors_of(*watched.module())));
  REQUIRE(report.warnings.size() == 1);
  CHECK(report.warnings[0].find("TensorBoard could not write at step 4 (") == 0);
  auto const* const outcome = watched.template policy<fr::kinds::tensorboard>().outcome.get();
  REQUIRE(outcome != nullptr);
  CHECK(outcome->lost > 10);
}

TEST_CASE("a resumed run has another file, which voids what came after the checkpoint") {
  TemporaryFolder const folder;
  Frozen from;
  std::map<std::uint64_t, Frozen> after_step;
  auto first = trainer_of({.run_dir = folder.path()}, TensorBoard<Every<1>>{},
                          Resume{.after_step = &after_step, .stop_at = 7});
  static_cast<void>(first.fit(train(), valid()));
  auto second = trainer_of({.run_dir = folder.path()}, TensorBoard<Every<1>>{},
                           Resume{.from = &after_step.at(4)});
  static_cast<void>(second.fit(train(), valid()));
  auto const files = files_in(folder / "tensorboard");
  REQUIRE(files.size() == 2);
  CHECK(events_in(files[0]).restarts.empty());
  EventsFound const found = events_in(files[1]);
  CHECK(found.restarts == std::vector<std::int64_t>{5});
  CHECK(found.has("step/loss@5"));
  CHECK_FALSE(found.has("step/loss@4"));
}

/// Requests preemption after a step, as Spot does; 0: never.
struct PreemptedAt {
  struct kind : fr::optional_kind {
    static constexpr std::string_view name = "tensorboard.PreemptedAt";
  };
  using listens = fr::list<fr::on::step, fr::query::stop_requested>;
  std::uint64_t step = 0;

  class State {
   public:
    using transient = void;
    explicit State(PreemptedAt const& settings) : at_(settings.step) {}
    void on_step(fr::Step& phase) { step_ = phase.counters().step; }
    bool stop_requested(fr::Phase const&) const { return at_ != 0 && step_ == at_; }

   private:
    std::uint64_t at_;
    std::uint64_t step_ = 0;
  };
};

TEST_CASE("a run that is preempted twice has one end") {
  TemporaryFolder const folder;
  for (std::uint64_t const at : {3U, 6U, 0U}) {
    auto trainer = trainer_of({.run_dir = folder.path()}, TensorBoard<Every<1>>{},
                              fr::Checkpoint<>{}, PreemptedAt{.step = at});
    CHECK(trainer.fit(train()).preempted == (at != 0));
  }
  EventsFound const found = events_of_folder(folder / "tensorboard");
  CHECK(found.steps_of("step/loss") == std::vector<std::int64_t>{1, 2, 3, 4, 5, 6, 7, 8, 9, 10});
  CHECK(std::count_if(found.tags.begin(), found.tags.end(),
                      [](std::string const& tag) { return tag.starts_with("end/text@"); }) <= 1);
}

TEST_CASE("a resumed run's file comes after the earlier ones, whatever the clock says") {
  TemporaryFolder const folder;
  // Ahead by some decades; with a carry; all nines; more digits than the clock has.
  for (auto const& [there, expected] : std::vector<std::pair<std::string, std::string>>{
           {"4000000000.host.9.0", "4000000001"},
           {"4000000999.host.1.0.v2", "4000001000"},
           {"9999999999.host", "99999999990"},
           {"99999999990123.host", "99999999990124"}}) {
    std::string const name = std::string(TensorBoardWriter::prefix) + there;
    std::ofstream(folder / name) << "x";
    TensorBoardWriter const writer;
    writer.open(folder.path());
    writer.scalar("x", 1, 1);
    writer.close();
    std::string const made = writer.path().filename().string();
    CHECK(made > name);
    CHECK(made.starts_with(std::string(TensorBoardWriter::prefix) + expected + "."));
    CHECK(files_in(folder.path()).back().filename() == made);
    std::filesystem::remove(writer.path());
  }
}

TEST_CASE("the file of a process that starts within the same second comes after its predecessor") {
  TemporaryFolder const folder;
  TensorBoardWriter const first, second;
  for (TensorBoardWriter const* const each : {&first, &second}) {
    each->open(folder.path());
    each->scalar("x", 1, 1);
    each->close();
  }
  auto const number = [](TensorBoardWriter const& writer) {
    return writer.path().filename().string().substr(TensorBoardWriter::prefix.size(), 10);
  };
  // Ten digits, as in PyTorch: the second one is larger, whatever host and process are.
  CHECK(number(second) > number(first));
  CHECK(number(first).find_first_not_of("0123456789") == std::string::npos);
}

TEST_CASE("a second run in the same folder without a checkpoint voids the first one's curves") {
  TemporaryFolder const folder;
  for (int start = 0; start < 2; ++start) {
    auto trainer = trainer_of({.run_dir = folder.path()}, TensorBoard<Every<5>>{});
    static_cast<void>(trainer.fit(train(), valid()));
  }
  auto const files = files_in(folder / "tensorboard");
  REQUIRE(files.size() == 2);
  CHECK(events_in(files[0]).restarts.empty());
  CHECK(events_in(files[1]).restarts == std::vector<std::int64_t>{0});
  CHECK(events_of_folder(folder / "tensorboard").steps_of("step/loss") ==
        std::vector<std::int64_t>{5, 10});
}

TEST_CASE("on a full disk each event is whole or absent, and later ones follow") {
  TemporaryFolder const folder;
  auto plain = trainer_of({});
  static_cast<void>(plain.fit(train(), valid()));
  TensorBoardWriter const writer;
  std::optional<FullDisk> full;
  Spy const filler{.each_step = [&](fr::Counters const& now) {
    // Twenty bytes are less than a record: the write is cut in the middle.
    if (now.step == 3) full.emplace(std::filesystem::file_size(writer.path()) + 20);
    if (now.step == 7) full.reset();
  }};
  auto watched =
      trainer_of({.run_dir = folder.path()},
                 TensorBoard<Every<1>, fr::WeightHistograms<Every<1>>>{.writer = writer}, filler);
  auto const report = watched.fit(train(), valid());
  CHECK(same_bits(tensors_of(*plain.module()), tensors_of(*watched.module())));
  REQUIRE(report.warnings.size() == 1);
  CHECK(report.warnings[0].starts_with("TensorBoard could not write at step 4 ("));
  EventsFound const found = events_in(writer.path());
  std::vector<std::int64_t> const kept{1, 2, 3, 8, 9, 10};
  CHECK(found.steps_of("step/loss") == kept);
  CHECK(found.steps_of("weights/first.weight") == kept);
  CHECK(found.steps_of("validation/loss") == std::vector<std::int64_t>{10});
  auto const* const outcome = watched.template policy<fr::kinds::tensorboard>().outcome.get();
  REQUIRE(outcome != nullptr);
  CHECK(outcome->lost == 10);  // four steps, their histograms, an epoch and its validation
}

/// The disk is full from the beginning of the fit, after the sink's file has been made, to a step.
struct FullUntil {
  struct kind : fr::optional_kind {
    static constexpr std::string_view name = "tensorboard.FullUntil";
  };
  using listens = fr::list<fr::on::fit_begin, fr::on::step>;
  using after = fr::list<fr::kinds::tensorboard>;
  std::uint64_t step = 3;

  class State {
   public:
    using transient = void;
    explicit State(FullUntil const& settings) : until_(settings.step) {}
    void on_fit_begin(fr::FitBegin&) { full_.emplace(); }
    void on_step(fr::Step& phase) {
      if (phase.counters().step == until_) full_.reset();
    }

   private:
    std::uint64_t until_;
    std::optional<FullDisk> full_;
  };
};

TEST_CASE("what is void is said with the first record that can be written, and so are the texts") {
  TemporaryFolder const folder;
  TensorBoard<Every<1>> const board{.texts = {{"recipe", "AdamW"}}};
  auto first = trainer_of({.run_dir = folder.path()}, board);
  static_cast<void>(first.fit(train(), valid()));
  auto second = trainer_of({.run_dir = folder.path()}, board, FullUntil{});
  CHECK(second.fit(train(), valid()).warnings.size() == 1);
  auto const files = files_in(folder / "tensorboard");
  REQUIRE(files.size() == 2);
  EventsFound const found = events_in(files[1]);
  CHECK(found.restarts == std::vector<std::int64_t>{0});
  CHECK(found.has("recipe@4"));
  CHECK(events_of_folder(folder / "tensorboard").steps_of("step/loss") ==
        std::vector<std::int64_t>{4, 5, 6, 7, 8, 9, 10});
}

TEST_CASE("an optimizer that evaluates several times has one histogram of a step's gradients") {
  TemporaryFolder const folder;
  fr::Optimize<fr::Any> const lbfgs{.make = [](std::vector<at::Tensor> parameters) {
    return std::make_unique<torch::optim::LBFGS>(std::move(parameters),
                                                 torch::optim::LBFGSOptions(1.0).max_iter(5));
  }};
  fr::Trainer trainer{std::make_shared<Mlp>(), fr::CrossEntropy{},
                      fr::Settings{.run_dir = folder.path(), .steps = 4}, lbfgs,
                      TensorBoard<Every<1>, fr::GradientHistograms<Every<2>>>{}};
  static_cast<void>(trainer.fit(train()));
  EventsFound const found = events_in(files_in(folder / "tensorboard").at(0));
  CHECK(found.steps_of("gradients/first.weight") == std::vector<std::int64_t>{2, 4});
}

TEST_CASE("a place that is no folder is refused, and leaves no file") {
  TemporaryFolder const folder;
  std::ofstream(folder / "tensorboard") << "in the way";
  auto trainer = trainer_of({.run_dir = folder.path()}, TensorBoard<>{});
  CHECK_THROWS_AS(static_cast<void>(trainer.fit(train())), fr::DataError);
  auto nowhere = trainer_of({}, TensorBoard<>{});
  CHECK_THROWS_AS(static_cast<void>(nowhere.fit(train())), fr::SettingsError);
}

}  // namespace frugal_test::policy_tensorboard
