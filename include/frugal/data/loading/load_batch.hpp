// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/core/source/batch.hpp>
#include <frugal/core/source/data_identity.hpp>
#include <frugal/core/source/sample_set.hpp>
#include <frugal/core/source/source.hpp>
#include <frugal/data/batch_memory.hpp>
#include <frugal/data/collate.hpp>
#include <frugal/data/loading/loader_settings.hpp>
#include <frugal/data/loading/operator_threads.hpp>
#include <frugal/data/loading/passed_over.hpp>
#include <frugal/data/loading/pool.hpp>
#include <frugal/data/loading/thrown_by.hpp>
#include <frugal/data/loading/waiting.hpp>
#include <frugal/data/sampling/order.hpp>
#include <frugal/data/transform_clock.hpp>
#include <frugal/error.hpp>

#include <ATen/core/grad_mode.h>

#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace frugal::detail {

/// A batch that a worker made, or why it could not.
template <class Batch>
struct Loaded {
  std::optional<Batch> batch{};  ///< nothing: every sample was skipped, or it failed
  std::uint64_t consumed = 0;    ///< position in the epoch after it
  std::vector<std::size_t> skipped{};
  std::string why_skipped{};  ///< of the first
  std::exception_ptr failure{};
  std::optional<std::size_t> failed{};  ///< the sample; nothing: collate failed
  std::vector<std::size_t> indices{};   ///< of the samples, where collate failed
  StageSeconds stages{};
  std::uint64_t samples = 0;         ///< of the batch, skipped ones included; 0: there is none
  std::vector<PassedOver> before{};  ///< batches of other processes
  std::vector<PassedOver> after{};
  bool is_batch() const { return samples != 0; }
};

/// The numbers of samples, for a collate function.
std::vector<std::size_t> numbers_of(std::span<SampleKey const> keys);

template <class Collate, class Sample>
concept CollatesWithNumbers =
    requires(Collate const& collate, std::vector<Sample> samples,
             std::span<std::size_t const> numbers) { collate(std::move(samples), numbers); };
template <class Collate, class Set>
concept CollatesSamplesOf =
    CollatesWithNumbers<Collate, sample_of<Set>> || KeyedCollate<Collate, sample_of<Set>> ||
    requires(Collate const& collate, std::vector<sample_of<Set>> samples) {
      collate(std::move(samples));
    };

/// Calls a collate function, with the numbers or the keys of the samples where it takes them.
template <class Collate, class Sample>
auto collate_samples(Collate const& collate, std::vector<Sample> samples,
                     std::span<SampleKey const> keys) {
  if constexpr (CollatesWithNumbers<Collate, Sample>) {
    std::vector<std::size_t> const numbers = numbers_of(keys);
    return collate(std::move(samples), std::span<std::size_t const>(numbers));
  } else if constexpr (KeyedCollate<Collate, Sample>) {
    return collate(std::move(samples), keys);
  } else {
    return collate(std::move(samples));
  }
}

/// The tasks of a loader's workers (Pool): `deal` says which samples are next, `make` reads and
/// collates them.
template <SampleSet Set, class Collate, frugal::Order O>  // detail has an Order of policies
class BatchTasks {
  using Sample = sample_of<Set>;
  using Clock = std::chrono::steady_clock;

 public:
  using Batch =
      decltype(collate_samples(std::declval<Collate const&>(), std::declval<std::vector<Sample>>(),
                               std::span<SampleKey const>()));
  struct Job {
    std::vector<std::uint64_t> indices{};
    std::uint64_t seed = 0, epoch = 0, consumed = 0;
    std::vector<PassedOver> before{}, after{};
  };

  BatchTasks(Set set, Collate collate, O order, LoaderSettings const& settings)
      : set_(std::move(set)),
        collate_(std::move(collate)),
        order_(std::move(order)),
        threads_(settings.threads),
        skips_(settings.on_error == OnError::Skip),
        locks_(settings.pin_memory && has_page_locked_memory()) {}

  /// `own`: the batches that are read.
  void seek(Cursor const& cursor, Division const& own = {}) {
    order_.seek(cursor);
    cursor_ = cursor;
    counter_.begin(own);
  }

  std::optional<Job> deal() {
    auto const pass = [this] {
      auto const slice = order_.advance();
      return PassedOver{slice.count, after(slice)};
    };
    Job job{.seed = cursor_.seed, .epoch = cursor_.epoch};
    job.before = counter_.others(pass);
    auto const slice = order_.advance();
    if (slice.count == 0) {
      if (job.before.empty()) return std::nullopt;
      return job;
    }
    counter_.count();
    job.indices.resize(slice.count);
    job.consumed = after(slice);
    order_.indices(slice, std::span(job.indices));
    require_inside(job.indices);
    job.after = counter_.others(pass);
    return job;
  }

  void enter_thread() const { limit_operator_threads(threads_); }

  Loaded<Batch> make(Job&& job, WorkerProgress& progress) const {
    at::NoGradGuard const no_grad;  // a transform's arithmetic is not part of the model
    TransformClock clock;
    MeasuredTransforms const measured(clock);
    Loaded<Batch> loaded{.consumed = job.consumed,
                         .samples = job.indices.size(),
                         .before = std::move(job.before),
                         .after = std::move(job.after)};
    if (!loaded.is_batch()) return loaded;
    if constexpr (gives_batches) {
      progress.begin(job.indices.front(), true);
      if (read_batch(job, loaded)) {
        loaded.stages.transform = clock.seconds;
        loaded.stages.read -= clock.seconds;
        return loaded;
      }
      clock = {};
    }
    std::vector<Sample> samples;
    samples.reserve(job.indices.size());
    std::vector<SampleKey> kept;
    kept.reserve(job.indices.size());
    auto const begin = Clock::now();
    for (std::uint64_t const index : job.indices) {
      progress.begin(index, false);
      SampleKey const key{index, job.seed, job.epoch};
      std::exception_ptr failure = thrown_by([&] { samples.push_back(read_sample(set_, key)); });
      if (!failure) {
        kept.push_back(key);
      } else if (skips_ && is_damage(failure, loaded)) {
        loaded.skipped.push_back(index);
      } else {
        loaded.failure = std::move(failure);
        loaded.failed = index;
        return loaded;
      }
    }
    auto const read = Clock::now();
    loaded.stages.transform = clock.seconds;
    loaded.stages.read = since(begin, read) - clock.seconds;
    if (samples.empty()) return loaded;
    progress.begin(kept.front().index, true);
    loaded.failure = thrown_by([&] {
      PageLockedBatches const locked(locks_);
      loaded.batch.emplace(collate_samples(collate_, std::move(samples), kept));
    });
    auto const collated = Clock::now();
    loaded.stages.collate = since(read, collated);
    if (loaded.failure) {
      loaded.indices = numbers_of(kept);
      return loaded;
    }
    if (!locks_) return loaded;
    lock_pages(*loaded.batch);
    loaded.stages.copy = since(collated, Clock::now());
    return loaded;
  }

  Set const& set() const { return set_; }
  /// Reads what no seek changes, so that workers may read meanwhile.
  void identify(DataIdentity& to) const {
    detail::identify(set_, to);
    identify_order(order_, to);
    identify_transform(collate_, "collate", to);
  }

 private:
  /// The position in the epoch after a slice.
  template <class Slice>
  std::uint64_t after(Slice const& slice) const {
    if constexpr (requires { order_.consumed(); }) {
      return order_.consumed();
    } else {
      return slice.first + slice.count;
    }
  }

  /// Whether the set makes whole batches, as Stack does.
  static constexpr bool gives_batches = [] {
    if constexpr (std::same_as<Collate, Stack> && BatchedSet<Set>) {
      return std::same_as<Batch, std::remove_cvref_t<decltype(std::declval<Set const&>().get_batch(
                                     std::span<std::uint64_t const>()))>>;
    } else {
      return false;
    }
  }();

  /// False if that failed: then the samples are read one by one, to learn which of them it is.
  bool read_batch(Job const& job, Loaded<Batch>& loaded) const {
    auto const begin = Clock::now();
    bool const failed =
        thrown_by([&] {
          loaded.batch.emplace(set_.get_batch(std::span<std::uint64_t const>(job.indices)));
        }) != nullptr;
    auto const read = Clock::now();
    loaded.stages.read = since(begin, read);
    if (failed) return false;
    if (locks_) {
      lock_pages(*loaded.batch);
      loaded.stages.copy = since(read, Clock::now());
    }
    return true;
  }

  /// An order of another set would have get() read what is not there.
  void require_inside(std::vector<std::uint64_t> const& indices) const {
    auto const size = static_cast<std::uint64_t>(set_.size());
    for (std::uint64_t const index : indices) {
      if (index < size) continue;
      throw SettingsError({.what = "the order does not belong to the set",
                           .where = "sample " + std::to_string(index),
                           .why = "the set has " + std::to_string(size) + " samples",
                           .fix = "Make the order for this set."});
    }
  }

  static double since(Clock::time_point begin, Clock::time_point end) {
    return std::chrono::duration<double>(end - begin).count();
  }

  /// Whether the sample is damaged, and not the program: that would skip them all.
  static bool is_damage(std::exception_ptr const& failure, Loaded<Batch>& loaded) {
    std::string why;
    try {
      std::rethrow_exception(failure);
    } catch (DataError const& error) {
      why = error.what();
    } catch (FormatError const& error) {
      why = error.what();
    } catch (...) {
      return false;
    }
    if (loaded.skipped.empty()) loaded.why_skipped = std::move(why);
    return true;
  }

  Set set_;
  [[no_unique_address]] Collate collate_;
  O order_;
  Cursor cursor_{};
  DivisionCounter counter_;
  int threads_;
  bool skips_;
  bool locks_;
};

}  // namespace frugal::detail

#ifndef FRUGAL_COMPILED
#include <frugal/data/loading/load_batch.ipp>
#endif
