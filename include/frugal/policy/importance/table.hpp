// SPDX-License-Identifier: Apache-2.0
// Shapes: N samples in the set, B in a batch.
#pragma once

#include <ATen/ATen.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include <frugal/base/number_text.hpp>
#include <frugal/data/sample_set.hpp>
#include <frugal/data/sampling/draw.hpp>
#include <frugal/data/sampling/weighted.hpp>
#include <frugal/error.hpp>
#include <frugal/inline.hpp>

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
  FRUGAL_INLINE void begin_fit() {
    if (in_fit_.exchange(true)) {
      throw ConcurrentFitError(
          {.what = "two fits share the losses of an Importance",
           .where = "Importance",
           .why = "each would draw by what the other has learnt",
           .fix = "Make an Importance, with its source and objective, for each of them."});
    }
    forget();
  }
  /// From now on losses are recorded: those of a dry run, or of another trial before the first step,
  /// are no part of the fit.
  void open() { records_ = true; }
  FRUGAL_INLINE void end_fit() {
    records_ = false;
    in_fit_ = false;
    read_waiting();
  }
  /// Whether a fit records its losses now.
  bool records() const { return records_; }

  /// Takes the losses of a batch, on any device; they are copied to the host when an epoch begins,
  /// the run is saved, or `most_waiting` batches wait: one wait for the device in so many steps.
  FRUGAL_INLINE void record(at::Tensor const& index_B, at::Tensor const& loss_B) {
    waiting_.emplace_back(index_B, loss_B.detach());
    if (waiting_.size() >= most_waiting) read_waiting();
  }
  static constexpr std::size_t most_waiting = 1024;
  /// Batches whose losses are still where they were computed.
  std::size_t waiting() const { return waiting_.size(); }

  /// Sets the probabilities for an epoch, unless they are already those of it.
  FRUGAL_INLINE void begin(std::uint64_t epoch) {
    read_waiting();
    if (epoch_ != epoch) {
      drawn_by_N_.copy_(latest_N_);
      epoch_ = epoch;
      is_built_ = false;
    }
    if (!is_built_) build();
  }
  /// Whether begin() was called.
  bool has_begun() const { return draws() != nullptr; }

  /// The draws of the epoch that has begun.
  FRUGAL_INLINE std::shared_ptr<ImportanceDraws const> draws() const {
    std::lock_guard const lock(mutex_);
    return draws_;
  }
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

  FRUGAL_INLINE void forget() {
    waiting_.clear();
    latest_N_.fill_(std::nan(""));
    drawn_by_N_.fill_(std::nan(""));
    epoch_ = none;
    is_built_ = false;
  }

  FRUGAL_INLINE void read_waiting() {
    if (waiting_.empty()) return;
    std::vector<at::Tensor> index, loss;
    for (auto& [index_B, loss_B] : waiting_) {
      index.push_back(index_B.to(at::kLong));
      loss.push_back(loss_B.to(at::kFloat));
    }
    waiting_.clear();
    // In their order: of a sample that was drawn twice the later loss counts.
    at::Tensor const all_index = at::cat(index).contiguous();
    at::Tensor const all_loss = at::cat(loss).cpu().contiguous();
    auto const* const at = static_cast<std::int64_t const*>(all_index.const_data_ptr());
    auto const* const of = static_cast<float const*>(all_loss.const_data_ptr());
    auto* const latest = static_cast<float*>(latest_N_.mutable_data_ptr());
    for (std::int64_t i = 0; i < all_index.numel(); ++i) latest[at[i]] = of[i];
  }

  FRUGAL_INLINE void build() {
    auto const* const loss = static_cast<float const*>(drawn_by_N_.const_data_ptr());
    std::uint64_t const n = samples();
    double sum = 0;
    double seen = 0;
    for (std::uint64_t i = 0; i < n; ++i) {
      if (!std::isfinite(loss[i])) continue;
      sum += std::max(0.0F, loss[i]);
      ++seen;
    }
    // A sample that was never drawn counts as one of mean loss.
    double const mean = seen > 0 ? sum / seen : 0;
    double const total = sum + (static_cast<double>(n) - seen) * mean;
    auto draws = std::make_shared<ImportanceDraws>();
    draws->probabilities.resize(n);
    draws->weights.resize(n);
    for (std::uint64_t i = 0; i < n; ++i) {
      double const of = std::isfinite(loss[i]) ? std::max(0.0F, loss[i]) : mean;
      double const by_loss = total > 0 ? of / total : 1 / static_cast<double>(n);
      double const p = uniform_ / static_cast<double>(n) + (1 - uniform_) * by_loss;
      draws->probabilities[i] = p;
      draws->weights[i] = static_cast<float>(1 / (static_cast<double>(n) * p));
    }
    draws->table = detail::AliasTable(draws->probabilities);
    std::lock_guard const lock(mutex_);
    draws_ = std::move(draws);
    is_built_ = true;
  }

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

}  // namespace frugal
