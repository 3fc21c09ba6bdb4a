// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ATen.h>
#include <c10/util/SmallVector.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <ostream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace frugal {

/// The named results of one validation, in the order in which they were measured: numbers, which
/// can be watched, logged and iterated over; and tables, such as a confusion matrix.
class [[nodiscard]] Metrics {
 public:
  using value_type = std::pair<std::string, double>;
  using table_type = std::pair<std::string, at::Tensor>;

  void set(std::string_view name, double value) { put(values_, name, value); }
  void set_table(std::string_view name, at::Tensor table) { put(tables_, name, std::move(table)); }

  /// All of another's results, with something before their names.
  void add(Metrics const& other, std::string_view before = {});

  bool has(std::string_view name) const { return found(values_, name) != nullptr; }
  bool has_table(std::string_view name) const { return found(tables_, name) != nullptr; }

  /// Throws MetricError, which lists the metrics that exist, if this is not one of them.
  double operator[](std::string_view name) const {
    double const* const value = found(values_, name);
    if (value != nullptr) return *value;
    refuse("metric", name, names_of(values_), "nothing was");
  }
  /// In host memory. Throws MetricError, which lists the tables that exist.
  at::Tensor const& table(std::string_view name) const;

  void drop_tables() { tables_.clear(); }

  auto begin() const { return values_.begin(); }
  auto end() const { return values_.end(); }
  bool empty() const { return values_.empty(); }
  std::size_t size() const { return values_.size(); }
  std::vector<table_type> const& tables() const { return tables_; }

  template <class Archive>
  void persist(Archive& archive) {
    std::vector<std::string> names = names_in(values_);
    std::vector<double> numbers;
    for (auto const& [name, number] : values_) numbers.push_back(number);
    archive("names", names);
    archive("values", numbers);
    values_.clear();
    for (std::size_t i = 0; i < names.size() && i < numbers.size(); ++i) {
      values_.emplace_back(names[i], numbers[i]);
    }
    persist_tables(archive);
  }

  /// The numbers, as "loss 0.25, accuracy 0.9"; the format of the stream is used.
  friend std::ostream& operator<<(std::ostream& out, Metrics const& metrics);
  friend bool operator==(Metrics const& a, Metrics const& b) {
    auto const same = [](table_type const& one, table_type const& other) {
      return one.first == other.first && one.second.equal(other.second);
    };
    return a.values_ == b.values_ &&
           std::equal(a.tables_.begin(), a.tables_.end(), b.tables_.begin(), b.tables_.end(), same);
  }

 private:
  template <class Entries, class Value>
  static void put(Entries& entries, std::string_view name, Value&& value) {
    for (auto& entry : entries) {
      if (entry.first == name) {
        entry.second = std::forward<Value>(value);
        return;
      }
    }
    entries.emplace_back(name, std::forward<Value>(value));
  }
  template <class Entries>
  static typename Entries::value_type::second_type const* found(Entries const& entries,
                                                                std::string_view name) {
    for (auto const& entry : entries) {
      if (entry.first == name) return &entry.second;
    }
    return nullptr;
  }
  template <class Entries>
  static std::vector<std::string> names_in(Entries const& entries) {
    std::vector<std::string> names;
    for (auto const& entry : entries) names.push_back(entry.first);
    return names;
  }
  template <class Entries>
  static std::string names_of(Entries const& entries) {
    std::string known;
    for (auto const& entry : entries) known += (known.empty() ? "" : ", ") + entry.first;
    return known;
  }
  [[noreturn]] static void refuse(char const* what, std::string_view name, std::string const& known,
                                  char const* none);

  /// Most have none, and say nothing of them.
  template <class Archive>
  void persist_tables(Archive& archive) {
    std::vector<std::string> names = names_in(tables_);
    if constexpr (Archive::loading) {
      tables_.clear();
      if (!archive.holds("tables")) return;
      archive("tables", names);
      for (std::string const& name : names) tables_.emplace_back(name, at::Tensor());
    } else {
      if (names.empty()) return;
      archive("tables", names);
    }
    for (std::size_t i = 0; i < tables_.size(); ++i) {
      archive("table." + std::to_string(i), tables_[i].second);
    }
  }

  // The usual few cost no allocation.
  c10::SmallVector<value_type, 4> values_;
  std::vector<table_type> tables_;
};

/// One validation: its moment and its results.
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

#ifndef FRUGAL_COMPILED
#include <frugal/core/run/metrics.ipp>
#endif
