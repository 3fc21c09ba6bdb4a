// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/data/curate/curation.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

namespace frugal {

/// Groups of samples that are joined pair by pair: union-find with path halving (Tarjan and van
/// Leeuwen, J. ACM 31(2), 1984). The least index stands for its group, whatever the order of joins.
///
/// Cost  memory for the samples that were joined, about 50 bytes each; none for those that are
/// alone.
class Groups {
 public:
  /// The least index of the group; the sample itself if it is alone.
  std::uint64_t find(std::uint64_t sample) {
    auto at = above_.find(sample);
    if (at == above_.end()) return sample;
    while (at->first != at->second) {
      auto const above = above_.find(at->second);
      at->second = above->second;
      at = above_.find(at->second);
    }
    return at->first;
  }

  /// Whether these were two groups, which are one now.
  bool join(std::uint64_t a, std::uint64_t b) {
    a = find(a);
    b = find(b);
    if (a == b) return false;
    auto const [low, high] = std::minmax(a, b);
    above_[low] = low;
    above_[high] = low;
    return true;
  }

 private:
  std::unordered_map<std::uint64_t, std::uint64_t> above_;
};

/// Which sample of a group of duplicates stays.
enum class KeepSample : std::uint8_t {
  first,    ///< the one of the lowest index
  longest,  ///< the one with the most bytes, the first of these if there are several
};

}  // namespace frugal

namespace frugal::detail {

/// Two samples that are alike: a branch of the tree of their group.
struct Alike {
  std::uint64_t a = 0;
  std::uint64_t b = 0;
  double similarity = 0;
  bool copy = false;
};

/// The groups as trees: samples, and for each its neighbours.
class Twins {
 public:
  explicit Twins(std::vector<Alike> alike) : alike_(std::move(alike)) {
    for (Alike const& each : alike_) {
      samples_.push_back(each.a);
      samples_.push_back(each.b);
    }
    std::sort(samples_.begin(), samples_.end());
    samples_.erase(std::unique(samples_.begin(), samples_.end()), samples_.end());
    begins_.resize(samples_.size() + 1);
    for (Alike const& each : alike_) {
      ++begins_[place(each.a) + 1];
      ++begins_[place(each.b) + 1];
    }
    for (std::size_t i = 1; i < begins_.size(); ++i) begins_[i] += begins_[i - 1];
    branches_.resize(2 * alike_.size());
    std::vector<std::size_t> next(begins_.begin(), begins_.end() - 1);
    for (std::size_t i = 0; i < alike_.size(); ++i) {
      branches_[next[place(alike_[i].a)]++] = i;
      branches_[next[place(alike_[i].b)]++] = i;
    }
  }

  /// All samples that have a twin, ascending.
  std::span<std::uint64_t const> samples() const { return samples_; }

  /// What goes, ascending; `bytes` are those of samples(). Where a sample is not a neighbour of the
  /// one that stays, `similarity` is NaN and left to the caller.
  std::vector<Removed> removed(std::span<std::uint64_t const> bytes, KeepSample keep) const {
    std::vector<Removed> out;
    std::vector<bool> seen(samples_.size());
    std::vector<std::size_t> group;
    for (std::size_t i = 0; i < samples_.size(); ++i) {
      if (seen[i]) continue;
      collect(i, seen, group);
      std::size_t best = group.front();
      for (std::size_t const each : group) {
        bool const longer = keep == KeepSample::longest && bytes[each] > bytes[best];
        bool const earlier =
            each < best && (keep == KeepSample::first || bytes[each] == bytes[best]);
        if (longer || earlier) best = each;
      }
      remove_all_but(best, bytes, out);
    }
    std::sort(out.begin(), out.end(),
              [](Removed const& a, Removed const& b) { return a.index < b.index; });
    return out;
  }

 private:
  std::size_t place(std::uint64_t sample) const {
    return static_cast<std::size_t>(std::lower_bound(samples_.begin(), samples_.end(), sample) -
                                    samples_.begin());
  }

  template <class Visit>
  void each_neighbour(std::size_t of, Visit&& visit) const {
    for (std::size_t i = begins_[of]; i < begins_[of + 1]; ++i) {
      Alike const& branch = alike_[branches_[i]];
      visit(place(branch.a == samples_[of] ? branch.b : branch.a), branch);
    }
  }

  void collect(std::size_t from, std::vector<bool>& seen, std::vector<std::size_t>& group) const {
    group.assign(1, from);
    seen[from] = true;
    for (std::size_t i = 0; i < group.size(); ++i) {
      each_neighbour(group[i], [&](std::size_t other, Alike const&) {
        if (!seen[other]) group.push_back(other);
        seen[other] = true;
      });
    }
  }

  /// From the sample that stays outwards, so that the first step from a sample leads to `through`.
  void remove_all_but(std::size_t kept, std::span<std::uint64_t const> bytes,
                      std::vector<Removed>& out) const {
    struct Step {
      std::size_t at, from;
      bool copy;  // of the kept one
    };
    std::vector<Step> way{{kept, kept, true}};
    for (std::size_t i = 0; i < way.size(); ++i) {
      Step const step = way[i];
      each_neighbour(step.at, [&](std::size_t other, Alike const& branch) {
        if (other == step.from) return;
        bool const copy = step.copy && branch.copy;
        bool const direct = step.at == kept;
        double const unknown = std::numeric_limits<double>::quiet_NaN();
        out.push_back({.index = samples_[other],
                       .twin = samples_[kept],
                       .similarity = copy     ? 1
                                     : direct ? branch.similarity
                                              : unknown,
                       .copy = copy,
                       .through = copy ? samples_[kept] : samples_[step.at],
                       .through_similarity = branch.similarity,
                       .bytes = bytes[other]});
        way.push_back({other, step.at, copy});
      });
    }
  }

  std::vector<Alike> alike_;
  std::vector<std::uint64_t> samples_;
  std::vector<std::size_t> begins_;    // of each sample's branches
  std::vector<std::size_t> branches_;  // places in alike_
};

}  // namespace frugal::detail
