// SPDX-License-Identifier: Apache-2.0
// Shapes: N samples in the set, B in a batch.
#pragma once

#include <ATen/ATen.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include <frugal/base/number_text.hpp>
#include <frugal/core/source/sample_set.hpp>
#include <frugal/data/sampling/permutation.hpp>
#include <frugal/data/sampling/weighted.hpp>
#include <frugal/error.hpp>

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

}  // namespace frugal

#ifndef FRUGAL_COMPILED
#include <frugal/policy/importance/table.ipp>
#endif
