// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/checkpoint/checkpoint.hpp>
#include <frugal/checkpoint/retention.hpp>
#include <frugal/core/compose/watching.hpp>
#include <frugal/core/run/metrics.hpp>
#include <frugal/core/state/state_reader.hpp>
#include <frugal/policy/options.hpp>
#include <frugal/policy/watched.hpp>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

// Metrics measured on different validation data cannot be compared.
namespace frugal::detail {

/// The validation data of a run, a text for each source; the source without a name is "".
using ValidationTexts = std::map<std::string, std::string, std::less<>>;

/// Those among the texts of DataIdentity.
ValidationTexts validation_texts(std::map<std::string, std::string> const& data);

/// The sources that both have, with different data.
std::set<std::string, std::less<>> changed_sources(ValidationTexts const& here,
                                                   ValidationTexts const& there);

/// The validation data that a checkpoint has noted. None if its state cannot be read: a resume
/// verifies it.
ValidationTexts validation_of(SavedCheckpoint const& checkpoint);

/// Which metrics of a run's checkpoints were measured on other validation data than the run has now.
class FormerValidation {
 public:
  FormerValidation() = default;
  FormerValidation(std::vector<SavedCheckpoint> const& checkpoints,
                   std::map<std::string, std::string> const& data);

  /// Takes them from a checkpoint, which then does not count among the best.
  void take_from(SavedCheckpoint& checkpoint) const;

 private:
  std::map<std::uint64_t, std::set<std::string, std::less<>>> by_serial_;
};

/// Removes the checkpoints whose `metric` was measured on other data than that of the newest which
/// has it. All have the metric; newest first.
void erase_former(std::vector<SavedCheckpoint>& checkpoints, std::string_view metric);

/// The validation source whose data this name of a DataIdentity is of: "" for the one without a
/// name.
std::optional<std::string> validation_source(std::string_view name);

/// A value of a DataIdentity for a reader: of a long one the parts that `other` lacks, with types as they are written.
std::string shown_identity(std::string const& text, std::string const& other);

/// Compares the training data, their order and the validation data (DataIdentity) with those of a
/// checkpoint. StateError that names all differences with both values, unless `allowed` has their
/// names. Returns the allowed ones in words. A validation source may come or go: only one that both
/// have must be the same.
std::vector<std::string> changed_data(std::map<std::string, std::string> const& here,
                                      std::map<std::string, std::string> const& there,
                                      std::vector<std::string> const& allowed,
                                      std::filesystem::path const& where);

}  // namespace frugal::detail

namespace frugal {

namespace detail {

[[noreturn]] void refuse_run(std::filesystem::path const& run, std::string what, std::string why,
                             std::string fix);

}  // namespace detail

/// The folder of a run's newest valid checkpoint: every file matches its hash. StoreError without
/// one. Takes no lock: the run may continue meanwhile.
std::filesystem::path latest_checkpoint(std::filesystem::path const& run);

/// The folder of the checkpoint with the best value of a metric, among those on disk (Keep,
/// KeepBest); of equals the newest. Ignores NaN, damaged checkpoints, and those with other
/// validation data than the newest. StoreError if no checkpoint has the metric: a checkpoint has it
/// if a validation preceded the save.
std::filesystem::path best_checkpoint(std::filesystem::path const& run, std::string_view metric,
                                      Better better);

/// `best_checkpoint<WatchAccuracy>(run)`: with the metric and direction that policies watch.
template <class Metric = WatchLoss>
std::filesystem::path best_checkpoint(std::filesystem::path const& run) {
  static_assert(detail::option::watch::has<Metric>,
                "frugal: best_checkpoint<...>: this is not a watched metric. Write "
                "best_checkpoint<WatchAccuracy>(run), or Watch<\"f1\", Better::higher>.");
  return best_checkpoint(run, Metric::name, Metric::better);
}

}  // namespace frugal

namespace frugal::detail {

/// The best value so far of each metric that KeepBest names: an improvement is saved when it is
/// measured.
class BestSoFar {
 public:
  explicit BestSoFar(std::vector<BestBy> metrics) : metrics_(std::move(metrics)) {}

  /// Whether a metric is better than ever before. A NaN never is.
  bool look(Metrics const& measured);

  /// Was one, and no save since?
  bool improved() const { return improved_; }

  /// A save of this moment begins, and has the weights of the last improvement.
  void begin_save();
  /// That save is on disk.
  void saved();
  /// That save has failed: a value that no file has is no best one, since later validations that
  /// beat all files are to be saved.
  void not_saved();

  /// After a resume: the best values are those of the checkpoints on disk, given by their metrics. A
  /// fork has none of the run before it, and a run that has gone back may have lost its best one.
  void reset_to(std::vector<std::map<std::string, double>> const& on_disk);

  template <class Archive>
  void persist(Archive& archive) {
    for (BestBy const& best : metrics_) {
      // Not an optional: g++ 12 sees an uninitialised one where there is none (GCC bug 80635).
      std::vector<double> value;
      if (auto const known = values_.find(best.metric); known != values_.end()) {
        value = {known->second};
      }
      archive("best." + best.metric, value);
      if (!Archive::loading) continue;
      // A return to an earlier state forgets what the weights that it discards have reached.
      values_.erase(best.metric);
      if (value.empty() || forgets_best(archive, "KeepBest", best.metric)) continue;
      values_.emplace(best.metric, value.front());
    }
    if (!Archive::loading) return;
    improved_ = is_writing_ = false;
    saved_ = values_;
  }

 private:
  std::vector<BestBy> metrics_;
  std::map<std::string, double> values_;
  std::map<std::string, double> saved_;    ///< those of them that are on disk
  std::map<std::string, double> writing_;  ///< those that a save in progress has
  // Not an optional of a map, for the reason above.
  bool is_writing_ = false;
  bool improved_ = false;
};

}  // namespace frugal::detail

#ifndef FRUGAL_COMPILED
#include <frugal/policy/checkpoint/find.ipp>
#endif
