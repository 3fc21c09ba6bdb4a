// SPDX-License-Identifier: Apache-2.0
// Shapes: N samples in the set, ... whatever one sample has.
#pragma once

#include <frugal/core/source/batch.hpp>
#include <frugal/core/source/data_identity.hpp>
#include <frugal/core/source/each_tensor.hpp>
#include <frugal/core/source/sample_set.hpp>
#include <frugal/error.hpp>

#include <ATen/ATen.h>

#include <algorithm>
#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace frugal {

/// How split() chooses.
struct SplitOptions {
  std::uint64_t seed = 0;              ///< another seed is another division
  std::vector<std::int64_t> labels{};  ///< one per sample: each class is divided in the same shares
};

namespace detail {

/// Some samples of a set, and a text that says which.
struct SplitIndices {
  std::vector<std::uint64_t> of;  // in the whole set, ascending
  std::string text;
};

[[noreturn]] void refuse_split(std::string what, std::string why, std::string fix);

/// Samples of each part: the bounds between parts are rounded, so that a part differs from its
/// share by less than one sample, and the last one also by what the fractions leave of 1, at most a
/// millionth of the set. No sum of a product, which some compilers round once and others twice.
std::vector<std::uint64_t> split_counts(std::span<double const> fractions, std::uint64_t samples);

/// The same for numbers of samples.
template <std::integral Count>
std::vector<std::uint64_t> split_counts(std::span<Count const> given, std::uint64_t samples) {
  std::vector<std::uint64_t> counts;
  std::uint64_t left = samples;
  for (Count const count : given) {
    if (std::cmp_less(count, 0) || std::cmp_greater(count, left)) {
      refuse_split("part " + std::to_string(counts.size() + 1) + " of a split has " +
                       std::to_string(count) + " samples",
                   std::to_string(left) + " of " + std::to_string(samples) + " are left for it",
                   "Give numbers of samples that sum to those of the set, or fractions.");
    }
    counts.push_back(static_cast<std::uint64_t>(count));
    left -= counts.back();
  }
  if (left != 0) {
    refuse_split("the parts of a split have fewer samples than the set",
                 std::to_string(left) + " of " + std::to_string(samples) + " would be in no part",
                 "Give numbers of samples that sum to those of the set, or fractions.");
  }
  return counts;
}

/// Which samples are in which part.
std::vector<SplitIndices> split_indices(std::vector<std::uint64_t> const& counts,
                                        std::uint64_t samples, SplitOptions const& options);

/// These rows of a tensor [N, ...], as a tensor of their own.
at::Tensor rows_at(at::Tensor const& tensor, std::vector<std::uint64_t> const& indices);

}  // namespace detail

/// A part of a set of samples: what split() gives for a set. It is read as the set is, and keeps
/// the names of its samples.
///
/// A random transform draws by the sample's index in the whole set, so it gives a sample the same
/// in whichever part the sample is. Copies share the set.
/// Cost    8 bytes for each sample of the part.
template <SampleSet Set>
class SplitPart {
 public:
  SplitPart(std::shared_ptr<Set const> set, detail::SplitIndices part)
      : set_(std::move(set)),
        part_(std::make_shared<detail::SplitIndices const>(std::move(part))) {}

  std::uint64_t size() const { return part_->of.size(); }

  auto get(std::uint64_t index) const
    requires detail::ReadsByIndex<Set>
  {
    return set_->get(index_of(index));
  }
  auto get(SampleKey const& key) const
    requires(!detail::ReadsByIndex<Set>)
  {
    return set_->get(SampleKey{.index = index_of(key.index), .seed = key.seed, .epoch = key.epoch});
  }
  auto get_batch(std::span<std::uint64_t const> indices) const
    requires BatchedSet<Set>
  {
    std::vector<std::uint64_t> whole(indices.size());
    std::transform(indices.begin(), indices.end(), whole.begin(),
                   [this](std::uint64_t index) { return index_of(index); });
    return set_->get_batch(std::span<std::uint64_t const>(whole));
  }

  template <class Sample>
  void own_memory(Sample& sample) const
    requires requires(Set const& set) { set.own_memory(sample); }
  {
    set_->own_memory(sample);
  }

  std::string name(std::uint64_t index) const { return sample_name(*set_, index_of(index)); }

  /// Chosen samples stay chosen: what curate/ asks before it removes any.
  std::string curated() const
    requires requires(Set const& set) {
      { set.curated() } -> std::convertible_to<std::string>;
    }
  {
    return set_->curated();
  }

  std::string identity() const
    requires IdentifiedSet<Set>
  {
    return std::string(set_->identity()) + ", " + part_->text;
  }
  void identify(DataIdentity& to) const {
    detail::identify(*set_, to);
    to.add("split", part_->text);
  }

  Set const& set() const { return *set_; }
  /// Indices in the whole set, ascending.
  std::vector<std::uint64_t> const& indices() const { return part_->of; }

 private:
  std::uint64_t index_of(std::uint64_t index) const {
    detail::require_sample(index, size(), "a part of a split");
    return part_->of[static_cast<std::size_t>(index)];
  }

  std::shared_ptr<Set const> set_;
  std::shared_ptr<detail::SplitIndices const> part_;
};

namespace detail {

template <class T>
inline constexpr bool is_vector = false;
template <class T, class A>
inline constexpr bool is_vector<std::vector<T, A>> = true;

/// A batch whose tensors have a row per sample.
template <class T>
concept SplitByRows = ShowsTensors<T> && !OfList<T> && std::copyable<T>;

template <class T>
concept Splits = SampleSet<T> || is_vector<T> || SplitByRows<T>;

template <class T>
constexpr bool require_split() {
  static_assert(
      Splits<T>,
      "frugal: split divides a set of samples (size() and a const get(i)), a std::vector of "
      "samples, or a batch of tensors. It cannot divide a source, such as TensorDataset: "
      "split the tensors, and make a source of each part.");
  return true;
}

template <Splits Set>
std::uint64_t split_samples(Set const& set) {
  if constexpr (SampleSet<Set> || is_vector<Set>) {
    return static_cast<std::uint64_t>(set.size());
  } else {
    return static_cast<std::uint64_t>(batch_samples(set));
  }
}

template <SampleSet Set>
SplitPart<Set> taken_part(std::shared_ptr<Set const> const& set, SplitIndices part) {
  return SplitPart<Set>(set, std::move(part));
}
template <class T, class A>
std::vector<T, A> taken_part(std::shared_ptr<std::vector<T, A> const> const& set,
                             SplitIndices part) {
  std::vector<T, A> some;
  some.reserve(part.of.size());
  for (std::uint64_t const i : part.of) some.push_back((*set)[static_cast<std::size_t>(i)]);
  return some;
}
template <class B>
  requires(SplitByRows<B> && !SampleSet<B>)
B taken_part(std::shared_ptr<B const> const& set, SplitIndices part) {
  std::int64_t const samples = batch_samples(*set);
  B rows = *set;
  show_tensors(rows, [&](at::Tensor& tensor) {
    if (!tensor.defined()) return;
    if (tensor.dim() == 0 || tensor.size(0) != samples) {
      throw ShapeError({.what = "a tensor of the set has not one row per sample",
                        .where = "split, a tensor of shape " + shape_text(tensor),
                        .why = "the set has " + std::to_string(samples) + " samples",
                        .fix = "Give tensors of shape [samples, ...]."});
    }
    tensor = rows_at(tensor, part.of);
  });
  return rows;
}

}  // namespace detail

/// Divides a set into parts that have no sample in common, by fractions that sum to 1 or by
/// numbers of samples: `auto [train, valid] = split(set, {0.9, 0.1});`.
///
/// `set`    a set of samples (gives SplitPart), a std::vector of samples (gives vectors), or a
///          batch whose tensors are [N, ...], as read_mnist gives (gives such batches, copied).
/// Order    by a permutation of the seed, in integers: the same on every machine. Within a part,
///          samples are in the order of the set.
/// Errors   SettingsError for shares that are not those of the set, for a part without samples,
///          and for labels that are not one per sample; ShapeError for a tensor without a row per
///          sample.
template <class Set, class Share, std::size_t N>
auto split(Set set, Share const (&shares)[N], SplitOptions const& options = {}) {
  static_assert(detail::require_split<Set>());
  static_assert(std::integral<Share> || std::same_as<Share, double>,
                "frugal: the shares of a split are fractions (double) or numbers of samples.");
  // Else the sentence alone.
  if constexpr (detail::Splits<Set> && (std::integral<Share> || std::same_as<Share, double>)) {
    auto const whole = std::make_shared<Set const>(std::move(set));
    std::uint64_t const samples = detail::split_samples(*whole);
    auto parts = detail::split_indices(
        detail::split_counts(std::span<Share const>(shares), samples), samples, options);
    return [&]<std::size_t... P>(std::index_sequence<P...>) {
      return std::array{detail::taken_part(whole, std::move(parts[P]))...};
    }(std::make_index_sequence<N>{});
  }
}

}  // namespace frugal

#ifndef FRUGAL_COMPILED
#include <frugal/data/split.ipp>
#endif
