// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/util/ArrayRef.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include <frugal/base/hash.hpp>
#include <frugal/core/source/data_identity.hpp>
#include <frugal/core/source/each_tensor.hpp>
#include <frugal/core/source/fields.hpp>
#include <frugal/core/source/tensor_identity.hpp>
#include <frugal/data/collate.hpp>
#include <frugal/data/dataset.hpp>
#include <frugal/data/pad.hpp>
#include <frugal/data/sampling/pass.hpp>

namespace frugal {

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
