// SPDX-License-Identifier: Apache-2.0
// Exactly once per epoch: every set and every source x workers x kills and resumes x world sizes.
#include "data/loading/exactly_once.hpp"

#include <doctest/doctest.h>

#include <frugal/core/source/range.hpp>
#include <frugal/data/cache/cached.hpp>
#include <frugal/data/dataset.hpp>
#include <frugal/data/loading/prefetch.hpp>
#include <frugal/data/loading/transformed.hpp>
#include <frugal/data/mapped.hpp>
#include <frugal/data/shards/record_set.hpp>
#include <frugal/data/shards/shard_writer.hpp>
#include <frugal/data/shards/text_lines.hpp>
#include <frugal/data/tensor_dataset.hpp>
#include <frugal/data/text/packed.hpp>
#include <frugal/data/text/tokenise.hpp>

#include <array>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "data/sources.hpp"

namespace frugal_test::data_matrix {

using namespace frugal_test::data_sources;
using exactly_once::check_set;
using exactly_once::check_source;
using exactly_once::Ids;
using frugal::Batch;
using frugal::LoaderOptions;
using frugal::SampleKey;

/// Numbers, without tensors.
struct Plain {
  std::uint64_t size() const { return 61; }
  std::int64_t get(std::uint64_t index) const { return static_cast<std::int64_t>(index); }
};
struct PlainCase {
  static auto set() { return Plain{}; }
  static std::int64_t id(std::int64_t sample) { return sample; }
};

/// Examples of tensors.
struct Rows {
  Batch all = numbered(50);
  std::uint64_t size() const { return 50; }
  Batch get(std::uint64_t index) const {
    auto const i = static_cast<std::int64_t>(index);
    return {all.data[i], all.target[i]};
  }
};
struct RowsCase {
  static auto set() { return Rows{}; }
  static std::int64_t id(Batch const& sample) { return sample.target.item<std::int64_t>() / 10; }
};

/// A transform that draws random numbers, over one that does not.
struct TransformedCase {
  static auto set() {
    return frugal::Transformed(
        frugal::Transformed(Plain{}, [](std::int64_t n) { return std::to_string(n); }),
        [](std::string text, SampleKey const& key) {
          return std::pair{std::move(text), frugal::detail::mix64(key.seed + key.epoch)};
        });
  }
  static std::int64_t id(std::pair<std::string, std::uint64_t> const& sample) {
    return sample.second == frugal::detail::mix64(9) ? std::stoll(sample.first) : -1;
  }
};

/// Record shards, in whole batches with Stack and by sample here.
struct RecordsCase {
  static auto set() {
    static TemporaryFolder const folder;
    static bool const written = [] {
      frugal::ShardWriter writer(folder.path(), {.records_per_shard = 7, .block_bytes = 50});
      for (std::int64_t i = 0; i < 44; ++i) {
        writer.add(Batch{at::full({3}, i, at::kInt), at::scalar_tensor(i, at::kLong)});
      }
      return writer.close().shards.size() == 7;
    }();
    REQUIRE(written);
    return frugal::RecordSet<>(folder.path());
  }
  static std::int64_t id(Batch const& sample) {
    std::int64_t const id = sample.target.item<std::int64_t>();
    return sample.data[2].item<std::int64_t>() == id ? id : -1;
  }
};

/// Lines of a text file.
struct LinesCase {
  static auto set() {
    static TemporaryFolder const folder;
    static std::filesystem::path const path = [] {
      std::ofstream file(folder.path() / "lines.txt");
      for (int i = 0; i < 37; ++i) file << i << '\n';
      return folder.path() / "lines.txt";
    }();
    return frugal::TextLines(path);
  }
  static std::int64_t id(std::string const& line) { return std::stoll(line); }
};

/// A cache of a transform, which other loaders fill and read as well.
struct CachedCase {
  struct Named : Plain {
    std::string identity() const { return "numbers"; }
  };
  struct AsTensor {
    static constexpr int version = 1;
    std::string settings() const { return ""; }
    at::Tensor operator()(std::int64_t n) const { return at::full({2}, n, at::kLong); }
  };
  static auto set() {
    static TemporaryFolder const folder;
    static auto const all =
        frugal::cached(Named{}, AsTensor{}, {.folder = folder.path(), .out = nullptr});
    return all;
  }
  static std::int64_t id(at::Tensor const& sample) { return sample[1].item<std::int64_t>(); }
};

/// Sequences of packed documents, of which each begins with its number.
struct PackedCase {
  static auto set() {
    frugal::Documents documents;
    for (std::int32_t i = 0; i < 53; ++i) documents.append(std::array{i, 100, 101 + i % 2});
    return frugal::Packed(std::move(documents), {.length = 3});
  }
  static std::int64_t id(frugal::PackedBatch const& sample) {
    return sample.data[0].item<std::int64_t>();
  }
};

// Sets of other rooms are added here, or tested with check_set where their library is.
TEST_CASE_TEMPLATE("a set gives each sample once, with any workers, kills and world sizes", Case,
                   PlainCase, RowsCase, TransformedCase, RecordsCase, LinesCase, CachedCase,
                   PackedCase) {
  check_set<Case>();
}

Ids ids_of(Batch const& batch) { return samples_in({batch}); }

TEST_CASE("resident tensors give each sample once") {
  check_source(
      61, true, [](LoaderOptions loading) { return frugal::TensorDataset(numbered(61), loading); },
      ids_of);
}

TEST_CASE("a mapped and a prefetched source give each sample once") {
  check_source(
      61, true,
      [](LoaderOptions loading) {
        return frugal::Prefetch(frugal::Mapped(frugal::TensorDataset(numbered(61), loading),
                                               [](Batch b) { return b; }));
      },
      ids_of);
}

TEST_CASE("a prefetched loader gives each sample once") {
  check_source(
      50, true,
      [](LoaderOptions loading) { return frugal::Prefetch(frugal::loader(Rows{}, loading)); },
      ids_of);
}

std::vector<Batch> one_by_one(std::int64_t count) {
  Batch const all = numbered(count);
  std::vector<Batch> samples;
  for (std::int64_t i = 0; i < count; ++i) samples.push_back({all.data[i], all.target[i]});
  return samples;
}

TEST_CASE("samples in memory give each sample once, in shuffled order and by length") {
  check_source(
      61, true, [](LoaderOptions loading) { return frugal::from_samples(one_by_one(61), loading); },
      ids_of);
  check_source(
      61, false,
      [](LoaderOptions loading) {
        frugal::Buckets buckets;
        for (std::int64_t i = 0; i < 61; ++i) buckets.lengths.push_back(i % 5);
        return frugal::from_samples(one_by_one(61), loading, frugal::Stack{}, std::move(buckets));
      },
      ids_of);
}

TEST_CASE("a range of batches gives each sample once") {
  check_source(
      61, false,
      [](LoaderOptions loading) {
        frugal::TensorDataset all(numbered(61), loading);
        return frugal::as_source(epoch_of(all, {}));
      },
      ids_of);
}

}  // namespace frugal_test::data_matrix
