// SPDX-License-Identifier: Apache-2.0
// Shapes: B samples in a batch, ... whatever one sample has.
#pragma once

#include <frugal/data/batch.hpp>
#include <frugal/data/loading.hpp>
#include <frugal/data/resident.hpp>
#include <frugal/error.hpp>

#include <ATen/ATen.h>
#include <torch/data/datasets/base.h>
#include <torch/data/example.h>

#include <concepts>
#include <cstddef>
#include <cstdint>
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

/// What a data set's get_batch gives, as a batch that the loop knows. Loose examples are
/// stacked, each side in one go; a batch of a type of your own passes as it is.
template <class B>
B as_batch(B batch) {
  return batch;
}
inline Batch as_batch(torch::data::Example<> example) {
  return {std::move(example.data), std::move(example.target)};
}
inline at::Tensor as_batch(torch::data::TensorExample example) { return std::move(example.data); }
inline Batch as_batch(std::vector<torch::data::Example<>> examples) {
  std::vector<at::Tensor> data, target;
  data.reserve(examples.size());
  target.reserve(examples.size());
  for (auto& example : examples) {
    data.push_back(std::move(example.data));
    target.push_back(std::move(example.target));
  }
  return {at::stack(data), at::stack(target)};
}
inline at::Tensor as_batch(std::vector<torch::data::TensorExample> examples) {
  std::vector<at::Tensor> data;
  data.reserve(examples.size());
  for (auto& example : examples) data.push_back(std::move(example.data));
  return at::stack(data);
}

}  // namespace detail

/// Drives the `get_batch` of a torch data set in an order that can be sought, which
/// torch::data::DataLoader cannot. Made by `from_dataset`.
///
/// Cost    the data set's own get_batch, which copies sample by sample for a `Dataset` that
///         defines `get` alone: override get_batch, or make it `Resident`, where that hurts.
/// Errors  EmptySourceError without samples; DataError for a set of unknown size; what
///         get_batch throws goes through.
template <IndexedDataset D>
class DatasetSource {
 public:
  using batch_type = decltype(detail::as_batch(
      std::declval<D&>().get_batch(std::declval<c10::ArrayRef<std::size_t>>())));

  DatasetSource(D dataset, Loading loading)
      : dataset_(std::move(dataset)), pass_(size_of(dataset_), loading, "torch data set") {
    indices_.reserve(static_cast<std::size_t>(loading.batch));
  }

  void seek(Cursor const& cursor) { pass_.seek(cursor); }

  std::optional<batch_type> next() {
    Pass::Slice const slice = pass_.advance();
    if (slice.count == 0) return std::nullopt;
    indices_.resize(slice.count);
    pass_.indices(slice, std::span(indices_));
    at::NoGradGuard const no_grad;  // a transform's arithmetic is not part of the model
    return detail::as_batch(dataset_.get_batch(indices_));
  }

  std::uint64_t samples() const { return pass_.samples(); }
  std::uint64_t batches() const { return pass_.batches(); }
  D const& dataset() const { return dataset_; }

 private:
  static std::uint64_t size_of(D const& dataset) {
    std::optional<std::size_t> const size = dataset.size();
    if (!size) {
      throw DataError({.what = "the data set does not know its size",
                       .where = "torch data set",
                       .why = "without it there is no order to compute and nowhere to resume",
                       .fix = "Let size() give a number."});
    }
    return *size;
  }

  static_assert(std::is_same_v<std::size_t, std::uint64_t>, "frugal: needs a 64-bit size_t.");

  D dataset_;
  Pass pass_;
  std::vector<std::size_t> indices_;
};

/// The set's own tensors as a `Resident`, for any data set with `images()` and `targets()`.
/// Transforms that were mapped onto the set are not part of it.
template <class D>
Resident resident_from(D const& dataset, Loading loading = {}) {
  return Resident(dataset.images(), dataset.targets(), loading);
}

/// A Source over any torch::data data set that is read by index: map-style sets with `get` or
/// `get_batch` and sets with transforms (`.map(...)`), with or without a final `Stack<>`.
template <class D>
auto from_dataset(D dataset, Loading loading = {}) {
  static_assert(IndexedDataset<D>,
                "frugal: from_dataset needs a data set whose get_batch takes indices. A stream "
                "or a stateful (chunk) data set can neither be shuffled by index nor resumed. "
                "Write a Source for it: seek(cursor) and next().");
  if constexpr (gives_whole_tensors<D>) {
    return resident_from(dataset, loading);
  } else {
    return DatasetSource<D>(std::move(dataset), loading);
  }
}

}  // namespace frugal
