// SPDX-License-Identifier: Apache-2.0
// needs: arrow
// Shapes: N rows, n numbers in each list, B rows in a batch, ... whatever one row has.
#pragma once

#include <frugal/core/source/batch.hpp>
#include <frugal/core/source/data_identity.hpp>
#include <frugal/core/source/source.hpp>
#include <frugal/data/arrow/parquet_set.hpp>
#include <frugal/data/arrow/table.hpp>
#include <frugal/data/sampling/order.hpp>
#include <frugal/data/shards/shard_order.hpp>
#include <frugal/data/tables/batch_columns.hpp>
#include <frugal/data/tables/group_cache.hpp>
#include <frugal/data/tensor_dataset.hpp>
#include <frugal/error.hpp>

#include <ATen/ATen.h>
#include <arrow/array.h>
#include <arrow/buffer.h>
#include <arrow/type.h>

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace frugal {

namespace detail {

/// A view of a buffer that keeps it.
inline at::Tensor over(std::shared_ptr<::arrow::Buffer> buffer, std::int64_t first_byte,
                       std::vector<std::int64_t> const& shape, at::ScalarType type) {
  // Nothing writes here: batches are read, as those of TensorDataset are.
  auto* const bytes = const_cast<std::uint8_t*>(buffer->data()) + first_byte;
  return at::from_blob(bytes, shape, [buffer](void*) {}, at::TensorOptions(type));
}

[[noreturn]] inline void no_tensor(std::string what, std::string const& where, std::string why,
                                   std::string fix) {
  throw DataError(
      {.what = std::move(what), .where = where, .why = std::move(why), .fix = std::move(fix)});
}

/// `count` numbers from `first` on, as a tensor [count]; a view wherever LibTorch has the type.
inline at::Tensor numbers_tensor(::arrow::Array const& values, std::int64_t first,
                                 std::int64_t count, std::string const& where) {
  auto const dtype = arrow_dtype(*values.type());
  if (!dtype) {
    no_tensor("a column is no tensor", where, "it is " + values.type()->ToString(),
              "Name a column of numbers, or of lists of equal length.");
  }
  if (values.null_count() > 0) {
    no_tensor("a column has nulls", where,
              std::to_string(values.null_count()) + " in its row group",
              "Read rows instead, whose accessors take a fallback, or fill them in the file.");
  }
  if (*dtype == Dtype::boolean) {
    Numbers const bytes = arrow_numbers(values, first, count);
    return tensor_of(*dtype, bytes.bytes.data(), count, where);
  }
  at::ScalarType const type = scalar_type(*dtype);
  auto const& buffer = values.data()->buffers[1];
  std::int64_t const at = (values.offset() + first) * (dtype_bits(*dtype) / 8);
  if (count == 0) return at::empty({0}, type == at::ScalarType::Undefined ? at::kLong : type);
  if (type != at::ScalarType::Undefined) return over(buffer, at, {count}, type);
  return tensor_of(*dtype, buffer->data_as<char>() + at, count, where);
}

/// The one length of all lists or texts of a column; its offsets say where each begins.
template <class Lists>
std::int64_t one_length(Lists const& lists, std::string const& where) {
  std::int64_t const length = lists.length() == 0 ? 0 : lists.value_length(0);
  for (std::int64_t i = 1; i < lists.length(); ++i) {
    if (lists.value_length(i) != length) {
      no_tensor("the lists of a column differ in length", where,
                "row " + std::to_string(i) + " of its row group has " +
                    std::to_string(lists.value_length(i)) + ", and the first " +
                    std::to_string(length),
                "Read rows instead, and collate them with Pad.");
    }
  }
  return length;
}

}  // namespace detail

/// A column as a tensor: numbers [N], lists or bytes of one length [N, n]. A view of Arrow's
/// memory, which it keeps, except for booleans and for unsigned integers above 8 bits, which are
/// widened: do not write into it.
///
/// Errors  DataError for texts of unlike length, lists of unlike length, and nulls.
inline at::Tensor column_tensor(::arrow::Array const& column, std::string const& where) {
  using ::arrow::Type;
  if (column.null_count() > 0) {
    detail::no_tensor(
        "a column has nulls", where, std::to_string(column.null_count()) + " in its row group",
        "Read rows instead, whose accessors take a fallback, or fill them in the file.");
  }
  std::int64_t const rows = column.length();
  auto const list = [&](auto const& lists, std::int64_t length) {
    std::int64_t const first = rows == 0 ? 0 : lists.value_offset(0);
    return detail::numbers_tensor(*lists.values(), first, rows * length, where)
        .view({rows, length});
  };
  auto const bytes = [&](auto const& texts) {
    std::int64_t const length = detail::one_length(texts, where);
    if (rows * length == 0) return at::empty({rows, length}, at::kByte);
    return detail::over(texts.value_data(), texts.value_offset(0), {rows, length}, at::kByte);
  };
  switch (column.type_id()) {
    case Type::FIXED_SIZE_LIST: {
      auto const& lists = static_cast<::arrow::FixedSizeListArray const&>(column);
      return list(lists, lists.value_length(0));
    }
    case Type::LIST: {
      auto const& lists = static_cast<::arrow::ListArray const&>(column);
      return list(lists, detail::one_length(lists, where));
    }
    case Type::LARGE_LIST: {
      auto const& lists = static_cast<::arrow::LargeListArray const&>(column);
      return list(lists, detail::one_length(lists, where));
    }
    case Type::STRING:
    case Type::BINARY:
      return bytes(static_cast<::arrow::BinaryArray const&>(column));
    case Type::LARGE_STRING:
    case Type::LARGE_BINARY:
      return bytes(static_cast<::arrow::LargeBinaryArray const&>(column));
    case Type::FIXED_SIZE_BINARY: {
      auto const& texts = static_cast<::arrow::FixedSizeBinaryArray const&>(column);
      std::int64_t const length = texts.byte_width();
      if (rows * length == 0) return at::empty({rows, length}, at::kByte);
      return detail::over(texts.data()->buffers[1], texts.offset() * length, {rows, length},
                          at::kByte);
    }
    default:
      return detail::numbers_tensor(column, 0, rows, where);
  }
}

/// A Source of batches of whole columns of Parquet files, without rows between: for tables of
/// numbers, of lists of one length, and of bytes of one length.
///
/// Lever   idle device: no code per value. A row group becomes tensors that view what Arrow
///         decoded.
/// Cost    one row group is decoded where its first batch is asked for; inside a `Prefetch` in its
///         worker. Unshuffled batches are views of the row group and copy nothing, so do not write
///         into them; a shuffled batch is one copy of its rows.
/// Order   shuffled over some row groups at a time, a ShardOrder. Its window is the ShuffleWindow
///         that is given, or else as many row groups as 256 MiB hold by the footers, at most 16:
///         they are in memory together. Another Order may be given, with an effect on how often a
///         row group is decoded: see ParquetSet, and warning().
/// Errors  those of ParquetSet, of BatchColumns and of the Order. next() tries the same batch again
///         after an error: none is left out. DataError if processes share the order and the set
///         has left out damaged shards.
template <Order O = ShardOrder>
class ParquetBatches {
 public:
  using order_type = O;

  ParquetBatches(std::vector<std::filesystem::path> const& paths, BatchColumns columns,
                 LoaderOptions loading = {}, ParquetSettings settings = {},
                 std::optional<ShuffleWindow> window = std::nullopt)
    requires std::same_as<O, ShardOrder>
      : ParquetBatches(OfFiles(), set_of(paths, columns, settings), columns, loading,
                       settings.cache_bytes, window) {}

  /// Batches over a set that has the columns, in a given order of its rows.
  ParquetBatches(ParquetSet set, BatchColumns columns, O order,
                 std::uint64_t cache_bytes = ParquetSettings{}.cache_bytes)
      : set_(std::move(set)),
        columns_(std::move(columns)),
        order_(std::move(order)),
        sizes_(set_.shard_sizes()),
        cache_(std::make_unique<Cache>(cache_bytes)) {
    for (std::uint64_t const rows : sizes_) index_.add(rows);
    if (detail::is_shared(order_)) detail::require_nothing_left_out(set_, "ParquetBatches");
  }

  void seek(Cursor const& cursor) {
    slice_.reset();
    order_.seek(cursor);
    consumed_ = cursor.position;
  }

  std::optional<Batch> next() {
    if (!slice_) slice_ = order_.advance();
    if (slice_->count == 0) {
      slice_.reset();
      return std::nullopt;
    }
    Batch batch = read(*slice_);
    pass();
    return batch;
  }
  /// Passes over a batch, and decodes nothing for it; returns its samples, 0 at the end of the epoch.
  std::uint64_t skip() {
    if (!slice_) slice_ = order_.advance();
    return pass();
  }
  /// Position after the last batch that next() gave: with a Shared order that of all ranks.
  std::uint64_t consumed() const { return consumed_; }

  std::uint64_t samples() const { return order_.samples(); }
  std::uint64_t batches() const { return order_.batches(); }
  ParquetSet const& set() const { return set_; }
  void identify(DataIdentity& to) const {
    set_.identify(to);
    detail::identify_order(order_, to);
    columns_.identify(to);
  }
  /// How often a row group was decoded.
  std::uint64_t decoded() const { return cache_->decoded(); }

  /// What to change about files or window, in one sentence; empty if nothing. A fit puts it into
  /// its Report.
  std::string warning() const {
    if (one_group_) {
      return "rows are shuffled within one row group at a time, since 256 MiB do not hold two: "
             "write smaller row groups, or give ParquetBatches a ShuffleWindow and the "
             "cache_bytes for it";
    }
    return cache_->warning(detail::groups_at_once(order_, index_.groups()));
  }

 private:
  /// The next batch is consumed. Returns its samples.
  std::uint64_t pass() {
    std::uint64_t const samples = slice_->count;
    slice_.reset();
    if constexpr (requires { order_.consumed(); }) {
      consumed_ = order_.consumed();
    } else {
      consumed_ += samples;
    }
    return samples;
  }

  using Cache = detail::GroupCache<Batch>;

  static constexpr std::uint64_t window_bytes = std::uint64_t{256} << 20;
  static constexpr std::uint64_t most_groups = 16;
  static constexpr auto unranked = static_cast<std::size_t>(-1);

  /// Keeps `{}` in place of ParquetSettings from being taken for a number of bytes.
  struct OfFiles {};

  ParquetBatches(OfFiles, ParquetSet set, BatchColumns columns, LoaderOptions loading,
                 std::uint64_t cache_bytes, std::optional<ShuffleWindow> window)
    requires std::same_as<O, ShardOrder>
      : ParquetBatches(set, std::move(columns),
                       ShardOrder(set, loading, window ? *window : window_of(set), set.name(0)),
                       cache_bytes) {
    one_group_ = !window && loading.shuffle && index_.groups() > 1 && window_of(set_).shards == 1;
  }

  /// As many row groups as window_bytes hold. It does not depend on cache_bytes: how much memory
  /// there is changes no order.
  static ShuffleWindow window_of(ParquetSet const& set) {
    std::uint64_t largest = 1;
    for (std::size_t group = 0; group < set.groups(); ++group) {
      largest = std::max(largest, set.group_bytes(group));
    }
    return {.shards = std::clamp<std::uint64_t>(window_bytes / largest, 1, most_groups)};
  }

  /// Only the columns of the batch are read.
  static ParquetSet set_of(std::vector<std::filesystem::path> const& paths,
                           BatchColumns const& columns, ParquetSettings settings) {
    settings.columns = columns.data;
    if (!columns.target.empty()) settings.columns.push_back(columns.target);
    return ParquetSet(paths, std::move(settings));
  }

  /// The batch of the order's places `slice`.
  Batch read(Pass::Slice slice) {
    indices_.resize(slice.count);
    order_.indices(slice, std::span(indices_));
    // The places of the batch, by row group: each group is looked at once, and the group that comes
    // up last is looked at last, since the next batch goes on with it.
    places_.resize(indices_.size());
    std::iota(places_.begin(), places_.end(), std::int64_t{0});
    rank_.resize(index_.groups(), unranked);
    groups_.clear();
    ranks_.clear();
    for (std::uint64_t const index : indices_) {
      std::size_t& rank = rank_[index_.group(index)];
      if (rank == unranked) {
        rank = groups_.size();
        groups_.push_back(index_.group(index));
      }
      ranks_.push_back(rank);
    }
    for (std::size_t const group : groups_) rank_[group] = unranked;
    auto const rank_of = [&](std::int64_t place) {
      return ranks_[static_cast<std::size_t>(place)];
    };
    bool const mixed = !std::is_sorted(ranks_.begin(), ranks_.end());
    if (mixed) {
      std::stable_sort(places_.begin(), places_.end(),
                       [&](std::int64_t a, std::int64_t b) { return rank_of(a) < rank_of(b); });
    }
    std::vector<at::Tensor> data;
    std::vector<at::Tensor> target;
    std::size_t done = 0;
    for (std::size_t rank = 0; rank < groups_.size(); ++rank) {
      std::size_t const group = groups_[rank];
      std::uint64_t const first = index_.first(group);
      in_group_.clear();
      for (; done < places_.size() && rank_of(places_[done]) == rank; ++done) {
        std::uint64_t const index = indices_[static_cast<std::size_t>(places_[done])];
        in_group_.push_back(static_cast<std::int64_t>(index - first));
      }
      auto const rows = decoded(group);
      require_alike(*rows, group);
      data.push_back(take(rows->data));
      if (rows->target.defined()) target.push_back(take(rows->target));
    }
    Batch batch{joined(std::move(data)), joined(std::move(target))};
    if (!mixed) return batch;
    in_group_.resize(places_.size());
    for (std::size_t i = 0; i < places_.size(); ++i) {
      in_group_[static_cast<std::size_t>(places_[i])] = static_cast<std::int64_t>(i);
    }
    batch.data = Rows(batch.data).gather(in_group_);
    if (batch.target.defined()) batch.target = Rows(batch.target).gather(in_group_);
    return batch;
  }

  std::shared_ptr<Batch const> decoded(std::size_t group) {
    return cache_->get(group, [&] {
      detail::ArrowTable const table = set_.decode(group);
      auto const tensor = [&](std::string const& column) {
        auto const place = table.head().find(column);
        if (!place) static_cast<void>(table.row(0).cell(column));  // throws
        return column_tensor(*table.column(*place), table.head().source + ", column " + column +
                                                        ", from row " +
                                                        std::to_string(table.first()) + " on");
      };
      std::vector<at::Tensor> data;
      for (std::string const& column : columns_.data) data.push_back(tensor(column));
      at::Tensor target = columns_.target.empty() ? at::Tensor() : tensor(columns_.target);
      auto batch = std::make_shared<Batch const>(columns_.batch(
          std::move(data), std::move(target),
          table.head().source + ", from row " + std::to_string(table.first()) + " on"));
      std::uint64_t const bytes =
          batch->data.nbytes() + (batch->target.defined() ? batch->target.nbytes() : 0);
      return typename Cache::Made{batch, bytes};
    });
  }

  /// Refuses a row group whose lists have another length than those before it: columns are checked
  /// group by group, and batches of two shapes, or of both, are no batches of a set.
  void require_alike(Batch const& rows, std::size_t group) {
    auto const of = [](at::Tensor const& tensor) {
      return tensor.defined() ? tensor.sizes().slice(1).vec() : std::vector<std::int64_t>();
    };
    std::pair shapes{of(rows.data), of(rows.target)};
    if (!shapes_) shapes_ = shapes;
    if (shapes == *shapes_) return;
    throw DataError({.what = "row groups have lists of unlike length",
                     .where = set_.name(index_.first(group)),
                     .why = "a row is " + c10::str(at::IntArrayRef(shapes.first)) + ", and was " +
                            c10::str(at::IntArrayRef(shapes_->first)),
                     .fix = "Read rows instead, and collate them with Pad."});
  }

  /// The rows `in_group_` of a decoded tensor: a view if they are neighbours in order.
  at::Tensor take(at::Tensor const& tensor) const {
    auto const count = static_cast<std::int64_t>(in_group_.size());
    bool neighbours = true;
    for (std::size_t i = 1; i < in_group_.size() && neighbours; ++i) {
      neighbours = in_group_[i] == in_group_[i - 1] + 1;
    }
    if (neighbours) return tensor.narrow(0, in_group_.front(), count);
    return Rows(tensor).gather(in_group_);
  }

  static at::Tensor joined(std::vector<at::Tensor> parts) {
    if (parts.empty()) return {};
    return parts.size() == 1 ? std::move(parts[0]) : at::cat(parts);
  }

  ParquetSet set_;
  BatchColumns columns_;
  O order_;
  std::vector<std::uint64_t> sizes_;
  detail::GroupIndex index_;
  std::unique_ptr<Cache> cache_;
  std::optional<Pass::Slice> slice_;  ///< of the batch that an error kept back
  std::uint64_t consumed_ = 0;
  bool one_group_ = false;  ///< rows are shuffled within groups alone, and no window was given
  std::vector<std::uint64_t> indices_;
  std::vector<std::int64_t> places_;
  std::vector<std::size_t> groups_;  ///< of the batch, in the order in which they come up
  std::vector<std::size_t> ranks_;   ///< of each place: its group's number in groups_
  std::vector<std::size_t> rank_;    ///< of each row group, while a batch is sorted
  std::vector<std::int64_t> in_group_;
  /// The shapes of a row's data and target.
  std::optional<std::pair<std::vector<std::int64_t>, std::vector<std::int64_t>>> shapes_;
};

ParquetBatches(std::vector<std::filesystem::path> const&, BatchColumns, LoaderOptions = {},
               ParquetSettings = {}, std::optional<ShuffleWindow> = std::nullopt)
    -> ParquetBatches<ShardOrder>;

}  // namespace frugal
