// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/Context.h>
#include <c10/core/Device.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <utility>

#include <frugal/base/hash.hpp>
#include <frugal/core/compose/diagnostic.hpp>
#include <frugal/core/measure/valid_sources.hpp>
#include <frugal/core/run/processes.hpp>
#include <frugal/core/source/batch.hpp>
#include <frugal/core/source/data_identity.hpp>
#include <frugal/core/source/source.hpp>

namespace frugal::detail {

/// A source whose windows are divided among processes: gives this one's batches of a window, and
/// passes over those of the others. Positions are those of the whole, so all processes have the same
/// cursor after a window.
template <class S>
class DividedSource {
 public:
  using Batch = batch_of<S>;

  /// `window`: batches of a window, of all processes.
  DividedSource(S& source, MicroBatches own, std::uint64_t window)
      : source_(source),
        own_{.first = own.first, .count = own.count, .window = window, .stride = own.stride} {}
  DividedSource(DividedSource const&) = delete;
  DividedSource& operator=(DividedSource const&) = delete;
  ~DividedSource() {
    if constexpr (DividableSource<S>) source_.divide({});
  }

  void seek(Cursor const& cursor) {
    if constexpr (DividableSource<S>) source_.divide(own_);
    source_.seek(cursor);
    cursor_ = cursor;
    position_ = cursor.position;
    begin_window();
  }

  void begin_window() { passed_ = 0; }
  /// Batches of the window so far, of all processes.
  std::uint64_t window_batches() const { return passed_; }

  /// The next batch of this process in the window. After its last one, passes over those that other
  /// processes have in the window.
  std::optional<Batch> next() {
    while (passed_ < own_.window) {
      if (own_.has(passed_)) {
        seed_reading();
        auto batch = source_.next();
        if (!batch) return std::nullopt;
        ++passed_;
        advance(static_cast<std::uint64_t>(batch_samples(*batch)));
        return std::move(*batch);
      }
      if (!pass()) return std::nullopt;
    }
    return std::nullopt;
  }

  /// Passes over the next batch, whoever has it; false at the end of the epoch.
  bool pass() {
    seed_reading();  // as where it is read: also if there is none, and a validation follows
    std::uint64_t const samples =
        skip_batch(source_, [](auto const& batch) { return batch_samples(batch); });
    if (samples == 0) return false;
    ++passed_;
    advance(samples);
    return true;
  }

  std::uint64_t consumed() const { return position_; }
  std::uint64_t samples() const
    requires SizedSource<S>
  {
    return static_cast<std::uint64_t>(std::as_const(source_).samples());
  }
  std::uint64_t batches() const
    requires SizedSource<S>
  {
    return static_cast<std::uint64_t>(std::as_const(source_).batches());
  }
  std::int64_t batch_size() const
    requires requires(S const& source) { source.batch_size(); }
  {
    return std::as_const(source_).batch_size();
  }
  std::string warning() const
    requires AdvisingSource<S>
  {
    return std::as_const(source_).warning();
  }
  double waited() const
    requires WaitedSource<S>
  {
    return std::as_const(source_).waited();
  }
  bool pause()
    requires PausableSource<S>
  {
    return source_.pause();
  }
  void resume()
    requires PausableSource<S>
  {
    source_.resume();
  }
  void follow(c10::Device const& device)
    requires requires(S& source) { source.follow(device); }
  {
    source_.follow(device);
  }
  void identify(DataIdentity& to) const { to = data_identity_of(source_); }
  S& whole() { return source_; }

 private:
  /// A transform that draws from LibTorch's generator, in this thread, draws the same for a batch in
  /// whatever process reads it.
  void seed_reading() const {
    constexpr std::uint64_t reading = 1;
    std::array<std::uint64_t, 4> const all{cursor_.seed, cursor_.epoch, position_, reading};
    at::manual_seed(Hash::of(std::as_bytes(std::span(all))));
  }
  void advance(std::uint64_t samples) {
    position_ = position_after(std::as_const(source_), position_, samples);
  }

  S& source_;
  Division own_;
  std::uint64_t passed_ = 0;
  std::uint64_t position_ = 0;
  Cursor cursor_{};  // of the last seek
};

FRUGAL_DIAGNOSTIC(
    divided_twice,
    "frugal: Replicate and Pipeline divide the batches of the sources among the processes, and a "
    "source with the order Shared reads one process's part of an epoch: each sample of the other "
    "parts would be left out. Make the sources as for one process, with the same order in all "
    "processes.");

/// Refuses sources that read a part of an epoch. `Sources` may be
/// void, and ValidSources.
template <class S>
struct reads_a_part_of : std::bool_constant<reads_a_part<S>> {};
template <class... Sources>
struct reads_a_part_of<ValidSources<Sources...>>
    : std::disjunction<reads_a_part_of<typename Sources::source_type>...> {};
template <class... Sources>
constexpr bool require_whole_sources() {
  return (true & ... &
          divided_twice::template require<!reads_a_part_of<Sources>::value, Sources>());
}

}  // namespace frugal::detail
