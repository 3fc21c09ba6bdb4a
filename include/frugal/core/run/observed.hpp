// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <frugal/base/function_ref.hpp>
#include <frugal/core/run/counters.hpp>
#include <frugal/core/run/event.hpp>
#include <frugal/core/run/gauges.hpp>
#include <frugal/core/run/judged.hpp>
#include <frugal/core/run/metrics.hpp>
#include <frugal/core/run/speed.hpp>

namespace frugal {

/// What a run has measured, and what it says of itself: validations, the mean of an epoch, speed, gauges,
/// warnings and events.
class Observed {
 public:
  // ---- validations

  /// Every checkpoint has all validations that the run keeps, so their number is bounded.
  static constexpr std::size_t most_validations = 1000;

  void add_validation(Metrics metrics, Counters const& at);
  /// The newest, oldest first: see most_validations. Only the last one has its tables.
  std::vector<Validation> const& validations() const { return validations_; }
  /// Of the whole run, kept or not.
  std::uint64_t validation_count() const { return judged_.validations; }
  /// Whether the metrics of the last validation are those of the current weights.
  bool is_judged(Counters const& now) const;
  Judged const& judged() const { return judged_; }
  /// A policy has changed the weights outside of a step: no validation has measured them, and no
  /// save contains them.
  void weights_have_changed() { judged_.micro_batch = Judged::nothing; }
  /// Number of weights in the average that a validation would measure now; 0: it would measure the
  /// trained weights.
  std::uint64_t averaged() const { return averaged_; }
  void set_averaged(std::uint64_t weights) { averaged_ = weights; }

  // ---- training

  /// Mean loss of the last epoch, or of the current part of it; NaN before the first.
  double epoch_loss() const { return epoch_loss_; }
  void set_epoch_loss(double mean) { epoch_loss_ = mean; }
  /// Metrics of the training batches, the last; empty without TrainMetrics.
  Validation const& train_metrics() const { return train_metrics_; }
  void set_train_metrics(Validation last) { train_metrics_ = std::move(last); }
  /// The last measurement of a policy.
  std::optional<Speed> const& speed() const { return speed_; }
  void set_speed(Speed const& last) { speed_ = last; }
  Gauges const& gauges() const { return gauges_; }
  /// SettingsError for a name that a log's line has already.
  void set_gauge(std::string_view name, double value);

  // ---- words

  /// A recommendation of one line, once however often it is repeated. Never throws.
  void warn(std::string const& text);
  /// The same of what this start of the run will not come to: a resumed run may have another end, and does not repeat
  /// it.
  void warn_of_plan(std::string const& text);
  /// The same of a warning with measurements: it takes the place of what says the same up to the first
  /// digit, as an earlier start of the run has measured it.
  void warn_measured(std::string const& text);
  /// It takes the place of a warning that begins likewise.
  void warn_again(std::string_view begin, std::string text);
  std::vector<std::string> const& warnings() const { return warnings_; }

  /// Events, for loggers, oldest first.
  std::vector<Event> const& events() const { return events_; }
  /// Adds an event and passes it to `tell`. An event that is added meanwhile is passed after it.
  void add_event(Event event, FunctionRef<void(Event const&)> tell);

  // ---- saving, in the order of a checkpoint

  template <class Archive>
  void persist_epoch_loss(Archive& archive) {
    archive("epoch_loss", epoch_loss_);
  }

  template <class Archive>
  void persist_metrics(Archive& archive) {
    persist_train_metrics(archive);
    std::uint64_t count = validations_.size();  // NOLINT(misc-const-correctness): loading fills it
    archive("validations", count);
    if (Archive::loading) validations_.clear();
    for (std::size_t i = 0; i < count; ++i) {
      if (Archive::loading) validations_.emplace_back();  // one by one: the count may be damaged
      archive.scope("validation." + std::to_string(i),
                    [&](auto& inner) { validations_[i].persist(inner); });
    }
    archive.scope("judged", [&](auto& inner) { judged_.persist(inner); });
  }

  /// Recommendations are saved apart from the run's state, which a rollback may restore: none is
  /// repeated. On loading, those already given by this process are kept too.
  template <class Archive>
  void persist_warnings(Archive& archive) {
    if constexpr (Archive::loading) {
      std::vector<std::string> const here = std::exchange(warnings_, {});
      archive("advice", warnings_);
      for (std::string const& text : here) warn(text);
    } else {
      std::vector<std::string> kept = warnings_;
      std::erase_if(kept, [&](std::string const& text) {
        return std::ranges::find(plans_, text) != plans_.end();
      });
      archive("advice", kept);
    }
  }

 private:
  /// Only the last validation keeps its tables: a confusion matrix takes 8 bytes for each pair of
  /// classes.
  void bound_validations();

  template <class Archive>
  void persist_train_metrics(Archive& archive) {
    if constexpr (Archive::loading) {
      if (archive.moves_to()) return;
      train_metrics_ = {};
      if (!archive.has("train_metrics")) return;  // nothing was measured
    } else {
      if (train_metrics_.metrics.empty()) return;
    }
    archive.scope("train_metrics", [&](auto& inner) { train_metrics_.persist(inner); });
  }

  std::vector<Validation> validations_{};
  Judged judged_{};  ///< the weights that the last of them measured
  std::uint64_t averaged_ = 0;
  double epoch_loss_ = std::numeric_limits<double>::quiet_NaN();
  Validation train_metrics_{};
  std::optional<Speed> speed_{};
  Gauges gauges_{};
  std::vector<std::string> warnings_{};
  std::vector<std::string> plans_{};  ///< those of this start alone
  std::vector<Event> events_{};
  bool tells_ = false;
};

}  // namespace frugal

#ifndef FRUGAL_COMPILED
#include <frugal/core/run/observed.ipp>
#endif
