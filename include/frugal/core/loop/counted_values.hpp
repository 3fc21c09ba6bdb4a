// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <cstring>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <frugal/core/run/metrics.hpp>

// What metrics count, as numbers that travel between processes.
namespace frugal::detail {

/// A number or a tensor that a part of a measurement has counted.
struct Counted {
  enum class Kind : std::uint8_t {
    number,  ///< added up
    tensor,  ///< added up
    rows,    ///< put together along the first dimension
  };
  Kind kind = Kind::number;
  double number = 0;
  at::Tensor tensor{};  ///< in host memory
};

/// Gets what a metric gives to `reduce`, or to `gather`, and gives it the totals that are known.
/// Copies write to the same list.
class CountedValues {
 public:
  /// `probe`: what it returns where no total is known: 0 the value itself, 1 another number.
  CountedValues(std::vector<Counted> const& totals, std::vector<Counted>& values, int probe = 0)
      : totals_(&totals), values_(&values), probe_(probe) {}

  double operator()(double counted) const {
    values_->push_back({.number = counted});
    if (Counted const* const total = of_last()) return total->number;
    return probe_ == 0 ? counted : 2 * counted + 1;
  }
  at::Tensor operator()(at::Tensor const& counted) const {
    return take(Counted::Kind::tensor, counted);
  }
  at::Tensor rows(at::Tensor const& counted) const { return take(Counted::Kind::rows, counted); }

 private:
  at::Tensor take(Counted::Kind kind, at::Tensor const& counted) const;
  Counted const* of_last() const {
    std::size_t const last = values_->size() - 1;
    return last < totals_->size() ? &(*totals_)[last] : nullptr;
  }

  std::vector<Counted> const* totals_;
  std::vector<Counted>* values_;
  int probe_;
};

/// As a metric's `gather` gets it: `rows(x)` is x of all parts, along the first dimension.
struct CountedRows {
  CountedValues values;
  at::Tensor operator()(at::Tensor const& counted) const { return values.rows(counted); }
};

/// Writes numbers and tensors to a text that is sent.
class CountedWriter {
 public:
  template <class T>
    requires std::is_trivially_copyable_v<T>
  void put(T const& value) {
    char bytes[sizeof(T)];
    std::memcpy(bytes, &value, sizeof(T));
    text_.append(bytes, sizeof(T));
  }
  void put_text(std::string const& text);
  void put(std::vector<Counted> const& values);
  void put(Metrics const& metrics);
  std::string take() { return std::move(text_); }

 private:
  std::string text_;
};

/// Reads what CountedWriter has written.
class CountedReader {
 public:
  explicit CountedReader(std::string const& text) : at_(text.data()) {}

  template <class T>
    requires std::is_trivially_copyable_v<T>
  T get() {
    T value;
    std::memcpy(&value, at_, sizeof(T));
    at_ += sizeof(T);
    return value;
  }
  std::string text();
  std::vector<Counted> values();

  Metrics metrics();

 private:
  char const* at_;
};

/// `totals` and the values of the next part. MetricError if the parts have not counted alike.
void add_counted(std::vector<Counted>& totals, std::vector<Counted> values,
                 std::string const& metric);

}  // namespace frugal::detail

#ifndef FRUGAL_COMPILED
#include <frugal/core/loop/counted_values.ipp>
#endif
