// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace frugal {

/// The weighted means of an objective's scalars since they were last taken. Each policy that shows
/// them has one (FitBegin::follow).
class ScalarSpan {
 public:
  using Mean = std::pair<std::string, double>;

  void add(std::string const& name, double sum, double weight);

  /// `f(name, sum, weight)` for each, in the order in which their names appeared.
  template <class F>
  void each(F&& f) const {
    for (Sum const& each : sums_) f(each.name, each.sum, each.weight);
  }

  /// In the order in which their names appeared; empties the span. NaN if all weights were 0.
  std::vector<Mean> take();

  /// Sum and weight of each, by name: combines those of all processes.
  template <class Join>
  void reduce(Join&& join) {
    std::sort(sums_.begin(), sums_.end(),
              [](Sum const& a, Sum const& b) { return a.name < b.name; });
    for (Sum& each : sums_) {
      each.sum = join(each.sum);
      each.weight = join(each.weight);
    }
  }

  template <class Archive>
  void persist(Archive& archive) {
    std::vector<std::string> names;
    std::vector<double> sums, weights;
    for (Sum const& each : sums_) {
      names.push_back(each.name);
      sums.push_back(each.sum);
      weights.push_back(each.weight);
    }
    archive("names", names);
    archive("sums", sums);
    archive("weights", weights);
    if (!Archive::loading) return;
    sums_.clear();
    for (std::size_t i = 0; i < names.size() && i < sums.size() && i < weights.size(); ++i) {
      sums_.push_back({names[i], sums[i], weights[i]});
    }
  }

 private:
  struct Sum {
    std::string name;
    double sum = 0;
    double weight = 0;
  };
  std::vector<Sum> sums_;
};

}  // namespace frugal

#ifndef FRUGAL_COMPILED
#include <frugal/core/run/scalar_span.ipp>
#endif
