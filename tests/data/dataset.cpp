// SPDX-License-Identifier: Apache-2.0
#include <frugal/data/dataset.hpp>

#include "sources.hpp"

#include <doctest/doctest.h>

#include <frugal/data/mnist.hpp>
#include <frugal/data/pad.hpp>
#include <frugal/data/tensor_dataset.hpp>

#include <torch/data/datasets/map.h>
#include <torch/data/datasets/mnist.h>
#include <torch/data/datasets/tensor.h>
#include <torch/data/transforms/stack.h>
#include <torch/data/transforms/tensor.h>
#include <zlib.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace frugal_test::data_dataset {

using namespace frugal_test::data_sources;
using frugal::Batch;
using frugal::from_dataset;
namespace datasets = torch::data::datasets;
using frugal::from_samples;
using frugal::Pad;
using frugal::PaddedBatch;
using Sample = std::pair<at::Tensor, at::Tensor>;

/// Returns `numbered` sample by sample.
struct OneByOne : datasets::Dataset<OneByOne> {
  explicit OneByOne(std::int64_t n) : set(numbered(n)) {}
  torch::data::Example<> get(std::size_t i) override {
    auto const row = static_cast<std::int64_t>(i);
    return {set.data[row], set.target[row]};
  }
  std::optional<std::size_t> size() const override {
    return static_cast<std::size_t>(set.data.size(0));
  }
  Batch set;
};

/// Returns `numbered` in whole batches, and counts the calls.
struct WholeBatches : datasets::BatchDataset<WholeBatches, torch::data::Example<>> {
  explicit WholeBatches(std::int64_t n) : set(numbered(n)) {}
  torch::data::Example<> get_batch(c10::ArrayRef<std::size_t> indices) override {
    ++*asked;
    auto const index =
        at::tensor(std::vector<std::int64_t>(indices.begin(), indices.end()), at::kLong);
    return {set.data.index_select(0, index), set.target.index_select(0, index)};
  }
  std::optional<std::size_t> size() const override {
    return static_cast<std::size_t>(set.data.size(0));
  }
  Batch set;
  std::shared_ptr<int> asked = std::make_shared<int>(0);
};

struct Sizeless : OneByOne {
  using OneByOne::OneByOne;
  std::optional<std::size_t> size() const override { return std::nullopt; }
};

/// The four files of Fashion-MNIST, uncompressed as torch's MNIST requires.
TemporaryFolder const& plain_fashion() {
  static TemporaryFolder const folder;
  static bool const done = [] {
    for (std::string const name : {"train-images-idx3-ubyte", "train-labels-idx1-ubyte",
                                   "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"}) {
      gzFile const from = gzopen((fashion / (name + ".gz")).c_str(), "rb");
      REQUIRE(from != nullptr);
      std::ofstream to(folder.path() / name, std::ios::binary);
      std::vector<char> buffer(1U << 20);
      int count = 0;
      while ((count = gzread(from, buffer.data(), 1U << 20)) > 0) to.write(buffer.data(), count);
      gzclose(from);
    }
    return true;
  }();
  REQUIRE(done);
  return folder;
}

TEST_CASE("a data set with only get gives stacked batches, the same as a resident source") {
  auto source = from_dataset(OneByOne(50), {.batch = 8});
  static_assert(frugal::SizedSource<decltype(source)>);
  static_assert(std::is_same_v<frugal::batch_of<decltype(source)>, Batch>);
  frugal::TensorDataset resident(numbered(50), {.batch = 8});
  CHECK(source.samples() == 50);
  CHECK(source.batches() == 7);
  for (frugal::Cursor const cursor :
       {frugal::Cursor{.seed = 2}, {.seed = 2, .epoch = 1}, {.seed = 2, .position = 13}}) {
    CHECK(same(epoch_of(source, cursor), epoch_of(resident, cursor)));
  }
}

TEST_CASE("a data set's own get_batch is called once per batch") {
  WholeBatches dataset(50);
  auto const asked = dataset.asked;
  auto source = from_dataset(dataset, {.batch = 8});
  frugal::TensorDataset resident(numbered(50), {.batch = 8});
  CHECK(same(epoch_of(source, {.seed = 2}), epoch_of(resident, {.seed = 2})));
  CHECK(*asked == 7);
}

TEST_CASE("a data set is read in its own order without shuffling, with drop_last") {
  auto source = from_dataset(OneByOne(10), {.batch = 4, .shuffle = false, .drop_last = true});
  CHECK(samples_in(rest(source)) == std::vector<std::int64_t>{0, 1, 2, 3, 4, 5, 6, 7});
}

TEST_CASE("transforms that were mapped onto a data set are applied, with and without Stack") {
  using torch::data::transforms::Normalize;
  auto normalized = OneByOne(20).map(Normalize<>(2.0, 4.0));
  auto stacked = OneByOne(20).map(Normalize<>(2.0, 4.0)).map(torch::data::transforms::Stack<>());
  auto a = from_dataset(std::move(normalized), {.batch = 6});
  auto b = from_dataset(std::move(stacked), {.batch = 6});
  static_assert(std::is_same_v<frugal::batch_of<decltype(b)>, Batch>);
  frugal::TensorDataset plain(numbered(20), {.batch = 6});
  auto wanted = epoch_of(plain, {.seed = 1});
  // Normalize takes images, and adds a channel dimension to those without one.
  for (auto& batch : wanted) batch.data = ((batch.data - 2.0) / 4.0).unsqueeze(1);
  CHECK(same(epoch_of(a, {.seed = 1}), wanted));
  CHECK(same(epoch_of(b, {.seed = 1}), wanted));
}

TEST_CASE("a data set without targets gives bare tensors") {
  auto source = from_dataset(datasets::TensorDataset(at::arange(10).view({5, 2})),
                             {.batch = 3, .shuffle = false});
  static_assert(std::is_same_v<frugal::batch_of<decltype(source)>, at::Tensor>);
  auto const batches = rest(source);
  REQUIRE(batches.size() == 2);
  CHECK(at::equal(at::cat(batches), at::arange(10).view({5, 2})));
}

TEST_CASE("a data set's samples go through a collate function, in buckets by length if wanted") {
  /// Sample i has 1 + i mod 4 rows.
  struct Ragged : datasets::Dataset<Ragged> {
    torch::data::Example<> get(std::size_t i) override {
      auto const rows = static_cast<std::int64_t>(1 + i % 4);
      return {at::ones({rows, 2}), at::full({rows}, static_cast<std::int64_t>(i), at::kLong)};
    }
    std::optional<std::size_t> size() const override { return 24; }
  };
  std::vector<std::int64_t> lengths;
  for (std::int64_t i = 0; i < 24; ++i) lengths.push_back(1 + i % 4);
  auto plain = from_dataset(Ragged{}, {.batch = 6, .shuffle = false}, frugal::Pad{});
  static_assert(std::is_same_v<frugal::batch_of<decltype(plain)>, frugal::PaddedBatch>);
  CHECK(plain.next()->data.sizes() == at::IntArrayRef({6, 4, 2}));
  auto bucketed =
      from_dataset(Ragged{}, {.batch = 6}, frugal::Pad{}, frugal::Buckets{.lengths = lengths});
  CHECK(bucketed.batches() == 4);
  for (auto const& batch : rest(bucketed)) CHECK(batch.mask.all().item<bool>());
}

TEST_CASE("torch's MNIST becomes a resident source, with the bits of its get") {
  datasets::MNIST mnist(plain_fashion().path().string(), datasets::MNIST::Mode::kTest);
  auto source = from_dataset(mnist, {.batch = 64});
  static_assert(std::is_same_v<decltype(source), frugal::TensorDataset>);
  CHECK(source.samples() == 10'000);
  source.seek({.seed = 3});
  auto const batch = *source.next();
  frugal::Permutation const order(3, 0, 10'000);
  for (std::int64_t i = 0; i < 64; ++i) {
    auto const example = mnist.get(order(static_cast<std::uint64_t>(i)));
    CHECK(at::equal(batch.data[i], example.data));
    CHECK(at::equal(batch.target[i], example.target));
  }
}

TEST_CASE("torch's MNIST with transforms keeps them") {
  auto mapped = datasets::MNIST(plain_fashion().path().string(), datasets::MNIST::Mode::kTest)
                    .map(torch::data::transforms::Normalize<>(0.2860, 0.3530))
                    .map(torch::data::transforms::Stack<>());
  auto source = from_dataset(std::move(mapped), {.batch = 16, .shuffle = false});
  auto const raw = frugal::read_mnist(fashion, frugal::Split::test);
  auto const batch = *source.next();
  CHECK(batch.data.sizes() == at::IntArrayRef({16, 1, 28, 28}));
  CHECK(at::allclose(batch.data, (raw.data.slice(0, 0, 16) - 0.2860) / 0.3530));
  CHECK(at::equal(batch.target, raw.target.slice(0, 0, 16)));
}

TEST_CASE("read_mnist and torch's MNIST agree on every pixel and label") {
  datasets::MNIST const mnist(plain_fashion().path().string(), datasets::MNIST::Mode::kTest);
  auto const set = frugal::read_mnist(fashion, frugal::Split::test);
  CHECK(at::equal(set.data, mnist.images()));
  CHECK(at::equal(set.target, mnist.targets()));
}

TEST_CASE("a data set without a size, and one without samples, are refused") {
  CHECK_THROWS_AS(from_dataset(Sizeless(5)), frugal::DataError);
  CHECK_THROWS_AS(from_dataset(OneByOne(0)), frugal::EmptySourceError);
}

TEST_CASE("exceptions of get_batch reach the caller") {
  struct Broken : OneByOne {
    using OneByOne::OneByOne;
    std::vector<torch::data::Example<>> get_batch(c10::ArrayRef<std::size_t>) override {
      throw std::runtime_error("no such shard");
    }
  };
  auto source = from_dataset(Broken(5));
  CHECK_THROWS_WITH(source.next(), "no such shard");
}

/// Sample i has 1 + i mod 5 positions of the value i.
std::vector<Sample> ragged(std::int64_t n) {
  std::vector<Sample> all;
  for (std::int64_t i = 0; i < n; ++i) {
    all.emplace_back(at::full({1 + i % 5}, i, at::kLong), at::full({1 + i % 5}, i, at::kLong));
  }
  return all;
}

std::vector<std::int64_t> first_of(std::vector<PaddedBatch> const& batches) {
  std::vector<std::int64_t> all;
  for (auto const& batch : batches) {
    for (std::int64_t i = 0; i < batch.data.size(0); ++i) {
      all.push_back(batch.data[i][0].item<std::int64_t>());
    }
  }
  return all;
}

TEST_CASE("samples of one shape are stacked, in the order that a resident source has") {
  frugal::Batch const set = numbered(20);
  std::vector<Sample> samples;
  for (std::int64_t i = 0; i < 20; ++i) samples.emplace_back(set.data[i], set.target[i]);
  auto source = from_samples(samples, {.batch = 6});
  frugal::TensorDataset resident(set, {.batch = 6});
  std::vector<frugal::Batch> batches;
  for (auto& [data, target] : epoch_of(source, {.seed = 2})) batches.push_back({data, target});
  CHECK(same(batches, epoch_of(resident, {.seed = 2})));
  CHECK(source.samples() == 20);
}

TEST_CASE("ragged samples are padded batch by batch") {
  auto source = from_samples(ragged(9), {.batch = 4, .shuffle = false}, Pad{.value = -1});
  auto const batches = rest(source);
  REQUIRE(batches.size() == 3);
  CHECK(batches[0].data.sizes() == at::IntArrayRef({4, 4}));
  CHECK(batches[1].data.sizes() == at::IntArrayRef({4, 5}));
  CHECK(first_of(batches) == std::vector<std::int64_t>{0, 1, 2, 3, 4, 5, 6, 7, 8});
}

TEST_CASE("buckets measure the samples, pad less, and go on at any batch") {
  auto const made = [] {
    return from_samples(ragged(60), {.batch = 4}, Pad{}, frugal::Buckets{.pool = 15});
  };
  auto bucketed = made();
  auto plain = from_samples(ragged(60), {.batch = 4}, Pad{});
  auto const padding = [](auto& source) {
    std::int64_t all = 0;
    for (auto const& batch : epoch_of(source, {.seed = 1})) {
      all += batch.mask.numel() - batch.positions();
    }
    return all;
  };
  CHECK(padding(bucketed) == 0);
  CHECK(padding(plain) > 0);
  auto const whole = first_of(epoch_of(bucketed, {.seed = 1, .epoch = 4}));
  auto later = made();
  auto const left = first_of(epoch_of(later, {.seed = 1, .epoch = 4, .position = 20}));
  CHECK(left == std::vector(whole.begin() + 20, whole.end()));
}

TEST_CASE("a collate function of one's own takes the samples, and their numbers if it likes") {
  auto counting = from_samples(std::vector{at::ones({2}), at::ones({3})}, {.batch = 2},
                               [](std::vector<at::Tensor> const& some) { return at::cat(some); });
  CHECK(counting.next()->size(0) == 5);
  auto numbering = from_samples(
      std::vector{at::ones({2}), at::ones({3}), at::ones({1})}, {.batch = 2, .shuffle = false},
      [](std::vector<at::Tensor> const&, std::span<std::size_t const> which) {
        return at::tensor(std::vector<std::int64_t>(which.begin(), which.end()));
      });
  numbering.next();
  CHECK(numbering.next()->equal(at::tensor({2}, at::kLong)));
}

TEST_CASE("an error of a collate function names the sample by its number in the set") {
  auto samples = ragged(20);
  samples[13].first = at::ones({2}, at::kFloat);
  auto source = from_samples(samples, {.batch = 4, .shuffle = false}, Pad{});
  for (int i = 0; i < 3; ++i) source.next();
  CHECK_THROWS_WITH_AS(source.next(),
                       "frugal: samples of one batch differ in type (data of sample 13): it is [2] "
                       "Float, and that of sample 12 is [3] Long. Convert them in the data set.",
                       frugal::DataError);
}

TEST_CASE("no samples are refused") {
  CHECK_THROWS_AS(from_samples(std::vector<Sample>{}), frugal::EmptySourceError);
}

}  // namespace frugal_test::data_dataset
