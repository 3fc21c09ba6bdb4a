// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <c10/util/SmallVector.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <frugal/error.hpp>

namespace frugal {

/// The named results of one validation, in the order in which they were measured.
class Metrics {
 public:
  using value_type = std::pair<std::string, double>;

  void set(std::string_view name, double value) {
    for (auto& entry : values_) {
      if (entry.first == name) {
        entry.second = value;
        return;
      }
    }
    values_.emplace_back(name, value);
  }

  bool has(std::string_view name) const {
    for (auto const& entry : values_) {
      if (entry.first == name) return true;
    }
    return false;
  }

  /// Throws MetricError, naming the metrics that there are, when this is not one of them.
  double operator[](std::string_view name) const {
    std::string known;
    for (auto const& entry : values_) {
      if (entry.first == name) return entry.second;
      known += (known.empty() ? "" : ", ") + entry.first;
    }
    throw MetricError({.what = "no metric '" + std::string(name) + "' was measured",
                       .where = "validation",
                       .why = known.empty() ? "nothing was" : "there are: " + known,
                       .fix = "Add the metric to Validate<...>, or watch one of those."});
  }

  auto begin() const { return values_.begin(); }
  auto end() const { return values_.end(); }
  bool empty() const { return values_.empty(); }
  std::size_t size() const { return values_.size(); }

  template <class Archive>
  void persist(Archive& archive) {
    std::vector<std::string> names;
    std::vector<double> numbers;
    for (auto const& [name, number] : values_) {
      names.push_back(name);
      numbers.push_back(number);
    }
    archive("names", names);
    archive("values", numbers);
    values_.clear();
    for (std::size_t i = 0; i < names.size() && i < numbers.size(); ++i) {
      values_.emplace_back(names[i], numbers[i]);
    }
  }

  friend bool operator==(Metrics const&, Metrics const&) = default;

 private:
  // The usual few cost no allocation.
  c10::SmallVector<value_type, 4> values_;
};

/// One validation: when it was and what it found.
struct Validation {
  std::uint64_t epoch = 0;  ///< complete epochs
  std::uint64_t step = 0;   ///< optimizer steps
  Metrics metrics;

  template <class Archive>
  void persist(Archive& archive) {
    archive("epoch", epoch);
    archive("step", step);
    metrics.persist(archive);
  }
};

}  // namespace frugal
