// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <ATen/CPUGeneratorImpl.h>
#include <torch/nn/modules/batchnorm.h>

#include <frugal/core/run/run_snapshot.hpp>
#include <frugal/core/run/run_state.hpp>

#include <stdexcept>

#include "support/running.hpp"

namespace frugal_test::run_snapshot {

using namespace frugal_test::support;
using frugal::Part;
using frugal::RunSnapshot;
using frugal::RunState;

at::Tensor generator() { return at::detail::getDefaultCPUGenerator().get_state(); }

/// A run of a module with dropout and statistics, and a function that changes it.
struct Subject {
  Subject() { module.norm->eval(); }
  void change() {
    module.train();
    module.forward(samples(8).data).sum().backward();
    module.eval();
    at::NoGradGuard const no_gradients;
    module.first->weight.add_(1);
    run.progress.go_to({.step = run.counters().step + 3});
    run.losses.add(at::ones({}), 1, run.counters());
  }
  Mlp module{Mlp::Shape{.dropout = 0.5, .norm = true}};
  frugal::Settings settings{};
  RunState run{.root = module, .settings = settings};
};

TEST_CASE("a snapshot's contents are restored: parameters, buffers, modes and generators") {
  Subject subject;
  auto const before = tensors_of(subject.module);
  at::Tensor const drawn = generator();
  RunSnapshot snapshot;
  snapshot.take(subject.run, Part::module | Part::modes | Part::generators);
  subject.change();
  CHECK_FALSE(same_bits(before, tensors_of(subject.module)));
  CHECK_FALSE(at::equal(drawn, generator()));
  snapshot.restore(subject.run);
  CHECK(same_bits(before, tensors_of(subject.module)));
  CHECK(at::equal(drawn, generator()));
  CHECK(subject.module.is_training());
  CHECK(subject.module.dropout->is_training());
  CHECK_FALSE(subject.module.norm->is_training());
  CHECK_FALSE(subject.module.first->weight.grad().defined());
  CHECK(subject.run.counters().step == 3);  // which the snapshot does not hold
}

TEST_CASE("a window is retried with its buffers, counters and losses, and with newer weights") {
  Subject subject;
  subject.run.losses.add(at::full({}, 5.0), 1, subject.run.counters());
  at::Tensor const mean = subject.module.norm->running_mean.clone();
  at::Tensor const weight = subject.module.first->weight.detach().clone();
  at::Tensor const drawn = generator();
  RunSnapshot snapshot;
  snapshot.take(subject.run, Part::passes);
  subject.module.norm->train();
  subject.change();
  CHECK_FALSE(at::equal(mean, subject.module.norm->running_mean));
  snapshot.restore(subject.run);
  CHECK(at::equal(mean, subject.module.norm->running_mean));
  CHECK(at::equal(weight + 1, subject.module.first->weight));
  CHECK(at::equal(drawn, generator()));
  CHECK(subject.run.counters().step == 0);
  CHECK(subject.run.losses.mean() == 5.0);
}

TEST_CASE("a part of a snapshot can be restored alone") {
  Subject subject;
  auto const before = tensors_of(subject.module);
  RunSnapshot snapshot;
  snapshot.take(subject.run, Part::module | Part::generators);
  subject.change();
  at::Tensor const drawn = generator();
  snapshot.restore(subject.run, Part::module);
  CHECK(same_bits(before, tensors_of(subject.module)));
  CHECK(at::equal(drawn, generator()));
}

TEST_CASE("a repeated snapshot allocates nothing") {
  Subject subject;
  RunSnapshot snapshot;
  snapshot.take(subject.run, Part::module);
  void const* const first = snapshot.module.tensors.at("first.weight").const_data_ptr();
  subject.change();
  snapshot.take(subject.run, Part::module);
  CHECK(snapshot.module.tensors.at("first.weight").const_data_ptr() == first);
  CHECK(at::equal(snapshot.module.tensors.at("first.weight"), subject.module.first->weight));
}

TEST_CASE("undone restores the run, and its error continues") {
  Subject subject;
  auto const before = tensors_of(subject.module);
  RunSnapshot snapshot;
  snapshot.take(subject.run, Part::module);
  frugal::detail::undone(snapshot, subject.run, [&] { subject.change(); });
  CHECK(same_bits(before, tensors_of(subject.module)));
  CHECK_THROWS_WITH_AS(frugal::detail::undone(snapshot, subject.run,
                                              [&] {
                                                subject.change();
                                                throw std::runtime_error("broken");
                                              }),
                       "broken", std::runtime_error);
  CHECK(same_bits(before, tensors_of(subject.module)));
}

TEST_CASE("an error is not lost when restoring fails as well") {
  Subject subject;
  RunSnapshot snapshot;
  snapshot.take(subject.run, Part::module);
  CHECK_THROWS_WITH_AS(frugal::detail::undone(snapshot, subject.run,
                                              [&] {
                                                snapshot.module.tensors.clear();
                                                throw std::runtime_error("broken");
                                              }),
                       "broken", std::runtime_error);
  CHECK_THROWS(snapshot.restore(subject.run));
}

TEST_CASE("a registered but undefined buffer is ignored") {
  torch::nn::BatchNorm1d norm(torch::nn::BatchNorm1dOptions(3).track_running_stats(false));
  CHECK_FALSE(norm->running_mean.defined());
  frugal::Settings const settings;
  RunState run{.root = *norm, .settings = settings};
  RunSnapshot snapshot;
  snapshot.take(run, Part::module | Part::window);
  {
    at::NoGradGuard const no_gradients;
    norm->weight.add_(1);
  }
  snapshot.restore(run);
  CHECK(norm->weight.equal(at::ones({3})));
}

TEST_CASE("a module without tensors has nothing to restore") {
  torch::nn::Dropout dropout;
  frugal::Settings const settings;
  RunState run{.root = *dropout, .settings = settings};
  RunSnapshot snapshot;
  snapshot.take(run, Part::module | Part::modes | Part::generators);
  snapshot.restore(run);
  CHECK(dropout->parameters().empty());
}

TEST_CASE("a snapshot that was saved and loaded restores the same as the original") {
  Subject subject;
  auto const before = tensors_of(subject.module);
  RunSnapshot snapshot;
  CHECK(snapshot.empty());
  snapshot.take(subject.run, Part::module);
  CHECK_FALSE(snapshot.empty());
  frugal::StateDict file;
  frugal::StateWriter writer(file);
  snapshot.persist(writer);
  subject.change();
  RunSnapshot loaded;
  frugal::StateReader reader(file);
  loaded.persist(reader);
  CHECK_FALSE(loaded.empty());
  loaded.restore(subject.run, Part::module);
  CHECK(same_bits(before, tensors_of(subject.module)));
}

/// Stands in for the states of two policies: each keeps a snapshot and archives it.
struct Keepers {
  RunSnapshot one;
  RunSnapshot other;

  template <class Archive>
  void persist(Archive& archive, bool = false, std::string_view = {}) {
    archive.scope("one", [&](auto& inner) { one.persist(inner); });
    archive.scope("other", [&](auto& inner) { other.persist(inner); });
  }
  static std::vector<std::string> names_of_first(std::size_t) { return {}; }
  static std::vector<frugal::detail::SavedScope> saved_scopes() {
    return {{"one", false}, {"other", false}};
  }
};

TEST_CASE("snapshots that policies keep are in a checkpoint, and not in each other") {
  Subject subject;
  Keepers keepers;
  subject.run.links.to_policies(frugal::PolicyStates::of(keepers), {});
  keepers.one.take(subject.run, Part::resumable);
  std::size_t const values = keepers.one.run.values.size();
  for (int k = 0; k < 3; ++k) {
    keepers.other.take(subject.run, Part::resumable);
    keepers.one.take(subject.run, Part::resumable);
  }
  CHECK(keepers.one.run.values.size() == values);
  CHECK(keepers.other.run.values.size() == values);
  RunSnapshot checkpoint;
  checkpoint.with_kept = true;
  checkpoint.take(subject.run, Part::resumable);
  CHECK(checkpoint.run.values.size() > 2 * values);
}

TEST_CASE("the previous snapshot is not lost to a bad loss") {
  Subject subject;
  Keepers keepers;
  subject.run.links.to_policies(frugal::PolicyStates::of(keepers), {});
  auto const before = tensors_of(subject.module);
  RunSnapshot snapshot;
  snapshot.take(subject.run, Part::resumable);
  subject.change();
  subject.run.losses.postpone(std::make_exception_ptr(
      frugal::NonFiniteLossError({.what = "", .where = "", .why = "", .fix = ""}, {}, 0)));
  CHECK_THROWS_AS(snapshot.take(subject.run, Part::resumable), frugal::NonFiniteLossError);
  subject.run.losses.reset();
  snapshot.restore(subject.run);
  CHECK(same_bits(before, tensors_of(subject.module)));
  CHECK(subject.run.counters().step == 0);
}

TEST_CASE("a tensor that the module has gained since is named") {
  Subject subject;
  RunSnapshot snapshot;
  snapshot.take(subject.run, Part::module);
  subject.module.register_buffer("late", at::zeros({1}));
  CHECK_THROWS_WITH_AS(snapshot.restore(subject.run), doctest::Contains("(late)"),
                       frugal::StateError);
}

}  // namespace frugal_test::run_snapshot
