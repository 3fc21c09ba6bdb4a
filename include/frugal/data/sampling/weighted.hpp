// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/base/hash.hpp>
#include <frugal/core/source/data_identity.hpp>
#include <frugal/core/source/sample_set.hpp>
#include <frugal/core/source/source.hpp>
#include <frugal/data/sampling/pass.hpp>
#include <frugal/data/sampling/permutation.hpp>
#include <frugal/error.hpp>

#include <algorithm>
#include <cstdint>
#include <map>
#include <ranges>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace frugal {

namespace detail {

/// Draws numbers below n with given probabilities, in constant time.
///
/// Source  Walker, "An efficient method for generating discrete random variables with general
///         distributions" (TOMS 3(3), 1977), built as by Vose (IEEE Trans. Software Eng. 17(9),
///         1991).
class AliasTable {
 public:
  AliasTable() = default;

  /// Weights are finite, none is negative, and their sum is positive and finite.
  explicit AliasTable(std::span<double const> weights)
      : keep_(weights.size()), other_(weights.size()) {
    double sum = 0;
    for (double const weight : weights) sum += weight;
    double const mean = sum / static_cast<double>(weights.size());
    std::vector<std::uint64_t> below, above;
    for (std::uint64_t i = 0; i < weights.size(); ++i) {
      keep_[i] = weights[i] / mean;
      other_[i] = i;
      (keep_[i] < 1 ? below : above).push_back(i);
    }
    while (!below.empty() && !above.empty()) {
      std::uint64_t const low = below.back(), high = above.back();
      below.pop_back();
      other_[low] = high;
      keep_[high] = (keep_[high] + keep_[low]) - 1;
      if (keep_[high] >= 1) continue;
      above.pop_back();
      below.push_back(high);
    }
    // Rounding leaves some of one kind over, and all of these are 1 but for it.
    for (std::uint64_t const i : below) keep_[i] = 1;
    for (std::uint64_t const i : above) keep_[i] = 1;
  }

  std::uint64_t size() const { return keep_.size(); }

  std::uint64_t operator()(Draw& draw) const {
    std::uint64_t const at = draw.below(keep_.size());
    return draw.uniform() < keep_[at] ? at : other_[at];
  }

 private:
  std::vector<double> keep_;
  std::vector<std::uint64_t> other_;
};

/// Refuses weights that are no distribution.
void require_weights(std::span<double const> weights, std::string const& name);

}  // namespace detail

/// An epoch of samples drawn with replacement, each in proportion to its weight: an Order.
///
/// Place i of an epoch is a function of seed, epoch and i, so any place can be sought, and the
/// batch size may change over a resume. `LoaderOptions::shuffle` has no effect.
///
/// Cost    16 bytes a sample; per place one number of the table and 2 random ones.
/// Errors  SettingsError for a weight that is negative or not finite, and if all are 0; those of
///         Pass, for the number of draws.
class WeightedPass {
 public:
  using Slice = Pass::Slice;

  /// `weights` has one for each sample; an epoch has `draws` samples, or as many as there are
  /// weights.
  WeightedPass(std::vector<double> const& weights, LoaderOptions loading, std::uint64_t draws = 0,
               std::string name = "weighted samples")
      : pass_(draws == 0 ? weights.size() : draws, unshuffled(loading), name) {
    detail::require_weights(weights, name);
    table_ = detail::AliasTable(weights);
    loading_ = loading;
    weights_hash_ = Hash::of(std::as_bytes(std::span(weights)));
    name_ = std::move(name);
  }

  void seek(Cursor const& cursor);
  Slice advance() { return pass_.advance(); }

  template <class Int>
  void indices(Slice slice, std::span<Int> out) const {
    if (cursor_.in_order) return pass_.indices(slice, out);
    for (Int& index : out) {
      Draw draw({.index = slice.first++, .seed = cursor_.seed, .epoch = cursor_.epoch}, stream);
      index = static_cast<Int>(table_(draw));
    }
  }

  LoaderOptions const& loading() const { return loading_; }
  std::uint64_t samples() const { return pass_.samples(); }
  std::uint64_t batches() const { return pass_.batches(); }

  void identify(DataIdentity& to) const;

 private:
  static constexpr std::uint64_t stream = draw_stream("frugal: weighted samples");
  static LoaderOptions unshuffled(LoaderOptions loading);

  Pass pass_;
  LoaderOptions loading_;
  Cursor cursor_{};
  detail::AliasTable table_;
  std::uint64_t weights_hash_ = 0;
  std::string name_;
};

/// Weights by which every class is drawn equally often: 1 over the number of samples of its class.
/// `labels` is any range of the samples' classes.
template <std::ranges::forward_range Labels>
std::vector<double> balanced_weights(Labels const& labels) {
  std::map<std::ranges::range_value_t<Labels>, double> count;
  for (auto const& label : labels) ++count[label];
  std::vector<double> weights;
  for (auto const& label : labels) weights.push_back(1 / count[label]);
  return weights;
}

}  // namespace frugal

#ifndef FRUGAL_COMPILED
#include <frugal/data/sampling/weighted.ipp>
#endif
