// SPDX-License-Identifier: Apache-2.0
// Shapes: N samples in the set, B in a batch.
// Shapes: B samples in a batch.
#pragma once

#include <frugal/base/number_text.hpp>
#include <frugal/core/compose/diagnostic.hpp>
#include <frugal/core/source/batch.hpp>
#include <frugal/core/source/data_identity.hpp>
#include <frugal/core/source/sample_set.hpp>
#include <frugal/core/source/source.hpp>
#include <frugal/data/sampling/pass.hpp>
#include <frugal/data/sampling/permutation.hpp>
#include <frugal/data/sampling/weighted.hpp>
#include <frugal/error.hpp>
#include <frugal/policy/kinds.hpp>

#include <ATen/ATen.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

namespace frugal {

/// How an epoch draws its samples. Never changes.
struct ImportanceDraws {
  std::vector<double> probabilities;  ///< of each sample
  std::vector<float> weights;         ///< 1 / (N p) of each sample
  detail::AliasTable table;

  /// The sample at a place of the epoch.
  std::uint64_t operator()(SampleKey const& place) const {
    Draw random(place, draw_stream("frugal: importance"));
    return table(random);
  }
};

/// The last loss of each sample, and the probabilities by which an epoch draws, which come of the
/// losses that were known when it began. So any place of an epoch can be sought. It is the state of
/// one fit: the next one begins with an empty table, or with the one that it resumes.
///
/// Training records losses in its own thread. Workers of a loader take the draws of their epoch
/// with them: a seek begins another one while they are still at batches of the last.
class ImportanceTable {
 public:
  /// `uniform` is the share of an epoch that is drawn without regard to the losses, in (0, 1].
  ImportanceTable(std::uint64_t samples, double uniform) : uniform_(uniform) {
    if (!(uniform > 0 && uniform <= 1)) {
      throw SettingsError({.what = "Importance::uniform is " + detail::general(uniform, 6),
                           .where = "Importance",
                           .why = "a sample that is never drawn has no weight that makes up for it",
                           .fix = "Give a share above 0, and at most 1."});
    }
    latest_N_ = at::full({static_cast<std::int64_t>(samples)}, std::nan(""), at::kFloat);
    drawn_by_N_ = latest_N_.clone();
  }

  std::uint64_t samples() const { return static_cast<std::uint64_t>(latest_N_.size(0)); }

  /// The share of an epoch that is drawn without regard to the losses.
  double uniform() const { return uniform_; }

  /// A fit begins: with no losses, unless it is resumed (persist). ConcurrentFitError while another fit
  /// draws by this table.
  void begin_fit();
  /// From now on losses are recorded: those of a dry run, or of another trial before the first step,
  /// are no part of the fit.
  void open() { records_ = true; }
  void end_fit();
  /// Whether a fit records its losses now.
  bool records() const { return records_; }

  /// Takes the losses of a batch, on any device; they are copied to the host when an epoch begins,
  /// the run is saved, or `most_waiting` batches wait: one wait for the device in so many steps.
  void record(at::Tensor const& index_B, at::Tensor const& loss_B);
  static constexpr std::size_t most_waiting = 1024;
  /// Batches whose losses are still where they were computed.
  std::size_t waiting() const { return waiting_.size(); }

  /// Sets the probabilities for an epoch, unless they are already those of it.
  void begin(std::uint64_t epoch);
  /// Whether begin() was called.
  bool has_begun() const { return draws() != nullptr; }

  /// The draws of the epoch that has begun.
  std::shared_ptr<ImportanceDraws const> draws() const;
  /// The sample at a place of an epoch that has begun.
  std::uint64_t draw(SampleKey const& place) const { return (*draws())(place); }
  /// 1 / (N p) of a sample.
  float weight(std::uint64_t sample) const { return draws()->weights[sample]; }
  /// The probability of a sample in this epoch.
  double probability(std::uint64_t sample) const { return draws()->probabilities[sample]; }

  template <class Archive>
  void persist(Archive& archive) {
    read_waiting();
    archive("latest", latest_N_);
    archive("drawn_by", drawn_by_N_);
    archive("epoch", epoch_);
    if (Archive::loading) is_built_ = false;
  }

 private:
  static constexpr auto none = static_cast<std::uint64_t>(-1);

  void forget();

  void read_waiting();

  void build();

  double uniform_;
  at::Tensor latest_N_;    // float on the host; NaN: not drawn yet
  at::Tensor drawn_by_N_;  // those of which the probabilities are
  std::uint64_t epoch_ = none;
  std::vector<std::pair<at::Tensor, at::Tensor>> waiting_;
  bool is_built_ = false;
  bool records_ = false;
  std::atomic<bool> in_fit_{false};
  mutable std::mutex mutex_;  ///< for draws_
  std::shared_ptr<ImportanceDraws const> draws_;
};

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
