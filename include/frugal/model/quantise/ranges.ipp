// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/model/quantise/ranges.hpp>

#include <frugal/error.hpp>
#include <frugal/inline.hpp>

#include <cstdint>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <utility>

namespace frugal {

FRUGAL_INLINE Range Percentile::range(Histogram const& seen) const {
  if (!(percent > 0 && percent <= 100)) {
    throw SettingsError({.what = "the percentile is " + std::to_string(percent),
                         .where = "quantise, Percentile",
                         .why = "it is the share of numbers that are not clipped",
                         .fix = "Set it above 0 and to 100 at most, such as 99.99."});
  }
  double const total = std::accumulate(seen.counts.begin(), seen.counts.end(), 0.0);
  double const cut = (100 - percent) / 200;
  double sum = 0;
  std::optional<std::size_t> low, high;
  for (std::size_t bin = 0; bin < seen.counts.size(); ++bin) {
    sum += seen.counts[bin] / total;
    if (!low && sum >= cut) low = bin;
    if (!high && sum >= 1 - cut) high = bin;
  }
  return {seen.edge(low.value_or(0)), seen.edge(high.value_or(seen.counts.size()))};
}

FRUGAL_INLINE Range Entropy::range(Histogram const& seen) const {
  std::size_t const zero = seen.counts.size() / 2;
  double least = std::numeric_limits<double>::infinity();
  Range best = seen.over;
  for (std::size_t half = levels / 2; half <= zero; ++half) {
    std::size_t const begin = zero - half;
    std::size_t const end = std::min(zero + half + 1, seen.counts.size());
    double const lost = divergence(seen.counts, begin, end);
    if (lost >= least) continue;
    least = lost;
    best = {seen.edge(begin), seen.edge(end)};
  }
  return best;
}

FRUGAL_INLINE double Entropy::divergence(std::vector<double> const& counts, std::size_t begin,
                                         std::size_t end) {
  auto const at = [&](std::size_t bin) {
    return counts.begin() + static_cast<std::ptrdiff_t>(bin);
  };
  std::vector<double> const inside(at(begin), at(end));
  std::vector<double> p = inside;
  p.front() += std::accumulate(counts.begin(), at(begin), 0.0);
  p.back() += std::accumulate(at(end), counts.end(), 0.0);
  std::vector<double> q(p.size(), 0);
  std::size_t const merged = inside.size() / levels;
  for (std::size_t level = 0; level < levels; ++level) {
    std::size_t const first = level * merged;
    std::size_t const last = first + merged;
    std::size_t const all = level + 1 == levels ? inside.size() : last;
    double sum = 0, used = 0;
    for (std::size_t bin = first; bin < all; ++bin) sum += inside[bin];
    for (std::size_t bin = first; bin < last; ++bin) used += p[bin] != 0 ? 1 : 0;
    if (used == 0) continue;
    for (std::size_t bin = first; bin < last; ++bin) q[bin] = std::floor(sum / used);
  }
  if (!smooth(p) || !smooth(q)) return std::numeric_limits<double>::infinity();
  double const sum_p = std::accumulate(p.begin(), p.end(), 0.0);
  double const sum_q = std::accumulate(q.begin(), q.end(), 0.0);
  double lost = 0;
  for (std::size_t bin = 0; bin < p.size(); ++bin) {
    lost += p[bin] / sum_p * std::log((p[bin] / sum_p) / (q[bin] / sum_q));
  }
  return lost;
}

FRUGAL_INLINE bool Entropy::smooth(std::vector<double>& counts) {
  auto const empty = static_cast<double>(std::count(counts.begin(), counts.end(), 0.0));
  double const used = static_cast<double>(counts.size()) - empty;
  if (used == 0) return false;
  constexpr double epsilon = 1e-4;
  for (double& count : counts) count += count == 0 ? epsilon : -epsilon * empty / used;
  return true;
}

}  // namespace frugal

namespace frugal::detail {

FRUGAL_INLINE void SeenInput::extend(at::Tensor const& input) {
  if (input.numel() == 0) return;
  any_ = true;
  auto const [low, high] = at::aminmax(input.detach());
  low_ = std::min(low_, low.item<double>());
  high_ = std::max(high_, high.item<double>());
  finite_ = finite_ && std::isfinite(low_) && std::isfinite(high_) &&
            std::isfinite(low.item<double>()) && std::isfinite(high.item<double>());
}

FRUGAL_INLINE void SeenInput::count(at::Tensor const& input, std::size_t bins, bool symmetric) {
  if (seen_.counts.empty()) {
    double const most = std::max(std::abs(low_), std::abs(high_));
    seen_ = {std::vector<double>(bins, 0), symmetric ? Range{-most, most} : Range{low_, high_}};
  }
  if (!(seen_.over.low < seen_.over.high)) return;
  at::Tensor const counts =
      at::histc(input.detach().to(at::kCPU, at::kDouble), static_cast<std::int64_t>(bins),
                seen_.over.low, seen_.over.high);
  double const* const found = counts.const_data_ptr<double>();
  for (std::size_t bin = 0; bin < bins; ++bin) seen_.counts[bin] += found[bin];
}

}  // namespace frugal::detail
