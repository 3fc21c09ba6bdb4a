// SPDX-License-Identifier: Apache-2.0
// Shapes: B samples in a batch.
#pragma once

#include <ATen/ATen.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include <frugal/core/compose/diagnostic.hpp>
#include <frugal/core/source/batch.hpp>
#include <frugal/core/source/data_identity.hpp>
#include <frugal/core/source/sample_set.hpp>
#include <frugal/core/source/source.hpp>
#include <frugal/data/sampling/pass.hpp>
#include <frugal/policy/importance/table.hpp>
#include <frugal/policy/kinds.hpp>

namespace frugal {

/// A batch whose samples were drawn with unequal probabilities. Only an objective that weighs them
/// takes it (Importance::objective): any other would train on a biased loss.
template <class B>
struct ImportanceBatch {
  B batch;              ///< what the collate function made
  at::Tensor weight_B;  ///< float [B]: 1 / (N p) of each sample
  at::Tensor index_B;   ///< int64 [B], on the host: their numbers in the set

  void each_tensor(auto&& f) { f(batch, weight_B); }
};

template <class B>
struct batch_traits<ImportanceBatch<B>> {
  static std::int64_t samples(ImportanceBatch<B> const& batch) {
    return batch_samples(batch.batch);
  }
  static std::int64_t tokens(ImportanceBatch<B> const& batch) { return batch_tokens(batch.batch); }
  static ImportanceBatch<B> narrow(ImportanceBatch<B> const& batch, std::int64_t begin,
                                   std::int64_t count)
    requires Splittable<B>
  {
    return {batch_narrow(batch.batch, begin, count), batch.weight_B.narrow(0, begin, count),
            batch.index_B.narrow(0, begin, count)};
  }
};

/// An epoch of samples drawn with replacement, by the probabilities of a table: an Order.
class ImportancePass {
 public:
  using Slice = Pass::Slice;
  using trained_with = kinds::importance;
  FRUGAL_DIAGNOSTIC(
      trained_without,
      "frugal: this training source draws its samples by importance, and the recipe does "
      "not keep their losses. Add the policy it was made with.");

  ImportancePass(std::shared_ptr<ImportanceTable> table, LoaderOptions loading)
      : pass_(table->samples(), unshuffled(loading), "importance sampling"),
        loading_(loading),
        table_(std::move(table)) {
    if (!table_->has_begun()) table_->begin(0);  // as for a cursor that was never set
  }

  void seek(Cursor const& cursor);
  Slice advance() { return pass_.advance(); }

  template <class Int>
  void indices(Slice slice, std::span<Int> out) const {
    if (cursor_.in_order) return pass_.indices(slice, out);
    auto const draws = table_->draws();
    for (Int& index : out) {
      index = static_cast<Int>(
          (*draws)({.index = slice.first++, .seed = cursor_.seed, .epoch = cursor_.epoch}));
    }
  }

  LoaderOptions const& loading() const { return loading_; }
  std::uint64_t samples() const { return pass_.samples(); }
  std::uint64_t batches() const { return pass_.batches(); }

  void identify(DataIdentity& to) const;

 private:
  static LoaderOptions unshuffled(LoaderOptions loading);

  Pass pass_;
  LoaderOptions loading_;
  Cursor cursor_{};
  std::shared_ptr<ImportanceTable> table_;
};

/// Adds the weights and numbers of the samples to what another collate function makes.
template <class Collate>
struct CollateByImportance {
  [[no_unique_address]] Collate collate;
  std::shared_ptr<ImportanceTable> table;

  void identify(DataIdentity& to) const { detail::identify_transform(collate, "collate", to); }

  template <class S>
    requires(!KeyedCollate<Collate, S>)
  auto operator()(std::vector<S> samples, std::span<std::size_t const> numbers) const {
    auto const number = [&](std::size_t i) { return numbers[i]; };
    if constexpr (requires { collate(std::move(samples), numbers); }) {
      return weighed(numbers.size(), number, [&] { return collate(std::move(samples), numbers); });
    } else {
      return weighed(numbers.size(), number, [&] { return collate(std::move(samples)); });
    }
  }
  template <class S>
    requires KeyedCollate<Collate, S>
  auto operator()(std::vector<S> samples, std::span<SampleKey const> keys) const {
    return weighed(
        keys.size(), [&](std::size_t i) { return keys[i].index; },
        [&] { return collate(std::move(samples), keys); });
  }

 private:
  template <class Number, class Make>
  auto weighed(std::size_t samples, Number const& number, Make const& make) const {
    auto const count = static_cast<std::int64_t>(samples);
    at::Tensor index_B = at::empty({count}, at::kLong);
    at::Tensor weight_B = at::empty({count}, at::kFloat);
    auto* const index = static_cast<std::int64_t*>(index_B.mutable_data_ptr());
    auto* const weight = static_cast<float*>(weight_B.mutable_data_ptr());
    auto const draws = table->draws();
    for (std::size_t i = 0; i < samples; ++i) {
      index[i] = static_cast<std::int64_t>(number(i));
      weight[i] = draws->weights[number(i)];
    }
    auto batch = make();
    return ImportanceBatch<decltype(batch)>{std::move(batch), std::move(weight_B),
                                            std::move(index_B)};
  }
};

}  // namespace frugal

#ifndef FRUGAL_COMPILED
#include <frugal/policy/importance/pass.ipp>
#endif
