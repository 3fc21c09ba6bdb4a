// SPDX-License-Identifier: Apache-2.0
// Shapes: B samples, J teachers, C classes, K kept ones, ... whatever one sample has.
#pragma once

#include <sys/random.h>

#include <ATen/ATen.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <iostream>
#include <map>
#include <memory>
#include <optional>
#include <ostream>
#include <span>
#include <string>
#include <system_error>
#include <type_traits>
#include <typeinfo>
#include <utility>
#include <vector>

#include <frugal/base/number_text.hpp>
#include <frugal/core/run/objective.hpp>
#include <frugal/core/source/batch.hpp>
#include <frugal/core/source/data_identity.hpp>
#include <frugal/core/source/described_transform.hpp>
#include <frugal/core/source/sample_set.hpp>
#include <frugal/data/cache/cache_folder.hpp>
#include <frugal/data/cache/offline.hpp>
#include <frugal/data/collate.hpp>
#include <frugal/data/collate_then.hpp>
#include <frugal/data/loading/load_batch.hpp>
#include <frugal/data/loading/loader.hpp>
#include <frugal/data/shards/new_file.hpp>
#include <frugal/data/shards/record_set.hpp>
#include <frugal/data/shards/shard_writer.hpp>
#include <frugal/error.hpp>
#include <frugal/model/distill/teacher.hpp>

namespace frugal::detail {

/// The folder of one key in a folder of caches: key.txt, and record shards. It is written under
/// another name, and gets its own when it is complete. As with every cache, a lock says that it is
/// used, and remove_unused_keys() removes those without one.
class TeacherCacheFolder {
 public:
  /// Creates the folder of all caches. StoreError if that fails; DataError if the folder of this
  /// key has another one of the same hash.
  TeacherCacheFolder(std::filesystem::path const& all, std::string key);

  bool complete() const { return complete_; }
  std::filesystem::path const& path() const { return path_; }

  /// `write(folder)` writes the shards. If another process has published the same key meanwhile,
  /// its files are used.
  template <class Write>
  void fill(Write&& write) {
    remove_abandoned();
    std::filesystem::path const partial = partial_path();
    lock_ = std::make_shared<CacheFolderLock>(CacheFolderLock::shared(partial));
    try {
      NewFile file(partial / "key.txt");
      file.write(std::as_bytes(std::span(key_)));
      file.publish();
      write(partial);
      publish(partial);
    } catch (...) {
      lock_.reset();
      std::error_code ignored;
      std::filesystem::remove_all(partial, ignored);
      throw;
    }
    complete_ = true;
    require_key();
  }

 private:
  static constexpr char const* partial_suffix_of_folders = ".filling";

  void publish(std::filesystem::path const& partial);

  std::filesystem::path partial_path() const;

  /// What killed processes have left of this key: folders without a lock.
  void remove_abandoned() const;

  void require_key() const;

  std::string key_;
  std::filesystem::path path_;
  std::shared_ptr<CacheFolderLock> lock_;  ///< shared by copies
  bool complete_ = false;
};

}  // namespace frugal::detail

namespace frugal {

/// What of a teacher's outputs is kept, and where.
struct TeacherCacheSettings {
  std::filesystem::path folder;     ///< of all caches; each key has a folder of its own in it
  std::int64_t top_k = 0;           ///< classes kept of each position; 0: all of them
  at::ScalarType type = at::kHalf;  ///< kFloat: the bits of a live teacher
  double temperature = 1;           ///< of the top K; a Distill gives its own
  std::int64_t batch = 256;         ///< samples that the teacher is asked for at once
  c10::Device device = at::kCPU;    ///< where it is asked
  std::ostream* out = &std::cerr;   ///< destination of its lines; null for silence
};

namespace detail {

/// The draws of a set, each of which has outputs of its own: of Offline its variants.
template <class Set>
std::uint64_t draws_of(Set const& set) {
  if constexpr (requires { set.variants(); }) return set.variants();
  return 1;
}

std::uint64_t entry_of_key(SampleKey const& key, std::uint64_t draws);
/// A key whose entry this is.
SampleKey key_of_entry(std::uint64_t entry, std::uint64_t draws);

[[noreturn]] void refuse_cut(std::string what, std::string why, std::string fix);

/// Outputs [B, J, C, ...] as they are kept, by name: "teacher", and of the top K "classes".
std::map<std::string, at::Tensor> kept_outputs(at::Tensor const& all_BJC,
                                               TeacherCacheSettings const& settings);

}  // namespace detail

/// Adds a teacher's outputs to a batch, by the keys of its samples: the second function of a
/// CollateThen. Copies share the mapped files.
class TeacherRows {
 public:
  TeacherRows(std::filesystem::path const& folder, std::shared_ptr<TeacherOutputs const> taught_by,
              std::uint64_t draws)
      : records_(std::make_shared<Records>(folder)),
        taught_by_(std::move(taught_by)),
        draws_(draws) {}

  std::uint64_t size() const { return records_->size(); }

  template <class B>
  auto operator()(B batch, std::span<SampleKey const> keys) const {
    std::vector<std::uint64_t> entries;
    entries.reserve(keys.size());
    for (SampleKey const& key : keys) entries.push_back(detail::entry_of_key(key, draws_));
    auto rows = records_->get_batch(std::span<std::uint64_t const>(entries));
    return detail::taught(std::move(batch), rows["teacher"],
                          taught_by_->top_k == 0 ? at::Tensor() : rows["classes"], taught_by_);
  }

  TeacherOutputs const& taught_by() const { return *taught_by_; }

  void identify(DataIdentity& to) const {
    to.add("teacher", taught_by_->identity);
    to.add("teacher's outputs", records_->identity());
  }

 private:
  using Records = RecordSet<std::map<std::string, at::Tensor>>;
  std::shared_ptr<Records const> records_;
  std::shared_ptr<TeacherOutputs const> taught_by_;
  std::uint64_t draws_;  // of each sample
};

/// What teachers say of a set, computed once and kept in safetensors shards; a source of the set
/// whose batches have it (TaughtBatch), for Distill.
///
/// Lever   hours per run: the teacher runs once per sample, and not in every epoch.
/// Key     the set's identity() and size, the collate function, the teachers' weights and the types
///         of their functions, what is kept. Another key is another folder. Of a lambda the key does
///         not have the text: remove the folder when you change one.
/// Cost    on disk J C 2 bytes per sample (J teachers, C classes), or J (6 K + 2) for the top K. A
///         batch is one copy out of mapped files.
/// Order   that of the source: any position may be sought, and the rows of a batch are found by the
///         numbers of their samples.
/// Crash   while the outputs are computed leaves nothing that is used; the next start begins again.
/// Errors  a set or a collate function that draws random numbers does not compile (Offline does:
///         each variant has its outputs). SettingsError for impossible settings, ShapeError for
///         outputs that differ in shape between samples, DataError for a damaged cache and for
///         outputs that 16 bits do not hold, StoreError.
///
///     CachedTeacher taught(set, distill, {.folder = "cache"});
///     auto train = taught.source({.batch = 32});
template <class Set, class Collate = Stack>
class CachedTeacher {
  static_assert(SampleSet<Set>,
                "frugal: CachedTeacher needs a set of samples: size() and get(index), both const.");
  static_assert(
      !SampleSet<Set> || detail::ReadsByIndex<Set> || requires(Set const& set) { set.variants(); },
      "frugal: CachedTeacher needs samples that are the same in every epoch, and this "
      "set draws them by seed and epoch. Keep several variants with offline(set, "
      "augment, settings), whose draws are in the key, or ask the teacher live.");
  static_assert(!SampleSet<Set> || IdentifiedSet<Set>,
                "frugal: CachedTeacher needs identity() of the set: a text that changes when its "
                "content may have, such as a hash, or paths with sizes and times.");
  static_assert(!KeyedCollate<Collate, sample_of<Set>>,
                "frugal: CachedTeacher needs batches that are the same in every epoch, and this "
                "collate function draws by seed and epoch. Keep several variants with "
                "offline(set, augment, settings), or ask the teacher live.");

 public:
  CachedTeacher(Set set, std::vector<Teacher> teachers, TeacherCacheSettings settings,
                Collate collate = {})
      : set_(std::move(set)), collate_(std::move(collate)) {
    check(settings, teachers.size());
    auto outputs = std::make_shared<TeacherOutputs>();
    std::string asked;  // teachers, and how they are asked
    outputs->top_k = settings.top_k;
    outputs->temperature = settings.temperature;
    for (Teacher const& each : teachers) {
      std::string const identity = each.identity();  // reads all of its weights
      outputs->identity += (outputs->identity.empty() ? "" : "; ") + identity;
      outputs->weights.push_back(each.options().weight);
      asked += identity + " by " + each.function() + "; ";
    }
    folder_.emplace(settings.folder, key(settings, asked));
    if (!folder_->complete()) {
      filled_ = true;
      say(settings, "asks the teacher for " + std::to_string(entries()) + " samples");
      folder_->fill([&](std::filesystem::path const& where) { write(where, teachers, settings); });
    }
    rows_.emplace(folder_->path(), std::move(outputs), detail::draws_of(set_));
    if (rows_->size() == entries()) return;
    throw DataError({.what = "the cache has the outputs of " + std::to_string(rows_->size()) +
                             " samples, and the set has " + std::to_string(entries()),
                     .where = folder_->path().string(),
                     .why = "a file of it was changed",
                     .fix = "Remove that folder."});
  }
  /// With the teachers of a Distill, and its temperature.
  template <class D>
    requires requires(D const& distill) {
      distill.teachers;
      distill.temperature;
    }
  CachedTeacher(Set set, D const& distill, TeacherCacheSettings settings, Collate collate = {})
      : CachedTeacher(std::move(set), distill.teachers, for_distill(distill, std::move(settings)),
                      std::move(collate)) {}

  /// The set in batches that have the teacher's outputs.
  auto source(LoaderOptions loading = {}, LoaderSettings settings = {}) const {
    return loader(set_, loading, CollateThen<Collate, TeacherRows>{collate_, rows()},
                  std::move(settings));
  }
  /// For a loader in another order: `loader(set, order, CollateThen{Stack{}, taught.rows()})`.
  TeacherRows const& rows() const { return *rows_; }

  /// Whether the teacher was asked; false if another object or run has.
  bool filled() const { return filled_; }
  /// The folder of this key. remove_unused_keys() removes unused ones.
  std::filesystem::path const& folder() const { return folder_->path(); }

 private:
  std::uint64_t entries() const {
    return static_cast<std::uint64_t>(set_.size()) * detail::draws_of(set_);
  }

  template <class D>
  static TeacherCacheSettings for_distill(D const& distill, TeacherCacheSettings settings) {
    if (distill.temperature != 0) settings.temperature = distill.temperature;
    if (distill.temperature == 0 && settings.top_k != 0) {
      detail::refuse_cut("Distill<SquaredError> needs all outputs",
                         "the top " + std::to_string(settings.top_k) + " are kept",
                         "Set top_k to 0.");
    }
    return settings;
  }

  static void check(TeacherCacheSettings const& settings, std::size_t teachers) {
    if (settings.folder.empty()) detail::refuse_cut("the cache has no folder", "", "Set one.");
    if (teachers == 0) detail::refuse_cut("there is no teacher", "", "Give one or more.");
    if (settings.top_k < 0 || settings.batch < 1 || !(settings.temperature > 0)) {
      detail::refuse_cut("top_k is " + std::to_string(settings.top_k) + ", batch " +
                             std::to_string(settings.batch) + ", temperature " +
                             std::to_string(settings.temperature),
                         "", "Give a top_k from 0, a batch from 1, a temperature above 0.");
    }
    auto const type = settings.type;
    if (type != at::kHalf && type != at::kBFloat16 && type != at::kFloat) {
      detail::refuse_cut(std::string("outputs cannot be kept as ") + at::toString(type), "",
                         "Set kHalf, kBFloat16 or kFloat.");
    }
  }

  std::string key(TeacherCacheSettings const& settings, std::string const& teachers) const {
    std::string kept = at::toString(settings.type);
    if (settings.top_k != 0) {
      kept += ", top " + std::to_string(settings.top_k) + " at temperature " +
              detail::fixed(settings.temperature, 6);  // in any locale
    }
    std::string collate = typeid(Collate).name();
    if constexpr (DescribedTransform<Collate>) collate = detail::transform_text(collate_);
    return "frugal teacher cache 1\n" + detail::key_part("set", set_.identity()) +
           detail::key_part("samples", std::to_string(entries())) +
           detail::key_part("collate", collate) + detail::key_part("teachers", teachers) +
           detail::key_part("kept", kept);
  }

  void write(std::filesystem::path const& where, std::vector<Teacher> const& teachers,
             TeacherCacheSettings const& settings) const {
    ShardWriter writer(where);
    auto const most = static_cast<std::uint64_t>(settings.batch);
    for (std::uint64_t done = 0; done < entries();) {
      std::uint64_t const end = std::min(entries(), done + most);
      // The last batch has samples of the one before it: batches of one size have the same bits.
      std::uint64_t const first = end - std::min(end, most);
      std::vector<sample_of<Set>> samples;
      std::vector<SampleKey> keys;
      for (std::uint64_t entry = first; entry < end; ++entry) {
        keys.push_back(detail::key_of_entry(entry, detail::draws_of(set_)));
        samples.push_back(read_sample(set_, keys.back()));
      }
      auto batch = detail::collate_samples(collate_, std::move(samples), keys);
      batch_to(batch, settings.device);
      std::vector<at::Tensor> outputs;
      for (Teacher const& each : teachers) {
        outputs.push_back(detail::at_least_float(each(batch, settings.device)));
        if (outputs.back().sizes() != outputs.front().sizes()) {
          throw ShapeError({.what = "teachers of one cache differ in their outputs",
                            .where = "CachedTeacher",
                            .why = detail::shape_text(outputs.front()) + " and " +
                                   detail::shape_text(outputs.back()),
                            .fix = "Give each a cache of its own."});
        }
      }
      auto const kept = detail::kept_outputs(at::stack(outputs, 1), settings);
      for (; done < end; ++done) {
        std::map<std::string, at::Tensor> row;
        for (auto const& [name, rows] : kept) {
          row.emplace(name, rows[static_cast<std::int64_t>(done - first)]);
        }
        writer.add(row);
      }
    }
    writer.close();
  }

  void say(TeacherCacheSettings const& settings, std::string const& what) const {
    if (settings.out == nullptr) return;
    *settings.out << "frugal: CachedTeacher " + what + " and keeps what it says in " +
                         folder_->path().string() + "\n"
                  << std::flush;
  }

  Set set_;
  Collate collate_;
  std::optional<detail::TeacherCacheFolder> folder_;
  std::optional<TeacherRows> rows_;
  bool filled_ = false;
};
template <class Set, class Teachers>
CachedTeacher(Set, Teachers const&, TeacherCacheSettings) -> CachedTeacher<Set>;
template <class Set, class Teachers, class Collate>
CachedTeacher(Set, Teachers const&, TeacherCacheSettings, Collate) -> CachedTeacher<Set, Collate>;

}  // namespace frugal

#ifndef FRUGAL_COMPILED
#include <frugal/model/cached_teacher.ipp>
#endif
