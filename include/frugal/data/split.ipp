// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/data/split.hpp>

#include <frugal/base/hash.hpp>
#include <frugal/base/name_hash.hpp>
#include <frugal/data/sampling/permutation.hpp>
#include <frugal/data/tensor_dataset.hpp>
#include <frugal/inline.hpp>

#include <cmath>
#include <numeric>

namespace frugal::detail {

FRUGAL_INLINE void refuse_split(std::string what, std::string why, std::string fix) {
  throw SettingsError(
      {.what = std::move(what), .where = "split", .why = std::move(why), .fix = std::move(fix)});
}

FRUGAL_INLINE std::vector<std::uint64_t> split_counts(std::span<double const> fractions,
                                                      std::uint64_t samples) {
  double sum = 0;
  std::uint64_t before = 0;
  std::vector<std::uint64_t> counts;
  for (double const fraction : fractions) {
    if (!(fraction > 0 && fraction <= 1)) {
      refuse_split("a fraction is not above 0 and at most 1",
                   "it is number " + std::to_string(counts.size() + 1) + " of " +
                       std::to_string(fractions.size()),
                   "Give each part a share of the samples, such as {0.9, 0.1}.");
    }
    sum += fraction;
    double const bound = std::min(sum, 1.0) * static_cast<double>(samples);
    auto const end = std::min(static_cast<std::uint64_t>(std::llround(bound)), samples);
    counts.push_back(end - before);
    before = end;
  }
  // As written with six decimals: {0.333333, 0.333333, 0.333334}.
  if (std::abs(sum - 1) > 1e-6) {
    refuse_split("the fractions of a split do not sum to 1",
                 sum < 1 ? "their sum is lower: samples would be in no part"
                         : "their sum is higher: samples would be in two parts",
                 "Give fractions that sum to 1, or numbers of samples.");
  }
  counts.back() += samples - before;
  return counts;
}

FRUGAL_INLINE std::vector<SplitIndices> split_indices(std::vector<std::uint64_t> const& counts,
                                                      std::uint64_t samples,
                                                      SplitOptions const& options) {
  std::string sizes;
  for (std::uint64_t const count : counts) {
    sizes += (sizes.empty() ? "" : " + ") + std::to_string(count);
  }
  if (std::find(counts.begin(), counts.end(), 0) != counts.end()) {
    refuse_split("a part of a split has no samples",
                 std::to_string(samples) + " samples are divided into " + sizes,
                 "Give it a larger share, or leave it out.");
  }
  auto const& labels = options.labels;
  if (!labels.empty() && labels.size() != samples) {
    refuse_split(
        "there is not one label per sample",
        std::to_string(labels.size()) + " labels and " + std::to_string(samples) + " samples",
        "Give SplitOptions::labels one label per sample, or none.");
  }
  std::vector<std::uint64_t> order(static_cast<std::size_t>(samples));
  // An epoch that no run reaches: no epoch of a training run has this order.
  Permutation(options.seed, name_hash("split"), samples).fill(0, std::span(order));
  if (!labels.empty()) {
    std::stable_sort(order.begin(), order.end(), [&](std::uint64_t a, std::uint64_t b) {
      return labels[static_cast<std::size_t>(a)] < labels[static_cast<std::size_t>(b)];
    });
  }
  std::vector<SplitIndices> parts(counts.size());
  for (std::size_t p = counts.size(); p-- > 0;) {
    auto& part = parts[p].of;
    part.reserve(static_cast<std::size_t>(counts[p]));
    if (labels.empty()) {
      auto const first = order.end() - static_cast<std::ptrdiff_t>(counts[p]);
      part.assign(first, order.end());
      order.erase(first, order.end());
    } else {
      // Every (size / count)-th of the samples that are left, which are sorted by class: of what is
      // left of each class the share, rounded up or down. With two parts that is the share of the
      // class; with more, what the parts chosen before have rounded adds to it.
      std::uint64_t const size = order.size();
      std::uint64_t due = 0;
      std::size_t kept = 0;
      for (std::uint64_t const index : order) {
        due += counts[p];
        if (due >= size) {
          due -= size;
          part.push_back(index);
        } else {
          order[kept++] = index;
        }
      }
      order.resize(kept);
    }
    std::sort(part.begin(), part.end());
    parts[p].text = "part " + std::to_string(p + 1) + " of " + sizes + " samples, seed " +
                    std::to_string(options.seed) + ", hash " +
                    hex_of(Hash::of(std::as_bytes(std::span(part))));
  }
  return parts;
}

FRUGAL_INLINE at::Tensor rows_at(at::Tensor const& tensor,
                                 std::vector<std::uint64_t> const& indices) {
  at::NoGradGuard const no_grad;
  Rows rows(tensor.detach());
  std::vector<std::int64_t> const at(indices.begin(), indices.end());
  if (rows.by_blocks()) return rows.gather(std::span(at));
  return rows.gather(at::tensor(at).to(tensor.device()));
}

}  // namespace frugal::detail
