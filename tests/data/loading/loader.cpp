// SPDX-License-Identifier: Apache-2.0
#include "data/sources.hpp"

#include <doctest/doctest.h>

#include <frugal/data/loading/loader.hpp>
#include <frugal/data/loading/transformed.hpp>
#include <frugal/data/pad.hpp>
#include <frugal/data/sampling/buckets.hpp>
#include <frugal/data/tensor_dataset.hpp>

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <signal.h>

namespace frugal_test::data_loader {

using namespace frugal_test::data_sources;
using frugal::Batch;
using frugal::Cursor;
using frugal::loader;
using frugal::SampleKey;
using frugal::TensorDataset;

/// The samples of `numbered`, one by one.
struct Numbered {
  Batch all;
  explicit Numbered(std::int64_t n) : all(numbered(n)) {}
  std::uint64_t size() const { return static_cast<std::uint64_t>(all.data.size(0)); }
  Batch get(std::uint64_t index) const {
    auto const i = static_cast<std::int64_t>(index);
    return {all.data[i], all.target[i]};
  }
};

using Default = frugal::Loader<Numbered>;
static_assert(frugal::SizedSource<Default> && frugal::PausableSource<Default> &&
              frugal::ConsumingSource<Default>);
static_assert(std::is_same_v<frugal::batch_of<Default>, Batch>);

TEST_CASE("a loader gives the batches of the resident set, with any number of workers") {
  for (int const workers : {0, 1, 2, 4, 8}) {
    for (bool const drop_last : {false, true}) {
      frugal::LoaderOptions const loading{.batch = 8, .drop_last = drop_last};
      auto source = loader(Numbered(203), loading, frugal::Stack{}, {.workers = workers});
      TensorDataset plain(numbered(203), loading);
      CHECK(source.samples() == plain.samples());
      CHECK(source.batches() == plain.batches());
      for (Cursor const cursor :
           {Cursor{.seed = 1}, {.seed = 1, .epoch = 1}, {.seed = 1, .position = 77}}) {
        CHECK(same(epoch_of(source, cursor), epoch_of(plain, cursor)));
        CHECK_FALSE(source.next().has_value());
      }
    }
  }
}

TEST_CASE("a loader without a seek is at the beginning of epoch 0 of seed 0") {
  auto source = loader(Numbered(40), {.batch = 8});
  TensorDataset plain(numbered(40), {.batch = 8});
  CHECK(same(rest(source), rest(plain)));
}

TEST_CASE("the position counts what was given, not what was read ahead") {
  auto source = loader(Numbered(50), {.batch = 8}, frugal::Stack{}, {.workers = 2, .depth = 6});
  source.seek({.seed = 1, .position = 16});
  CHECK(source.consumed() == 16);
  source.next();
  CHECK(source.consumed() == 24);
  while (source.next()) {
  }
  CHECK(source.consumed() == 50);
  source.seek({.seed = 1, .position = 3});
  CHECK(source.consumed() == 3);
  source.next();
  CHECK(source.consumed() == 11);
}

TEST_CASE("a loader that is moved in the middle continues") {
  auto source = loader(Numbered(40), {.batch = 8});
  source.seek({.seed = 2});
  source.next();
  auto moved = std::move(source);
  TensorDataset plain(numbered(40), {.batch = 8});
  CHECK(same(rest(moved), epoch_of(plain, {.seed = 2, .position = 8})));
}

TEST_CASE("seeking to an invalid position throws at once, and what was read ahead stays") {
  auto source = loader(Numbered(40), {.batch = 8}, frugal::Stack{}, {.workers = 2});
  source.seek({.seed = 2});
  CHECK_THROWS_AS(source.seek({.position = 41}), frugal::StateError);
  TensorDataset plain(numbered(40), {.batch = 8});
  CHECK(same(rest(source), epoch_of(plain, {.seed = 2})));
}

TEST_CASE("a loader takes another order, such as one of like lengths, and pads") {
  struct Ragged {
    std::uint64_t size() const { return 30; }
    at::Tensor get(std::uint64_t index) const {
      return at::full({static_cast<std::int64_t>(1 + index % 7)}, static_cast<double>(index));
    }
  };
  frugal::Buckets buckets;
  for (std::int64_t i = 0; i < 30; ++i) buckets.lengths.push_back(1 + i % 7);
  auto source = loader(Ragged{}, frugal::BucketPass(30, {.batch = 4}, buckets, "ragged"),
                       frugal::Pad{}, {.workers = 3});
  source.seek({.seed = 5});
  std::set<std::int64_t> seen;
  while (auto batch = source.next()) {
    for (std::int64_t i = 0; i < batch->data.size(0); ++i) {
      seen.insert(batch->data[i][0].item<std::int64_t>());
    }
  }
  CHECK(seen.size() == 30);
}

TEST_CASE("a random transform gives the same with any number of workers, and another each epoch") {
  auto const draw = [](Batch sample, SampleKey const& key) {
    sample.data = sample.data * 0 +
                  static_cast<double>(
                      frugal::detail::mix64(key.seed + 31 * key.epoch + 977 * key.index) % 1000);
    return sample;
  };
  auto const drawn = [&](int workers, Cursor const& cursor) {
    auto source = loader(frugal::Transformed(Numbered(60), draw), {.batch = 8, .shuffle = false},
                         frugal::Stack{}, {.workers = workers});
    return epoch_of(source, cursor);
  };
  auto const one = drawn(1, {.seed = 3});
  CHECK(same(one, drawn(0, {.seed = 3})));
  CHECK(same(one, drawn(5, {.seed = 3})));
  CHECK_FALSE(same(one, drawn(5, {.seed = 3, .epoch = 1})));
  // From the middle on, with another batch size: the same samples.
  auto source = loader(frugal::Transformed(Numbered(60), draw), {.batch = 5, .shuffle = false});
  source.seek({.seed = 3, .position = 16});
  CHECK(at::equal(source.next()->data, one[2].data.slice(0, 0, 5)));
}

TEST_CASE("a collate function gets the samples, and their numbers where it takes them") {
  struct Set {
    std::uint64_t size() const { return 5; }
    std::string get(std::uint64_t index) const { return std::to_string(index); }
  };
  auto const joined = [](std::vector<std::string> samples, std::span<std::size_t const> indices) {
    std::vector<at::Tensor> both;
    for (std::size_t i = 0; i < samples.size(); ++i) {
      both.push_back(at::tensor({std::stod(samples[i]), static_cast<double>(indices[i])}));
    }
    return at::stack(both);
  };
  auto source = loader(Set{}, {.batch = 3, .shuffle = false}, joined);
  CHECK(at::equal(*source.next(), at::tensor({0., 0., 1., 1., 2., 2.}).view({3, 2})));
  CHECK(at::equal(*source.next(), at::tensor({3., 3., 4., 4.}).view({2, 2})));
}

TEST_CASE("a collate function gets the keys of the samples where it takes them") {
  struct Set {
    std::uint64_t size() const { return 4; }
    int get(std::uint64_t index) const { return static_cast<int>(index); }
  };
  auto const keyed = [](std::vector<int> const& samples, std::span<SampleKey const> keys) {
    std::vector<std::int64_t> all;
    for (std::size_t i = 0; i < samples.size(); ++i) {
      all.push_back(samples[i]);
      for (std::uint64_t const part : {keys[i].index, keys[i].seed, keys[i].epoch}) {
        all.push_back(static_cast<std::int64_t>(part));
      }
    }
    return at::tensor(all);
  };
  auto source = loader(Set{}, {.batch = 2, .shuffle = false}, keyed);
  source.seek({.seed = 7, .epoch = 3, .position = 2});
  CHECK(at::equal(*source.next(), at::tensor(std::vector<std::int64_t>{2, 2, 7, 3, 3, 3, 7, 3})));
}

/// Knows in which threads it was read, and how.
struct Observed {
  struct Seen {
    std::mutex mutex;
    std::set<std::thread::id> threads;
    std::atomic<bool> gradients = false, signals = false;
    std::atomic<int> cores = 0;
  };
  std::shared_ptr<Seen> seen = std::make_shared<Seen>();

  std::uint64_t size() const { return 64; }
  at::Tensor get(std::uint64_t) const {
    std::lock_guard const lock(seen->mutex);
    seen->threads.insert(std::this_thread::get_id());
    seen->gradients = seen->gradients || at::GradMode::is_enabled();
    seen->cores = std::max(seen->cores.load(), at::get_num_threads());
    sigset_t blocked;
    ::pthread_sigmask(SIG_BLOCK, nullptr, &blocked);
    seen->signals = seen->signals || sigismember(&blocked, SIGTERM) != 1;
    return at::zeros({1});
  }
};

TEST_CASE(
    "workers are kept between epochs, take no signals, record no gradients and use one core") {
  int const ours = at::get_num_threads();
  Observed set;
  auto source = loader(set, {.batch = 4}, frugal::Stack{}, {.workers = 3});
  for (std::uint64_t epoch = 0; epoch < 4; ++epoch) {
    source.seek({.epoch = epoch});
    source.seek({.epoch = epoch, .position = 8});
    CHECK(rest(source).size() == 14);
  }
  CHECK(set.seen->threads.size() <= 3);
  CHECK_FALSE(set.seen->threads.contains(std::this_thread::get_id()));
  CHECK_FALSE(set.seen->gradients);
  CHECK_FALSE(set.seen->signals);
  CHECK(set.seen->cores == 1);
  CHECK(at::GradMode::is_enabled());
  CHECK(at::get_num_threads() == ours);
}

TEST_CASE("with no workers samples are read by the caller, without gradients") {
  Observed set;
  auto source = loader(set, {.batch = 4}, frugal::Stack{}, {.workers = 0});
  CHECK(set.seen->threads.empty());
  source.next();
  CHECK(set.seen->threads == std::set{std::this_thread::get_id()});
  CHECK_FALSE(set.seen->gradients);
  CHECK(at::GradMode::is_enabled());
}

TEST_CASE("no more samples are read ahead than depth and workers allow") {
  struct Counted {
    std::shared_ptr<std::atomic<int>> read = std::make_shared<std::atomic<int>>(0);
    std::uint64_t size() const { return 1000; }
    at::Tensor get(std::uint64_t) const {
      ++*read;
      return at::zeros({1});
    }
  };
  Counted set;
  auto source = loader(set, {.batch = 4}, frugal::Stack{}, {.workers = 2, .depth = 3});
  for (int given = 1; given <= 40; ++given) {
    source.next();
    CHECK(source.pause());
    CHECK(*set.read >= 4 * given);
    CHECK(*set.read <= 4 * (given + 5));
    source.resume();
  }
}

TEST_CASE("the report counts steps and the stages' time, and the advice is that of the report") {
  auto source = loader(frugal::Transformed(Numbered(40), [](Batch sample) { return sample; }),
                       {.batch = 4}, frugal::Stack{}, {.workers = 2});
  source.seek({});
  while (source.next()) {
  }
  frugal::LoaderReport const report = source.report();
  CHECK(report.steps == 10);
  CHECK(report.workers == 2);
  CHECK(report.seconds >= report.waiting_seconds);
  CHECK(report.waiting_seconds > 0);
  CHECK(report.stages.read > 0);
  CHECK(report.stages.transform > 0);
  CHECK(report.stages.collate > 0);
  CHECK(report.stages.copy == 0);
  CHECK(source.waited() == report.waiting_seconds);
  CHECK(source.warning() == report.warning());
}

/// A set of tables, as ParquetSet is one.
struct Grouped : Numbered {
  using Numbered::Numbered;
  std::uint64_t groups() const { return 5; }
  std::string group_warning(std::uint64_t at_once) const {
    return at_once == 1 ? std::string() : "from " + std::to_string(at_once) + " groups";
  }
};

TEST_CASE("the advice of a set of tables about its order is in that of its loader") {
  auto const advice = [](bool shuffle) {
    return loader(frugal::Transformed(Grouped(40), [](Batch sample) { return sample; }),
                  {.batch = 4, .shuffle = shuffle}, frugal::Stack{}, {.workers = 0})
        .warning();
  };
  CHECK(advice(true) == "from 5 groups");
  CHECK(advice(false).empty());
}

TEST_CASE("a batch below one and a set without samples are refused, with the set's name") {
  try {
    loader(Numbered(4), {.batch = 0}, frugal::Stack{}, {.name = "digits"});
    FAIL("nothing was thrown");
  } catch (frugal::SettingsError const& error) {
    CHECK(error.fault().where == "digits");
  }
  CHECK_THROWS_AS(loader(Numbered(0)), frugal::EmptySourceError);
  CHECK_THROWS_AS(loader(Numbered(4), {}, frugal::Stack{}, {.depth = 0}), frugal::SettingsError);
}

TEST_CASE("without a device page-locked memory has no effect") {
  auto source = loader(Numbered(40), {.batch = 8}, frugal::Stack{}, {.pin_memory = true});
  TensorDataset plain(numbered(40), {.batch = 8});
  source.seek({.seed = 2});
  CHECK(same(rest(source), epoch_of(plain, {.seed = 2})));
  CHECK(source.report().stages.copy == 0);
}

/// Makes whole batches, and counts them.
struct Whole : Numbered {
  std::shared_ptr<std::atomic<int>> batches = std::make_shared<std::atomic<int>>(0);
  std::uint64_t damaged = 1000;
  explicit Whole(std::int64_t n) : Numbered(n) {}
  Batch get(std::uint64_t index) const {
    if (index == damaged) throw frugal::DataError({"torn", "", "", ""});
    return Numbered::get(index);
  }
  Batch get_batch(std::span<std::uint64_t const> indices) const {
    ++*batches;
    std::vector<Batch> samples;
    for (std::uint64_t const index : indices) samples.push_back(get(index));
    return frugal::Stack{}(samples);
  }
};

TEST_CASE("a set that makes whole batches is asked for them, unless another function collates") {
  for (int const workers : {0, 2}) {
    Whole set(40);
    auto source = loader(set, {.batch = 8}, frugal::Stack{}, {.workers = workers});
    TensorDataset plain(numbered(40), {.batch = 8});
    CHECK(same(epoch_of(source, {.seed = 4}), epoch_of(plain, {.seed = 4})));
    CHECK(*set.batches == 5);

    auto own = loader(set, {.batch = 8},
                      [](std::vector<Batch> const& all) { return frugal::Stack{}(all); },
                      {.workers = workers});
    CHECK(same(epoch_of(own, {.seed = 4}), epoch_of(plain, {.seed = 4})));
    CHECK(*set.batches == 5);
  }
}

TEST_CASE("the sample of a whole batch that cannot be read is named, or skipped") {
  Whole set(40);
  set.damaged = 9;
  frugal::LoaderOptions const loading{.batch = 8, .shuffle = false};
  auto source = loader(set, loading, frugal::Stack{}, {.workers = 1});
  CHECK(source.next().has_value());
  try {
    source.next();
    FAIL("nothing was thrown");
  } catch (frugal::WorkerError const& error) {
    CHECK(error.fault().where.starts_with("sample 9, the batch at position 8 of epoch 0, "));
  }
  auto skipping =
      loader(set, loading, frugal::Stack{}, {.workers = 1, .on_error = frugal::OnError::Skip});
  std::vector<Batch> const batches = epoch_of(skipping, {});
  REQUIRE(batches.size() == 5);
  CHECK(samples_in({batches[1]}) == std::vector<std::int64_t>{8, 10, 11, 12, 13, 14, 15});
  CHECK(skipping.skipped().total == 1);
}

}  // namespace frugal_test::data_loader
