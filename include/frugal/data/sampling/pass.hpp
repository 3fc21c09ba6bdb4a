// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/core/source/data_identity.hpp>
#include <frugal/core/source/source.hpp>
#include <frugal/data/sampling/permutation.hpp>

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>

namespace frugal {

/// How samples become batches.
struct LoaderOptions {
  std::int64_t batch = 32;  ///< samples per batch, at least 1
  bool shuffle = true;      ///< a new order every epoch, a function of seed and epoch alone
  bool drop_last = false;   ///< leave out the ragged batch at the end of an epoch
};

/// The way through one epoch of `samples` samples: which of them the next batch takes.
///
/// The order of an epoch does not depend on the batch size, so that the batch size may change
/// over a resume. Knows nothing of tensors; every source that picks samples by index has one.
///
/// Errors  SettingsError for a batch below 1; EmptySourceError where no batch can be made;
///         StateError for a cursor after the last sample.
class Pass {
 public:
  /// `name` is what errors call the source.
  Pass(std::uint64_t samples, LoaderOptions loading, std::string name);

  void seek(Cursor const& cursor);

  /// The places [first, first + count) that the next batch takes; count 0: the epoch has ended.
  struct Slice {
    std::uint64_t first = 0;
    std::uint64_t count = 0;
  };

  Slice advance();

  /// The samples at the places of a slice; `out` has slice.count elements.
  template <class Int>
  void indices(Slice slice, std::span<Int> out) const {
    if (shuffles_) {
      order_.fill(slice.first, out);
    } else {
      for (Int& index : out) index = static_cast<Int>(slice.first++);
    }
  }

  LoaderOptions const& loading() const { return loading_; }
  /// Whether the order that was sought is shuffled.
  bool shuffles() const { return shuffles_; }
  std::uint64_t samples() const { return samples_; }

  /// Batches of an epoch that is read from its start.
  std::uint64_t batches() const;

  void identify(DataIdentity& to) const { identify(to, "Pass", loading_.shuffle); }
  /// For an order of another name that cuts its batches with this one.
  void identify(DataIdentity& to, std::string const& order, bool shuffle) const;

 private:
  std::uint64_t left() const { return samples_ - position_; }

  LoaderOptions loading_;
  std::uint64_t samples_;
  std::uint64_t position_ = 0;
  bool shuffles_ = false;
  Permutation order_;
  std::string name_;
};

/// What a policy sorts or draws samples by: `Curriculum<By<Length>>`, `Importance<By<Loss>>`.
template <class Score>
struct By {
  using score = Score;
};

namespace detail {

template <class T>
inline constexpr bool is_by = false;
template <class Score>
inline constexpr bool is_by<By<Score>> = true;

}  // namespace detail

}  // namespace frugal

#ifndef FRUGAL_COMPILED
#include <frugal/data/sampling/pass.ipp>
#endif
