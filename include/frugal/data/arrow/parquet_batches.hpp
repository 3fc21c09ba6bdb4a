// SPDX-License-Identifier: Apache-2.0
// needs: arrow
// Shapes: B rows in a batch, ... whatever one row has.
#pragma once

#include <frugal/data/arrow/column_tensor.hpp>
#include <frugal/data/arrow/parquet_set.hpp>
#include <frugal/data/batch.hpp>
#include <frugal/data/data_identity.hpp>
#include <frugal/data/rows.hpp>
#include <frugal/data/sampling/order.hpp>
#include <frugal/data/shards/shard_order.hpp>
#include <frugal/data/source.hpp>
#include <frugal/data/tables/batch_columns.hpp>
#include <frugal/data/tables/group_cache.hpp>

#include <ATen/ATen.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace frugal {

/// A Source of batches of whole columns of Parquet files, without rows between: for tables of
/// numbers, of lists of one length, and of bytes of one length.
///
/// Lever   idle device: no code per value. A row group becomes tensors that view what Arrow
///         decoded.
/// Cost    one row group is decoded where its first batch is asked for; inside a `Prefetch` in its
///         worker. Unshuffled batches are views of the row group and copy nothing, so do not write
///         into them; a shuffled batch is one copy of its rows.
/// Order   a row group after the other (ShardOrder with a window of 1); another Order may be given,
///         with an effect on how often a row group is decoded: see ParquetSet.
/// Errors  those of ParquetSet, of BatchColumns and of the Order.
template <Order O = ShardOrder>
class ParquetBatches {
 public:
  ParquetBatches(std::vector<std::filesystem::path> const& paths, BatchColumns columns,
                 Loading loading = {}, ParquetSettings settings = {})
    requires std::same_as<O, ShardOrder>
      : ParquetBatches(set_of(paths, columns, settings), columns, loading, settings.cache_bytes) {}

  /// The same over a set that has the columns, in a given order of its rows.
  ParquetBatches(ParquetSet set, BatchColumns columns, O order,
                 std::uint64_t cache_bytes = ParquetSettings{}.cache_bytes)
      : set_(std::move(set)),
        columns_(std::move(columns)),
        order_(std::move(order)),
        sizes_(set_.shard_sizes()),
        cache_(std::make_unique<Cache>(cache_bytes)) {
    for (std::uint64_t const rows : sizes_) index_.add(rows);
  }

  void seek(Cursor const& cursor) { order_.seek(cursor); }

  std::optional<Batch> next() {
    Pass::Slice const slice = order_.advance();
    if (slice.count == 0) return std::nullopt;
    indices_.resize(slice.count);
    order_.indices(slice, std::span(indices_));
    std::vector<at::Tensor> data;
    std::vector<at::Tensor> target;
    for (std::size_t begin = 0; begin < indices_.size();) {
      std::size_t const group = index_.group(indices_[begin]);
      std::uint64_t const first = index_.first(group);
      std::size_t end = begin;
      in_group_.clear();
      while (end < indices_.size() && indices_[end] >= first &&
             indices_[end] - first < sizes_[group]) {
        in_group_.push_back(static_cast<std::int64_t>(indices_[end++] - first));
      }
      auto const rows = decoded(group);
      require_alike(*rows, group);
      data.push_back(take(rows->data));
      if (rows->target.defined()) target.push_back(take(rows->target));
      begin = end;
    }
    return Batch{joined(std::move(data)), joined(std::move(target))};
  }

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

 private:
  using Cache = detail::GroupCache<Batch>;

  ParquetBatches(ParquetSet set, BatchColumns columns, Loading loading, std::uint64_t cache_bytes)
    requires std::same_as<O, ShardOrder>
      : ParquetBatches(set, std::move(columns),
                       ShardOrder(set, loading, {.shards = 1}, set.name(0)), cache_bytes) {}

  /// Only the columns of the batch are read.
  static ParquetSet set_of(std::vector<std::filesystem::path> const& paths,
                           BatchColumns const& columns, ParquetSettings settings) {
    settings.columns = columns.data;
    if (!columns.target.empty()) settings.columns.push_back(columns.target);
    return ParquetSet(paths, std::move(settings));
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
      auto batch =
          std::make_shared<Batch const>(columns_.batch(std::move(data), std::move(target)));
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
  std::vector<std::uint64_t> indices_;
  std::vector<std::int64_t> in_group_;
  /// Of a row's data and target.
  std::optional<std::pair<std::vector<std::int64_t>, std::vector<std::int64_t>>> shapes_;
};

ParquetBatches(std::vector<std::filesystem::path> const&, BatchColumns, Loading = {},
               ParquetSettings = {}) -> ParquetBatches<ShardOrder>;

}  // namespace frugal
