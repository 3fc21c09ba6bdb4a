// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/data/loading/loader_settings.hpp>
#include <frugal/error.hpp>

#include <cstddef>
#include <cstdint>
#include <exception>
#include <set>
#include <span>
#include <string>
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
}  // namespace frugal

#ifndef FRUGAL_COMPILED
#include <frugal/data/loading/loader_faults.ipp>
#endif
