// SPDX-License-Identifier: Apache-2.0
// needs: archive arrow
// Sources of random kinds over files and memory, each behind one type, so that one trainer takes
// them all. Every sample is a number, by which a test knows it.
#pragma once

#include <frugal/core/source/batch.hpp>
#include <frugal/core/source/data_identity.hpp>
#include <frugal/core/source/range.hpp>
#include <frugal/core/source/source.hpp>
#include <frugal/data/arrow/csv.hpp>
#include <frugal/data/arrow/jsonl.hpp>
#include <frugal/data/arrow/parquet_set.hpp>
#include <frugal/data/arrow/parquet_writer.hpp>
#include <frugal/data/dataset.hpp>
#include <frugal/data/limited.hpp>
#include <frugal/data/loading/loader.hpp>
#include <frugal/data/loading/prefetch.hpp>
#include <frugal/data/mapped.hpp>
#include <frugal/data/sampling/buckets.hpp>
#include <frugal/data/sampling/order.hpp>
#include <frugal/data/sampling/weighted.hpp>
#include <frugal/data/shards/folder_set.hpp>
#include <frugal/data/shards/record_set.hpp>
#include <frugal/data/shards/shard_order.hpp>
#include <frugal/data/shards/shard_writer.hpp>
#include <frugal/data/shards/tar_set.hpp>
#include <frugal/data/shards/text_lines.hpp>
#include <frugal/data/tensor_dataset.hpp>

#include <ATen/ATen.h>

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "support/tar_files.hpp"

namespace frugal_test::same_samples {

namespace fs = std::filesystem;
using frugal::Batch;
using frugal::Cursor;
using frugal::DataIdentity;
using Ids = std::vector<std::int64_t>;

/// Any source of Batch, which says what it has consumed.
class AnySource {
 public:
  template <class S>
  explicit AnySource(std::in_place_t, S source)
      : held_(std::make_unique<Held<S>>(std::move(source))) {}

  void seek(Cursor const& cursor) { held_->seek(cursor); }
  std::optional<Batch> next() { return held_->next(); }
  std::uint64_t samples() const { return held_->samples(); }
  std::uint64_t batches() const { return held_->batches(); }
  std::uint64_t consumed() const { return held_->consumed(); }
  void identify(DataIdentity& to) const { held_->identify(to); }

 private:
  struct Base {
    Base() = default;
    Base(Base const&) = delete;
    Base& operator=(Base const&) = delete;
    virtual ~Base() = default;
    virtual void seek(Cursor const& cursor) = 0;
    virtual std::optional<Batch> next() = 0;
    virtual std::uint64_t samples() const = 0;
    virtual std::uint64_t batches() const = 0;
    virtual std::uint64_t consumed() const = 0;
    virtual void identify(DataIdentity& to) const = 0;
  };
  template <class S>
  struct Held final : Base {
    explicit Held(S source_) : source(std::move(source_)) {}
    void seek(Cursor const& cursor) override {
      source.seek(cursor);
      position = cursor.position;
    }
    std::optional<Batch> next() override {
      std::optional<Batch> batch = source.next();
      if (!batch) return batch;
      position = frugal::detail::position_after(source, position,
                                                static_cast<std::uint64_t>(batch->data.size(0)));
      return batch;
    }
    std::uint64_t samples() const override { return source.samples(); }
    std::uint64_t batches() const override { return source.batches(); }
    std::uint64_t consumed() const override { return position; }
    void identify(DataIdentity& to) const override { frugal::detail::identify(source, to); }
    S source;
    std::uint64_t position = 0;
  };
  std::unique_ptr<Base> held_;
};

/// Any set; a sample is its number, [1].
struct AnySet {
  std::function<std::uint64_t()> size_of;
  std::function<std::int64_t(std::uint64_t)> id_of;
  std::function<void(DataIdentity&)> say;

  std::uint64_t size() const { return size_of(); }
  Batch get(std::uint64_t index) const {
    return {at::full({1}, id_of(index), at::kLong), at::zeros({})};
  }
  void identify(DataIdentity& to) const { say(to); }
};

template <class Set, class Id>
AnySet any_set(Set set, Id id) {
  auto const shared = std::make_shared<Set const>(std::move(set));
  return {[shared] { return static_cast<std::uint64_t>(shared->size()); },
          [shared, id](std::uint64_t index) { return id(shared->get(index)); },
          [shared](DataIdentity& to) { frugal::detail::identify(*shared, to); }};
}

/// Any order.
class AnyOrder {
 public:
  using Slice = frugal::Pass::Slice;

  template <class O>
  explicit AnyOrder(std::in_place_t, O order)
      : held_(std::make_shared<Held<O>>(std::move(order))) {}

  void seek(Cursor const& cursor) { held_->seek(cursor); }
  Slice advance() { return held_->advance(); }
  void indices(Slice slice, std::span<std::uint64_t> out) { held_->indices(slice, out); }
  std::uint64_t samples() const { return held_->samples(); }
  std::uint64_t batches() const { return held_->batches(); }
  frugal::LoaderOptions const& loading() const { return held_->loading(); }
  std::uint64_t consumed() const { return held_->consumed(); }
  void identify(DataIdentity& to) const { held_->identify(to); }

 private:
  struct Base {
    Base() = default;
    Base(Base const&) = delete;
    Base& operator=(Base const&) = delete;
    virtual ~Base() = default;
    virtual void seek(Cursor const& cursor) = 0;
    virtual Slice advance() = 0;
    virtual void indices(Slice slice, std::span<std::uint64_t> out) = 0;
    virtual std::uint64_t samples() const = 0;
    virtual std::uint64_t batches() const = 0;
    virtual frugal::LoaderOptions const& loading() const = 0;
    virtual std::uint64_t consumed() const = 0;
    virtual void identify(DataIdentity& to) const = 0;
  };
  template <class O>
  struct Held final : Base {
    explicit Held(O order_) : order(std::move(order_)) {}
    void seek(Cursor const& cursor) override {
      order.seek(cursor);
      position = cursor.position;
    }
    Slice advance() override {
      Slice const slice = order.advance();
      if (slice.count != 0) position = slice.first + slice.count;
      return slice;
    }
    void indices(Slice slice, std::span<std::uint64_t> out) override { order.indices(slice, out); }
    std::uint64_t samples() const override { return order.samples(); }
    std::uint64_t batches() const override { return order.batches(); }
    frugal::LoaderOptions const& loading() const override { return order.loading(); }
    std::uint64_t consumed() const override {
      if constexpr (requires { order.consumed(); }) {
        return order.consumed();
      } else {
        return position;
      }
    }
    void identify(DataIdentity& to) const override { frugal::detail::identify_order(order, to); }
    O order;
    std::uint64_t position = 0;
  };
  std::shared_ptr<Base> held_;
};

/// Where the samples lie.
enum class Store { resident, samples, range, tar, records, csv, jsonl, parquet, folder, lines };
inline constexpr std::uint64_t stores = 10;
enum class Sorted { pass, buckets, weighted, shards };
inline constexpr std::uint64_t orders = 4;

/// Adds a number that a version decides: another version gives other samples.
struct Shift {
  std::int64_t by = 0;
  Batch operator()(Batch batch) const {
    batch.data = batch.data + by;
    return batch;
  }
  std::string identity() const { return "shift by " + std::to_string(by); }
};

/// A data set and how it is read.
struct Spec {
  Store store = Store::resident;
  Sorted order = Sorted::pass;
  std::vector<Ids> shards{};  ///< the numbers of the samples; stores without shards join them
  frugal::LoaderOptions loading{};
  frugal::ShuffleWindow window{};
  std::int64_t pool = 2;
  std::uint64_t weights = 1;  ///< seed of the weights
  int workers = 0;
  std::size_t depth = 1;
  bool prefetch = false;
  std::uint64_t limit = 0;  ///< batches; 0: none
  std::int64_t shift = 0;
  int rank = 0, world = 1;

  /// Stores that are read by index, so that a loader can have any order of them.
  bool is_set() const { return store >= Store::tar; }
  bool is_sharded() const {
    return store == Store::tar || store == Store::records || store == Store::parquet ||
           store == Store::lines;
  }
  Ids all() const {
    Ids joined;
    for (Ids const& shard : shards) joined.insert(joined.end(), shard.begin(), shard.end());
    return joined;
  }
};

inline std::string padded_number(std::int64_t number) {
  std::string const digits = std::to_string(number);
  return std::string(8 - digits.size(), '0') + digits;
}
inline std::int64_t number_in(std::string_view text) {
  std::int64_t number = -1;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

/// Writes the files of a data set to a new folder.
inline void write(Spec const& spec, fs::path const& folder) {
  fs::create_directories(folder);
  if (spec.store == Store::csv || spec.store == Store::jsonl) {
    std::ofstream file(folder / "all");
    if (spec.store == Store::csv) file << "id\n";
    for (std::int64_t const id : spec.all()) {
      if (spec.store == Store::csv) file << id << '\n';
      if (spec.store == Store::jsonl) file << "{\"id\": " << id << "}\n";
    }
    return;
  }
  if (spec.store == Store::records) {
    // All but the last shard are of one size, so the shards of the spec are not those here.
    frugal::ShardWriter writer(folder / "records",
                               {.records_per_shard = spec.shards.front().size()});
    for (std::int64_t const id : spec.all()) writer.add(at::full({1}, id, at::kLong));
    writer.close();
    return;
  }
  std::size_t at = 0;
  for (std::size_t i = 0; i < spec.shards.size(); ++i) {
    std::string const name = "shard-" + std::to_string(i);
    if (spec.store == Store::parquet) {
      frugal::ParquetWriter writer(folder / (name + ".parquet"), {.rows_per_group = 4});
      for (std::int64_t const id : spec.shards[i]) {
        std::vector<std::pair<std::string, frugal::Cell>> cells;
        cells.emplace_back("id", frugal::Cell(id));
        writer.add(frugal::Row(std::move(cells)));
      }
      writer.close();
      continue;
    }
    if (spec.store == Store::folder) fs::create_directories(folder / "root" / name);
    std::string text;
    for (std::int64_t const id : spec.shards[i]) {
      std::string const key = padded_number(static_cast<std::int64_t>(at++));
      if (spec.store == Store::tar) text += support::tar_member(key + ".txt", padded_number(id));
      if (spec.store == Store::lines) text += padded_number(id) + "\n";
      if (spec.store == Store::folder) {
        std::ofstream(folder / "root" / name / (key + ".txt")) << padded_number(id);
      }
    }
    if (spec.store == Store::tar) text += support::tar_end();
    if (spec.store != Store::folder) support::write_bytes(folder / name, text);
  }
}

inline std::vector<fs::path> shard_files(Spec const& spec, fs::path const& folder) {
  std::vector<fs::path> files;
  for (std::size_t i = 0; i < spec.shards.size(); ++i) {
    files.push_back(folder / ("shard-" + std::to_string(i)));
    if (spec.store == Store::parquet) files.back() += ".parquet";
  }
  return files;
}

/// With the sizes of its shards, if it has any.
inline std::pair<AnySet, std::vector<std::uint64_t>> set_of(Spec const& spec,
                                                            fs::path const& folder) {
  auto const id_of_row = [](frugal::Row const& row) { return row.integer("id"); };
  auto const sharded = [](auto set, auto id) {
    std::vector<std::uint64_t> sizes = set.shard_sizes();
    return std::pair(any_set(std::move(set), id), std::move(sizes));
  };
  switch (spec.store) {
    case Store::tar:
      return sharded(frugal::TarSet(shard_files(spec, folder), {.keep_index = false}),
                     [](frugal::TarSample const& sample) { return number_in(sample.text("txt")); });
    case Store::records:
      return sharded(frugal::RecordSet<at::Tensor>(folder / "records"),
                     [](at::Tensor const& record) { return record.item<std::int64_t>(); });
    case Store::parquet:
      return sharded(frugal::ParquetSet(shard_files(spec, folder)), id_of_row);
    case Store::lines:
      return sharded(frugal::TextLines(shard_files(spec, folder)),
                     [](std::string const& line) { return number_in(line); });
    case Store::csv:
      return {any_set(frugal::read_csv(folder / "all"), id_of_row), {}};
    case Store::jsonl:
      return {any_set(frugal::read_jsonl(folder / "all"), id_of_row), {}};
    default:
      return {any_set(frugal::FolderSet(folder / "root"),
                      [](frugal::LabelledFile const& file) { return number_in(file.bytes); }),
              {}};
  }
}

inline AnyOrder order_of(Spec const& spec, std::uint64_t samples,
                         std::vector<std::uint64_t> const& sizes) {
  auto const shared = [&](auto order) {
    if (spec.world == 1) return AnyOrder(std::in_place, std::move(order));
    return AnyOrder(std::in_place,
                    frugal::Shared(std::move(order), {.rank = spec.rank, .world = spec.world}));
  };
  std::vector<std::int64_t> lengths;
  std::vector<double> weights;
  for (std::uint64_t i = 0; i < samples; ++i) {
    lengths.push_back(static_cast<std::int64_t>(i * 7 % 5));
    weights.push_back(1 + static_cast<double>(i * spec.weights % 3));
  }
  switch (spec.order) {
    case Sorted::buckets:
      return shared(frugal::BucketPass(samples, spec.loading, {lengths, spec.pool}, "set"));
    case Sorted::weighted:
      return shared(frugal::WeightedPass(weights, spec.loading));
    case Sorted::shards:
      if (!sizes.empty()) {
        return shared(frugal::ShardOrder(sizes, spec.loading, spec.window, "set"));
      }
      break;
    case Sorted::pass:
      break;
  }
  return shared(frugal::Pass(samples, spec.loading, "set"));
}

/// A range of batches, with the batches.
class KeptRange {
 public:
  explicit KeptRange(std::vector<Batch> batches)
      : batches_(std::make_unique<std::vector<Batch> const>(std::move(batches))),
        source_(frugal::as_source(*batches_)) {}
  void seek(Cursor const& cursor) { source_.seek(cursor); }
  std::optional<Batch> next() { return source_.next(); }
  std::uint64_t samples() const { return source_.samples(); }
  std::uint64_t batches() const { return source_.batches(); }
  void identify(DataIdentity& to) const { source_.identify(to); }

 private:
  std::unique_ptr<std::vector<Batch> const> batches_;
  decltype(frugal::as_source(std::declval<std::vector<Batch> const&>())) source_;
};

inline AnySource base_of(Spec const& spec, fs::path const& folder) {
  Ids const ids = spec.all();
  auto const count = static_cast<std::int64_t>(ids.size());
  switch (spec.store) {
    case Store::resident:
      return AnySource(std::in_place,
                       frugal::TensorDataset(at::tensor(ids, at::kLong).view({-1, 1}),
                                             at::zeros({count}), spec.loading));
    case Store::samples: {
      std::vector<Batch> samples;
      for (std::int64_t const id : ids) {
        samples.push_back({at::full({1}, id, at::kLong), at::zeros({})});
      }
      return AnySource(std::in_place, frugal::from_samples(std::move(samples), spec.loading));
    }
    case Store::range: {
      std::vector<Batch> batches;
      for (std::int64_t first = 0; first < count; first += spec.loading.batch) {
        std::int64_t const size = std::min(spec.loading.batch, count - first);
        batches.push_back(
            {at::tensor(ids, at::kLong).view({-1, 1}).narrow(0, first, size), at::zeros({size})});
      }
      return AnySource(std::in_place, KeptRange(std::move(batches)));
    }
    default:
      break;
  }
  auto [set, sizes] = set_of(spec, folder);
  AnyOrder order = order_of(spec, set.size(), sizes);
  return AnySource(std::in_place, frugal::Loader(std::move(set), std::move(order), frugal::Stack{},
                                                 {.workers = spec.workers, .depth = spec.depth}));
}

/// The source of a spec whose files are in a folder.
inline AnySource source_of(Spec const& spec, fs::path const& folder) {
  AnySource source = base_of(spec, folder);
  if (spec.limit != 0) {
    source = AnySource(std::in_place, frugal::Limited(std::move(source), spec.limit));
  }
  if (spec.shift != 0) {
    source = AnySource(std::in_place, frugal::Mapped(std::move(source), Shift{spec.shift}));
  }
  if (spec.prefetch) {
    source = AnySource(std::in_place, frugal::Prefetch(std::move(source), {.depth = 1}));
  }
  return source;
}

}  // namespace frugal_test::same_samples
