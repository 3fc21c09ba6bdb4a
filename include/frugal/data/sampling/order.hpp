// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/core/source/data_identity.hpp>
#include <frugal/core/source/source.hpp>
#include <frugal/data/sampling/pass.hpp>
#include <frugal/error.hpp>

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>

namespace frugal {

/// The way through the samples of an epoch: which of them each batch takes. `Pass`, shuffled or
/// not, and `BucketPass`; a loader takes any.
///
/// `seek(cursor)`           the next batch begins at place `cursor.position` of epoch
/// `cursor.epoch`; `advance()`              the places of the next batch; count 0 at the end of the
/// epoch; `indices(slice, out)`    the samples at the places of a slice that advance() gave;
/// `samples()`, `batches()` in an epoch;
/// `loading()`              the batch size and the like.
///
/// All of it is a function of the cursor and of the settings: that is what makes a run resume
/// exactly.
template <class O>
concept Order = requires(O& order, O const& same, Cursor const& cursor, Pass::Slice slice,
                         std::span<std::uint64_t> out) {
  order.seek(cursor);
  { order.advance() } -> std::same_as<Pass::Slice>;
  order.indices(slice, out);
  { same.samples() } -> std::convertible_to<std::uint64_t>;
  { same.batches() } -> std::convertible_to<std::uint64_t>;
  { same.loading() } -> std::convertible_to<LoaderOptions const&>;
};

}  // namespace frugal

namespace frugal::detail {

/// From how many of `groups` groups of rows an order reads at a time.
template <class O>
std::uint64_t groups_at_once(O const& order, std::uint64_t groups) {
  if (!order.loading().shuffle || groups == 0) return 1;
  if constexpr (requires { order.shards_at_once(); }) {
    return static_cast<std::uint64_t>(order.shards_at_once());
  } else {
    return groups;
  }
}

/// What to change about an order that makes a set of tables decode its groups again and again, also
/// a set within a Transformed; empty for other sets. See GroupCache::advice.
template <class Set>
std::string group_warning(Set const& set, std::uint64_t at_once) {
  if constexpr (requires { set.group_warning(at_once); }) {
    return set.group_warning(at_once);
  } else if constexpr (requires { set.set(); }) {
    return group_warning(set.set(), at_once);
  } else {
    return {};
  }
}

/// From how many groups of such a set an order reads at a time; 1 for other sets.
template <class Set, class O>
std::uint64_t groups_at_once_of(Set const& set, O const& order) {
  if constexpr (requires { set.group_warning(std::uint64_t{1}); }) {
    return groups_at_once(order, set.groups());
  } else if constexpr (requires { set.set(); }) {
    return groups_at_once_of(set.set(), order);
  } else {
    return 1;
  }
}

}  // namespace frugal::detail

namespace frugal {

/// One process of several that train on one order.
struct ProcessRank {
  int rank = 0;   ///< from 0 to world - 1
  int world = 1;  ///< processes
};

/// An order that several processes share: each global batch is cut into one part for each rank.
///
/// `LoaderOptions::batch` is the global batch. The parts are contiguous and differ by one sample at most;
/// all ranks have the same number of batches, and no part is empty. A last batch of fewer samples
/// than ranks is joined to the one before.
///
/// Positions count global samples, so the order of the samples does not depend on the world size,
/// and a run resumes with another one: every sample is used exactly once in the epoch. One
/// exception: if fewer samples than ranks are left at the position of a resume (a kill just before
/// the last batch, then a larger world), the epoch ends there.
///
/// For a loop of your own: Replicate and Pipeline divide the batches themselves, and do not compile with
/// it.
///
/// Cost    that of the order; each rank computes the indices of its own part.
/// Errors  SettingsError for a rank outside of the world or a batch below the world size;
///         EmptySourceError for fewer samples than ranks.
template <Order O>
class Shared {
 public:
  using Slice = Pass::Slice;
  using order_type = O;
  /// Of an epoch, the part of one process: policies that divide windows among processes refuse it.
  static constexpr bool is_part = true;

  Shared(O order, ProcessRank rank) : order_(std::move(order)) {
    if (rank.world < 1 || rank.rank < 0 || rank.rank >= rank.world) {
      throw SettingsError(
          {.what =
               "rank " + std::to_string(rank.rank) + " of a world of " + std::to_string(rank.world),
           .where = "Shared",
           .why = "ranks are numbered from 0 to the world size - 1",
           .fix = "Set ProcessRank::rank and ProcessRank::world to those of this process."});
    }
    rank_ = static_cast<std::uint64_t>(rank.rank);
    world_ = static_cast<std::uint64_t>(rank.world);
    std::string const ranks = std::to_string(world_) + " ranks";
    if (batch() < world_) {
      throw SettingsError(
          {.what = "a batch of " + std::to_string(batch()) + " samples for " + ranks,
           .where = "Shared, LoaderOptions::batch",
           .why = "it is the global batch, and a rank would have no sample of it",
           .fix = "Make the batch larger, or use fewer ranks."});
    }
    if (samples() < world_) {
      throw EmptySourceError({.what = std::to_string(samples()) + " samples for " + ranks,
                              .where = "Shared",
                              .why = "a rank would have no sample",
                              .fix = "Use fewer ranks."});
    }
  }

  void seek(Cursor const& cursor) {
    order_.seek(cursor);
    consumed_ = cursor.position;
  }

  /// This rank's part of the next global batch.
  Slice advance() {
    Slice all = order_.advance();
    while (all.count != 0 && all.count < world_) {
      Slice const more = order_.advance();
      if (more.count == 0) return {all.first, 0};
      all.count += more.count;
    }
    if (all.count == 0) return all;
    if (samples() - all.first - all.count < world_) all.count += order_.advance().count;
    consumed_ = all.first + all.count;
    std::uint64_t const begin = all.count * rank_ / world_;
    return {all.first + begin, all.count * (rank_ + 1) / world_ - begin};
  }

  template <class Int>
  void indices(Slice slice, std::span<Int> out) {
    // Piece by piece, since a slice of an order lies in one batch, and joined batches are two.
    while (slice.count != 0) {
      std::uint64_t const count = std::min(slice.count, batch() - slice.first % batch());
      order_.indices(Slice{slice.first, count}, out.first(static_cast<std::size_t>(count)));
      out = out.subspan(static_cast<std::size_t>(count));
      slice = {slice.first + count, slice.count - count};
    }
  }

  /// That of the order: it depends neither on the rank nor on the world size.
  void identify(DataIdentity& to) const { detail::identify_order(order_, to); }

  /// Whether there are other processes, which would wait for a batch that this one leaves out.
  bool is_shared() const { return world_ > 1; }

  /// Global position after the last batch, whichever rank had the samples.
  std::uint64_t consumed() const { return consumed_; }

  LoaderOptions const& loading() const { return order_.loading(); }
  /// See ShardOrder.
  std::size_t shards_at_once() const
    requires requires(O const& order) { order.shards_at_once(); }
  {
    return order_.shards_at_once();
  }
  std::uint64_t samples() const { return static_cast<std::uint64_t>(order_.samples()); }
  /// Batches of each rank, in an epoch that is read from its start.
  std::uint64_t batches() const {
    std::uint64_t const all = static_cast<std::uint64_t>(order_.batches());
    std::uint64_t const last = samples() % batch();
    return !loading().drop_last && last != 0 && last < world_ ? all - 1 : all;
  }

 private:
  std::uint64_t batch() const { return static_cast<std::uint64_t>(loading().batch); }

  O order_;
  std::uint64_t rank_ = 0;
  std::uint64_t world_ = 1;
  std::uint64_t consumed_ = 0;
};

namespace detail {

template <class O>
bool is_shared(O const& order) {
  if constexpr (requires { order.is_shared(); }) {
    return order.is_shared();
  } else {
    return false;
  }
}

/// What OnDamage::Skip has left out of a set, or of the set that it wraps; empty if nothing.
template <class Set>
std::string left_out_of(Set const& set) {
  if constexpr (requires {
                  { set.damage().text() } -> std::convertible_to<std::string>;
                }) {
    return set.damage().text();
  } else if constexpr (requires { set.set(); }) {
    return left_out_of(set.set());
  } else {
    return {};
  }
}

/// For a set that several processes read in one order. DataError if OnDamage::Skip has left
/// something out.
template <class Set>
void require_nothing_left_out(Set const& set, std::string const& where) {
  std::string const left_out = left_out_of(set);
  if (left_out.empty()) return;
  throw DataError({.what = "processes share a set that has left out damaged shards",
                   .where = where,
                   .why = left_out +
                          "; each process leaves out what it finds damaged, and then their sets "
                          "may have other sizes and orders",
                   .fix = "Repair the shards, or pack the set again without them (frugal_pack "
                          "--skip-damage), so that all processes read the same."});
}

}  // namespace detail

}  // namespace frugal
