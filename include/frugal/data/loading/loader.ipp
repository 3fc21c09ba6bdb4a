// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/data/loading/loader.hpp>

#include <frugal/data/loading/operator_threads.hpp>
#include <frugal/data/loading/thrown_by.hpp>
#include <frugal/inline.hpp>

#include <locale>
#include <sstream>

namespace frugal {

FRUGAL_INLINE void SkippedSamples::seek(bool same_epoch) {
  since_seek = 0;
  if (!same_epoch) in_epoch.clear();
}

FRUGAL_INLINE void SkippedSamples::add(std::span<std::size_t const> samples,
                                       std::string const& name, std::string const& why) {
  total += samples.size();
  since_seek += samples.size();
  in_epoch.insert(samples.begin(), samples.end());
  if (first.size() < 8) first.push_back(name + ": " + why);
}

FRUGAL_INLINE bool SkippedSamples::within(double limit, std::uint64_t samples) const {
  if (in_epoch.size() <= 1) return in_epoch.empty() || limit > 0;
  // Divided, not multiplied: 7 of 100 are then 0.07 exactly.
  return static_cast<double>(in_epoch.size()) / static_cast<double>(samples) <= limit;
}

}  // namespace frugal

namespace frugal::detail {

FRUGAL_INLINE void LoaderFaults::unreadable(std::exception_ptr const& failure,
                                            std::string const& sample,
                                            std::string const& batch) const {
  rethrow(failure, {.what = "a sample cannot be read",
                    .where = place(sample, batch),
                    .why = "",
                    .fix = "Repair the sample or remove it; LoaderSettings::on_error = "
                           "OnError::Skip leaves out damaged ones (DataError)."});
}

FRUGAL_INLINE void LoaderFaults::uncollated(std::exception_ptr const& failure,
                                            std::span<std::size_t const> indices,
                                            std::string const& batch) const {
  std::string samples = "samples";
  for (std::size_t i = 0; i < indices.size() && i < 8; ++i) {
    samples += (i == 0 ? " " : ", ") + std::to_string(indices[i]);
  }
  if (indices.size() > 8) samples += " and " + std::to_string(indices.size() - 8) + " more";
  rethrow(failure, {.what = "a batch cannot be collated",
                    .where = place(samples, batch),
                    .why = "",
                    .fix = "Give samples that the collate function takes, or another function."});
}

FRUGAL_INLINE void LoaderFaults::undealt(std::exception_ptr const& failure,
                                         std::string const& batch) const {
  rethrow(failure, {.what = "the order of a loader failed",
                    .where = place("", batch),
                    .why = "",
                    .fix = "Make the order for this set, or correct its advance() or "
                           "indices()."});
}

FRUGAL_INLINE void LoaderFaults::hangs(std::string const& sample, std::string const& batch) const {
  std::ostringstream seconds;
  seconds.imbue(std::locale::classic());
  seconds << patience_;
  throw WorkerError({.what = "a loader's worker hangs",
                     .where = place(sample, batch),
                     .why = "nothing came of it for " + seconds.str() + " s",
                     .fix = "Find what the sample waits for, or raise "
                            "LoaderSettings::patience."});
}

FRUGAL_INLINE void LoaderFaults::unstarted(std::exception_ptr const& failure,
                                           std::string const& batch) const {
  rethrow(failure, {.what = "a worker cannot be started",
                    .where = place("", batch),
                    .why = "",
                    .fix = "See what was thrown; the next call starts it again."});
}

FRUGAL_INLINE void LoaderFaults::died(std::string const& sample, std::string const& batch) const {
  throw WorkerError({.what = "a loader's worker ended",
                     .where = place(sample, batch),
                     .why = "its thread was ended from within, as pthread_exit does",
                     .fix = "Report the failure of a sample by an exception."});
}

FRUGAL_INLINE void LoaderFaults::empty_part(std::string const& batch) const {
  throw DataError({.what = "every sample of this rank's part of a batch is damaged",
                   .where = place("", batch),
                   .why = "the other ranks train on theirs, and would wait for this one",
                   .fix = "Repair the samples, or make the batch larger."});
}

FRUGAL_INLINE void LoaderFaults::too_many(SkippedSamples const& skipped,
                                          std::uint64_t samples) const {
  std::ostringstream limit;
  limit.imbue(std::locale::classic());
  limit << limit_;
  throw DataError({.what = "too many samples are damaged",
                   .where = set_,
                   .why = std::to_string(skipped.in_epoch.size()) + " of " +
                          std::to_string(samples) + " samples, and LoaderSettings::skip_limit is " +
                          limit.str() + "; the first: " + skipped.first.front(),
                   .fix = "Repair the set, or raise the limit."});
}

FRUGAL_INLINE void LoaderFaults::rethrow(std::exception_ptr const& failure, Fault fault) {
  try {
    std::rethrow_exception(failure);
  } catch (std::exception const& error) {
    fault.why = words_without_backtrace(error);
    std::throw_with_nested(WorkerError(std::move(fault)));
  } catch (...) {
    fault.why = "it threw a value of type " + current_exception_name();
    std::throw_with_nested(WorkerError(std::move(fault)));
  }
}

}  // namespace frugal::detail
