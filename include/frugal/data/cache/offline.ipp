// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/data/cache/offline.hpp>

#include <frugal/base/number_text.hpp>
#include <frugal/data/sampling/permutation.hpp>
#include <frugal/error.hpp>
#include <frugal/inline.hpp>

#include <algorithm>
#include <atomic>
#include <concepts>

namespace frugal::detail {

FRUGAL_INLINE OfflineSettings with_variants(OfflineSettings settings) {
  constexpr std::uint64_t most = 1U << 20U;
  if (settings.variants >= 1 && settings.variants <= most) return settings;
  throw SettingsError({.what = "variants is " + std::to_string(settings.variants),
                       .where = "OfflineSettings",
                       .why = "each variant of each sample is an entry of the cache",
                       .fix = "Set it to a number from 1 to " + std::to_string(most) + "."});
}

FRUGAL_INLINE std::uint64_t variant_of(SampleKey const& key, std::uint64_t variants) {
  std::uint64_t const round = key.epoch / variants;
  Permutation const order(mix64(key.seed ^ mix64(key.index + 0x9e3779b97f4a7c15U)), round,
                          variants);
  return order(key.epoch % variants);
}

FRUGAL_INLINE std::string QuickAdvice::add(std::chrono::nanoseconds spent, std::uint64_t variants) {
  std::lock_guard const lock(mutex_);
  if (calls_ == calls_wanted) return {};
  spent_ += spent;
  if (++calls_ < calls_wanted) return {};
  double const mean =
      std::chrono::duration<double, std::milli>(spent_).count() / static_cast<double>(calls_wanted);
  if (mean >= static_cast<double>(worth.count())) return {};
  return "the augmentation takes " + fixed(mean, 2) +
         " ms a sample, and Offline pays from 20 ms on. Apply it in the loader: that gives a new "
         "variant every epoch, and not one of " +
         std::to_string(variants) + ".";
}

}  // namespace frugal::detail
