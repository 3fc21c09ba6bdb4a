// SPDX-License-Identifier: Apache-2.0
// Shapes: B samples in a batch, ... whatever one sample has.
#pragma once

#include <frugal/base/hash.hpp>
#include <frugal/core/source/batch.hpp>
#include <frugal/core/source/data_identity.hpp>
#include <frugal/core/source/each_tensor.hpp>
#include <frugal/core/source/fields.hpp>
#include <frugal/core/source/tensor_identity.hpp>
#include <frugal/data/collate.hpp>
#include <frugal/data/pad.hpp>
#include <frugal/data/sampling/buckets.hpp>
#include <frugal/data/sampling/pass.hpp>
#include <frugal/data/tensor_dataset.hpp>
#include <frugal/error.hpp>

#include <ATen/ATen.h>
#include <ATen/core/Tensor.h>
#include <c10/util/ArrayRef.h>
#include <torch/data/datasets/base.h>
#include <torch/data/example.h>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

namespace torch::data::datasets {
class MNIST;
}

namespace frugal {

/// Says that `get(i)` of a data set is row i of its `images()` and `targets()`, and nothing
/// else: then a batch is one gather instead of B small copies. True for
/// torch::data::datasets::MNIST; specialise it for a data set of yours that is made so.
template <class D>
inline constexpr bool gives_whole_tensors = false;
template <>
inline constexpr bool gives_whole_tensors<torch::data::datasets::MNIST> = true;

/// A torch data set that can be read at any index: `get_batch` takes indices and gives a batch.
template <class D>
concept IndexedDataset = requires(D& dataset, std::vector<std::size_t> const& indices) {
  dataset.get_batch(c10::ArrayRef<std::size_t>(indices));
  { dataset.size() } -> std::convertible_to<std::optional<std::size_t>>;
} && !D::is_stateful;

namespace detail {

/// Where no function is given: samples are stacked, and what a data set has collated itself passes,
/// an example as the batch that it is.
struct StackSamples {
  template <class B>
  B operator()(B batch, std::span<std::size_t const>) const {
    return batch;
  }
  template <Stackable S>
  auto operator()(std::vector<S> const& samples, std::span<std::size_t const> indices) const {
    return Stack{}(samples, indices);
  }
  Batch operator()(torch::data::Example<> example, std::span<std::size_t const>) const {
    return {std::move(example.data), std::move(example.target)};
  }
  at::Tensor operator()(torch::data::TensorExample example, std::span<std::size_t const>) const {
    return std::move(example.data);
  }
};

/// False, and known only once `Collate` is.
template <class Collate>
inline constexpr bool collates = false;

/// Calls a collate function, with the numbers of the samples where it takes them.
template <class Collate, class Samples>
auto collated(Collate& collate, Samples&& samples, std::span<std::size_t const> indices) {
  if constexpr (requires { collate(std::forward<Samples>(samples), indices); }) {
    return collate(std::forward<Samples>(samples), indices);
  } else if constexpr (requires { collate(std::forward<Samples>(samples)); }) {
    return collate(std::forward<Samples>(samples));
  } else {
    static_assert(
        collates<Collate>,
        "frugal: the collate function cannot be called with what get_batch of this data set gives. "
        "It takes the samples of a batch: `[](std::vector<Sample> const& samples) { return batch; "
        "}`.");
    return Batch{};
  }
}

}  // namespace detail

/// Drives the `get_batch` of a torch data set in an order that can be sought, which
/// torch::data::DataLoader cannot. Made by `from_dataset`. `Collate` makes a batch of what
/// get_batch gives; `Order` is a Pass, or a BucketPass.
///
/// Cost    the data set's own get_batch, which copies sample by sample for a `Dataset` that
///         defines `get` alone: override get_batch, or make it `TensorDataset`, where that hurts.
/// Errors  EmptySourceError without samples; DataError for a set of unknown size; what
///         get_batch throws goes through.
template <IndexedDataset D, class Collate = detail::StackSamples, class Order = Pass>
class DatasetSource {
 public:
  using order_type = Order;
  using batch_type = decltype(detail::collated(
      std::declval<Collate&>(),
      std::declval<D&>().get_batch(std::declval<c10::ArrayRef<std::size_t>>()),
      std::declval<std::span<std::size_t const>>()));

  DatasetSource(D dataset, LoaderOptions loading)
    requires(std::same_as<Order, Pass> && std::default_initializable<Collate>)
      : DatasetSource(std::move(dataset), Collate{}, [&](std::uint64_t samples) {
          return Pass(samples, loading, "torch data set");
        }) {}

  /// `order(samples)` makes the order.
  template <class MakeOrder>
  DatasetSource(D dataset, Collate collate, MakeOrder&& order)
      : dataset_(std::move(dataset)),
        collate_(std::move(collate)),
        pass_(order(size_of(dataset_))) {
    indices_.reserve(static_cast<std::size_t>(pass_.loading().batch));
  }

  void seek(Cursor const& cursor) { pass_.seek(cursor); }

  std::optional<batch_type> next() {
    auto const slice = pass_.advance();
    if (slice.count == 0) return std::nullopt;
    indices_.resize(slice.count);
    pass_.indices(slice, std::span(indices_));
    at::NoGradGuard const no_grad;  // a transform's arithmetic is not part of the model
    return detail::collated(collate_, dataset_.get_batch(indices_), indices_);
  }

  /// Passes over a batch; returns its samples, 0 at the end of the epoch.
  std::uint64_t skip() { return pass_.advance().count; }

  std::uint64_t samples() const { return pass_.samples(); }
  std::uint64_t batches() const { return pass_.batches(); }
  std::int64_t batch_size() const { return pass_.loading().batch; }
  D const& dataset() const { return dataset_; }

  void identify(DataIdentity& to) const {
    detail::identify_order(pass_, to);
    if constexpr (Identifies<D>) dataset_.identify(to);
  }

 private:
  static std::uint64_t size_of(D const& dataset) {
    std::optional<std::size_t> const size = dataset.size();
    if (!size) {
      throw DataError({.what = "the data set does not know its size",
                       .where = "torch data set",
                       .why = "without it there is no order to compute and nowhere to resume",
                       .fix = "Return a number from size()."});
    }
    return *size;
  }

  static_assert(std::is_same_v<std::size_t, std::uint64_t>, "frugal: needs a 64-bit size_t.");

  D dataset_;
  [[no_unique_address]] Collate collate_;
  Order pass_;
  std::vector<std::size_t> indices_;
};

/// The set's own tensors as a `TensorDataset`, for any data set with `images()` and `targets()`.
/// Transforms that were mapped onto the set are not part of it.
template <class D>
TensorDataset tensor_dataset_from(D const& dataset, LoaderOptions loading = {}) {
  return TensorDataset(dataset.images(), dataset.targets(), loading);
}

namespace detail {

template <class D>
constexpr bool require_indexed() {
  static_assert(IndexedDataset<D>,
                "frugal: from_dataset needs a data set whose get_batch takes indices. A stream "
                "or a stateful (chunk) data set can neither be shuffled by index nor resumed. "
                "Write a Source for it: seek(cursor) and next().");
  return true;
}

}  // namespace detail

/// A Source over any torch::data data set that is read by index: map-style sets with `get` or
/// `get_batch` and sets with transforms (`.map(...)`), with or without a final `Stack<>`.
template <class D>
auto from_dataset(D dataset, LoaderOptions loading = {}) {
  static_assert(detail::require_indexed<D>());
  if constexpr (gives_whole_tensors<D>) {
    return tensor_dataset_from(dataset, loading);
  } else {
    return DatasetSource<D>(std::move(dataset), loading);
  }
}

/// A source with a function that makes a batch of samples: `Stack`, `Pad`, or a user-defined one.
template <class D, class Collate>
auto from_dataset(D dataset, LoaderOptions loading, Collate collate) {
  static_assert(detail::require_indexed<D>());
  return DatasetSource<D, Collate>(
      std::move(dataset), std::move(collate),
      [&](std::uint64_t samples) { return Pass(samples, loading, "torch data set"); });
}

/// A source whose batches have samples of similar length.
template <class D, class Collate>
auto from_dataset(D dataset, LoaderOptions loading, Collate collate, Buckets buckets) {
  static_assert(detail::require_indexed<D>());
  return DatasetSource<D, Collate, BucketPass>(
      std::move(dataset), std::move(collate), [&](std::uint64_t samples) {
        return BucketPass(samples, loading, std::move(buckets), "torch data set");
      });
}

/// Samples in memory, read by index as a torch data set is. Copies share them.
template <class S>
class Samples {
 public:
  static constexpr bool is_stateful = false;

  explicit Samples(std::vector<S> samples)
      : samples_(std::make_shared<std::vector<S> const>(std::move(samples))) {}

  std::vector<S> get_batch(c10::ArrayRef<std::size_t> indices) const {
    std::vector<S> some;
    some.reserve(indices.size());
    for (std::size_t const i : indices) some.push_back((*samples_)[i]);
    return some;
  }
  std::optional<std::size_t> size() const { return samples_->size(); }

  /// First dimensions of the samples' data.
  std::vector<std::int64_t> lengths() const
    requires detail::PaddableSample<S>
  {
    std::vector<std::int64_t> all;
    all.reserve(samples_->size());
    for (S const& sample : *samples_) {
      at::Tensor const& data = batch_data(sample);
      all.push_back(data.defined() && data.dim() > 0 ? data.size(0) : 0);
    }
    return all;
  }

  /// Reads every byte once. Of samples whose tensors are not known it has the number.
  void identify(DataIdentity& to) const {
    if constexpr (ShowsTensors<S>) {
      detail::TensorHash hash;
      for (S const& sample : *samples_) {
        detail::show_tensors(sample, [&](at::Tensor const& part) { hash.add(part); });
      }
      to.add("data", std::to_string(samples_->size()) + ", hash " + hex_of(hash.digest()));
    }
  }

 private:
  std::shared_ptr<std::vector<S> const> samples_;
};

/// A Source over samples in memory: tensors, pairs, tuples, arrays, maps, examples, or what the
/// collate function takes. Whole tensors of samples of one shape are cheaper as `TensorDataset`.
template <class S, class Collate = Stack>
auto from_samples(std::vector<S> samples, LoaderOptions loading = {}, Collate collate = {}) {
  return from_dataset(Samples<S>(std::move(samples)), loading, std::move(collate));
}

/// A source whose batches have samples of similar length; the lengths are measured unless they are
/// given.
template <class S, class Collate>
auto from_samples(std::vector<S> samples, LoaderOptions loading, Collate collate, Buckets buckets) {
  Samples<S> set(std::move(samples));
  if constexpr (detail::PaddableSample<S>) {
    if (buckets.lengths.empty()) buckets.lengths = set.lengths();
  }
  return from_dataset(std::move(set), loading, std::move(collate), std::move(buckets));
}

}  // namespace frugal
