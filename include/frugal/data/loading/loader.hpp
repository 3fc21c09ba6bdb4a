// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/core/source/data_identity.hpp>
#include <frugal/core/source/sample_set.hpp>
#include <frugal/core/source/source.hpp>
#include <frugal/data/collate.hpp>
#include <frugal/data/loading/load_batch.hpp>
#include <frugal/data/loading/loader_settings.hpp>
#include <frugal/data/loading/passed_over.hpp>
#include <frugal/data/loading/pool.hpp>
#include <frugal/data/loading/thrown_by.hpp>
#include <frugal/data/loading/waiting.hpp>
#include <frugal/data/sampling/order.hpp>
#include <frugal/data/sampling/pass.hpp>
#include <frugal/error.hpp>

#include <c10/core/impl/DeviceGuardImplInterface.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <typeinfo>
#include <utility>
#include <vector>

namespace frugal {

/// The samples that a loader left out because they are damaged (OnError::Skip).
struct SkippedSamples {
  std::uint64_t total = 0;       ///< since the loader was made
  std::uint64_t since_seek = 0;  ///< since the last seek
  /// Different ones of this epoch that this loader has met, in whatever pieces it was read: what
  /// the limit is about.
  std::set<std::uint64_t> in_epoch{};
  /// Name and error of one in each of the first batches that had any, at most 8.
  std::vector<std::string> first{};

  /// `same_epoch`: of the seek before, and of its seed.
  void seek(bool same_epoch);
  void add(std::span<std::size_t const> samples, std::string const& name, std::string const& why);
  /// One is always within a limit above 0.
  bool within(double limit, std::uint64_t samples) const;
};

namespace detail {

/// The errors of a loader. `sample` names the sample, `batch` its batch.
class LoaderFaults {
 public:
  LoaderFaults(std::string set, LoaderSettings const& settings)
      : set_(std::move(set)), patience_(settings.patience.count()), limit_(settings.skip_limit) {}

  /// What errors call the set.
  std::string const& set() const { return set_; }

  [[noreturn]] void unreadable(std::exception_ptr const& failure, std::string const& sample,
                               std::string const& batch) const;
  [[noreturn]] void uncollated(std::exception_ptr const& failure,
                               std::span<std::size_t const> indices,
                               std::string const& batch) const;
  [[noreturn]] void undealt(std::exception_ptr const& failure, std::string const& batch) const;
  [[noreturn]] void hangs(std::string const& sample, std::string const& batch) const;
  [[noreturn]] void unstarted(std::exception_ptr const& failure, std::string const& batch) const;
  [[noreturn]] void died(std::string const& sample, std::string const& batch) const;
  [[noreturn]] void empty_part(std::string const& batch) const;
  [[noreturn]] void too_many(SkippedSamples const& skipped, std::uint64_t samples) const;

 private:
  std::string place(std::string const& sample, std::string const& batch) const {
    return (sample.empty() ? "" : sample + ", ") + batch + ", " + set_;
  }

  [[noreturn]] static void rethrow(std::exception_ptr const& failure, Fault fault);

  std::string set_;
  double patience_;
  double limit_;
};

}  // namespace detail

/// Reads a set in threads of its own, ahead of the training: a Source. Made by `loader`.
///
/// Each worker reads, transforms and collates one batch at a time.
///
/// Lever   idle device: reading and transforms overlap with training, on several cores.
/// Cost    `depth` + `workers` batches of memory, whatever the size of the set; a lock per batch.
/// Order   that of `Order`, the same for any number of workers. Workers are kept between epochs and
///         over a seek, which throws away what was read ahead.
/// Cursor  what next() gave is consumed, skipped samples among it.
/// Errors  WorkerError from next() at exactly the batch that failed, after those before it, with
///         what was thrown nested inside; also for a worker that ended, and for one that was at one
///         sample, or at the collating of a batch, for longer than `patience`. It names the sample,
///         or one of its batch if it was at all of them. WorkerError if a worker cannot be started.
///         What cannot be read now (IoError) and what has changed (ChangedError) is never skipped.
///         DataError for more skipped samples than
///         `skip_limit`, and for a set that processes share and that has left out damaged shards.
///         Each stays until the next seek. SettingsError for impossible settings; those of the
///         order.
///
/// Workers take no signals, run without gradients, and do not see autocast or other thread-local
/// settings of the caller. A transform takes its random numbers from its SampleKey: LibTorch's
/// global generator is shared with the training thread, and then no run repeats.
template <SampleSet Set, class Collate = Stack, Order O = Pass>
class Loader {
  using Tasks = detail::BatchTasks<Set, Collate, O>;
  using Clock = std::chrono::steady_clock;

 public:
  using batch_type = typename Tasks::Batch;
  using order_type = O;

  Loader(Set set, O order, Collate collate = {}, LoaderSettings settings = {})
      : settings_(checked(std::move(settings))),
        faults_(settings_.name.empty() ? detail::type_name(typeid(Set)) : settings_.name,
                settings_),
        samples_(static_cast<std::uint64_t>(order.samples())),
        batches_(static_cast<std::uint64_t>(order.batches())),
        batch_size_(order.loading().batch),
        shared_(detail::is_shared(order)),
        at_once_(detail::groups_at_once_of(set, order)),
        pool_(std::make_unique<detail::Pool<Tasks>>(
            Tasks(std::move(set), std::move(collate), std::move(order), settings_),
            *settings_.workers, settings_.depth + static_cast<std::size_t>(*settings_.workers),
            settings_.patience)) {
    if (shared_) detail::require_nothing_left_out(this->set(), faults_.set());
  }

  void seek(Cursor const& cursor) {
    pool_->seek([&](Tasks& tasks) { tasks.seek(cursor, own_); });
    dealt_.clear();
    skipped_.seek(cursor.seed == start_.seed && cursor.epoch == start_.epoch);
    start_ = cursor;
    consumed_ = cursor.position;
    failure_ = nullptr;
    meter_.begin(Clock::now());
  }

  std::optional<batch_type> next() {
    if (failure_) std::rethrow_exception(failure_);
    Clock::time_point const asked = Clock::now();
    for (;;) {
      std::optional<Item> loaded = dealt_.next([this] { return take(); });
      if (!loaded) {
        meter_.end();
        return std::nullopt;
      }
      require_good(*loaded);
      consumed_ = loaded->consumed;
      if (!loaded->batch) continue;
      meter_.step(asked, Clock::now());
      return std::move(loaded->batch);
    }
  }

  /// From the next seek on, workers read these batches alone; skip() passes over the others.
  void divide(Division const& own) { own_ = own; }
  /// Passes over the next batch, without waiting for it where another process reads it; returns its
  /// samples, 0 at the end of the epoch.
  std::uint64_t skip() {
    if (failure_) std::rethrow_exception(failure_);
    std::optional<Item> left;
    auto const passed = dealt_.skip([this] { return take(); }, left);
    if (!passed && !left) return 0;
    if (left) require_good(*left);
    consumed_ = passed ? passed->consumed : left->consumed;
    return passed ? passed->samples : left->samples;
  }

  std::uint64_t samples() const { return samples_; }
  std::uint64_t batches() const { return batches_; }
  std::int64_t batch_size() const { return batch_size_; }
  /// Samples of the epoch that the batches so far stand for, skipped ones included.
  std::uint64_t consumed() const { return consumed_; }

  /// Has the workers finish what they are at, and hold still. What was read ahead stays.
  bool pause() { return pool_->pause(); }
  void resume() { pool_->resume(); }

  /// Samples that were left out.
  SkippedSamples const& skipped() const { return skipped_; }

  /// The waiting in next(), and the workers' time.
  LoaderReport report() const {
    LoaderReport report{
        .stages = stages_, .workers = *settings_.workers, .cores = detail::cores_here()};
    meter_.fill(report);
    return report;
  }
  /// Seconds spent in next().
  double waited() const { return meter_.waited(); }
  /// What a run should change; empty where nothing. A fit puts it into its Report.
  std::string warning() const {
    std::string const waiting = report().warning();
    std::string const groups = detail::group_warning(set(), at_once_);
    return waiting.empty() || groups.empty() ? waiting + groups : waiting + "; " + groups;
  }

  void identify(DataIdentity& to) const { std::as_const(*pool_).tasks().identify(to); }

  Set const& set() const { return pool_->tasks().set(); }
  LoaderSettings const& settings() const { return settings_; }

 private:
  using Item = detail::Loaded<batch_type>;

  /// What the workers have made next; nothing at the end of the epoch.
  std::optional<Item> take() {
    auto taken = pool_->take();
    using Kind = typename decltype(taken)::Kind;
    if (taken.kind == Kind::end) return std::nullopt;
    if (taken.kind != Kind::item) fail(taken);
    stages_ += taken.made->stages;
    return std::move(taken.made);
  }
  void require_good(Item const& loaded) {
    if (loaded.failure) fail(loaded);
    if (!loaded.skipped.empty()) count_skipped(loaded);
    // Other processes count this batch, and do not know that it has nothing.
    if (!loaded.batch && (shared_ || own_.window != own_.count)) {
      stay([&] { faults_.empty_part(batch()); });
    }
  }

  static LoaderSettings checked(LoaderSettings settings) {
    detail::require_loadable(settings);
    if (!settings.workers) {
      settings.workers = detail::default_workers(gpus(), detail::cores_here());
    }
    return settings;
  }
  static int gpus() {
    if (!c10::impl::hasDeviceGuardImpl(c10::DeviceType::CUDA)) return 0;
    return c10::impl::getDeviceGuardImpl(c10::DeviceType::CUDA)->deviceCount();
  }

  /// Its number where the set cannot say the name of a sample that is damaged.
  std::string name_of(std::uint64_t index) const {
    std::string name = "sample " + std::to_string(index);
    static_cast<void>(detail::thrown_by([&] { name = sample_name(set(), index); }));
    return name;
  }

  void count_skipped(detail::Loaded<batch_type> const& loaded) {
    skipped_.add(loaded.skipped, name_of(loaded.skipped.front()), loaded.why_skipped);
    if (skipped_.within(settings_.skip_limit, samples_)) return;
    stay([&] { faults_.too_many(skipped_, samples_); });
  }

  /// What was thrown stays until the next seek.
  template <class Throw>
  [[noreturn]] void stay(Throw&& raise) {
    try {
      raise();
    } catch (...) {
      failure_ = std::current_exception();
    }
    std::rethrow_exception(failure_);
  }

  [[noreturn]] void fail(detail::Loaded<batch_type> const& loaded) {
    stay([&] {
      if (loaded.failed) {
        faults_.unreadable(loaded.failure, sample(*loaded.failed), batch());
      } else {
        faults_.uncollated(loaded.failure, loaded.indices, batch());
      }
    });
  }
  template <class T>
  [[noreturn]] void fail(T const& taken) {
    using Kind = typename T::Kind;
    std::string where = taken.at == detail::WorkerProgress::none ? "" : sample(taken.at);
    if (taken.whole) where = "the samples read with " + where;
    if (taken.kind == Kind::unstarted) faults_.unstarted(taken.failure, batch());  // tried again
    if (taken.kind == Kind::hangs) faults_.hangs(where, batch());  // it may come back
    if (taken.kind == Kind::died) stay([&] { faults_.died(where, batch()); });
    stay([&] { faults_.undealt(taken.failure, batch()); });
  }

  std::string sample(std::uint64_t index) const {
    std::string const name = name_of(index);
    std::string const number = "sample " + std::to_string(index);
    return name == number ? name : name + ", " + number;
  }
  std::string batch() const {
    return "the batch at position " + std::to_string(consumed_) + " of epoch " +
           std::to_string(start_.epoch);
  }

  LoaderSettings settings_;
  detail::LoaderFaults faults_;
  std::uint64_t samples_;
  std::uint64_t batches_;
  std::int64_t batch_size_;
  bool shared_;
  std::uint64_t at_once_;  ///< groups of rows that the order reads from
  Cursor start_{};
  std::uint64_t consumed_ = 0;
  std::exception_ptr failure_;
  SkippedSamples skipped_;
  StageSeconds stages_;
  detail::WaitMeter meter_;
  Division own_{};  ///< the batches that this process reads, from the next seek on
  detail::PassedQueue<Item> dealt_;
  std::unique_ptr<detail::Pool<Tasks>> pool_;
};

namespace detail {

/// False, and known only once T is.
template <class T>
inline constexpr bool loads = false;

/// Says what a set or a collate function lacks.
template <class Set, class Collate>
constexpr bool require_loadable_set() {
  if constexpr (!requires(Set const& set) {
                  { set.size() } -> std::convertible_to<std::uint64_t>;
                }) {
    static_assert(loads<Set>,
                  "frugal: loader needs a set of samples, and this type has no `std::uint64_t "
                  "size() const`. A torch::data data set goes to from_dataset; a Source is read "
                  "ahead by Prefetch.");
  } else if constexpr (!SampleSet<Set>) {
    static_assert(loads<Set>,
                  "frugal: loader needs a set that is read by index, and this type has no `get(i) "
                  "const` that takes a std::uint64_t or a SampleKey. It is const because several "
                  "workers call it.");
  } else {
    static_assert(CollatesSamplesOf<Collate, Set>,
                  "frugal: the collate function of this loader cannot be called with the samples "
                  "of its set. It is const and takes those of a batch: `[](std::vector<Sample> "
                  "samples) { return batch; }`.");
    return CollatesSamplesOf<Collate, Set>;
  }
  return false;
}

/// Takes the place of what is refused, so that the sentence is the only error.
struct RefusedLoader {
  void seek(Cursor const&) {}
  std::optional<Batch> next() { return std::nullopt; }
};

}  // namespace detail

/// A Source over a set of samples: read, transformed and collated by workers, in shuffled or own
/// order.
template <class Set, class Collate = Stack>
auto loader(Set set, LoaderOptions loading = {}, Collate collate = {},
            LoaderSettings settings = {}) {
  if constexpr (detail::require_loadable_set<Set, Collate>()) {
    std::string const name = settings.name.empty() ? detail::type_name(typeid(Set)) : settings.name;
    Pass pass(static_cast<std::uint64_t>(set.size()), loading, name);
    return Loader<Set, Collate, Pass>(std::move(set), std::move(pass), std::move(collate),
                                      std::move(settings));
  } else {
    return detail::RefusedLoader{};
  }
}

/// A loader in any order: a BucketPass, a Shared one for several processes, a user-defined one.
template <class Set, Order O, class Collate = Stack>
auto loader(Set set, O order, Collate collate = {}, LoaderSettings settings = {}) {
  if constexpr (detail::require_loadable_set<Set, Collate>()) {
    return Loader<Set, Collate, O>(std::move(set), std::move(order), std::move(collate),
                                   std::move(settings));
  } else {
    return detail::RefusedLoader{};
  }
}

}  // namespace frugal

#ifndef FRUGAL_COMPILED
#include <frugal/data/loading/loader.ipp>
#endif
