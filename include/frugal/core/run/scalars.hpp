// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ATen.h>

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <initializer_list>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace frugal {

/// Numbers that an objective reports with its loss, by name: `{{"kl", kl}, {"beta", 0.5}}`. Each is
/// a number, or a tensor of one element, which is read when the loss is read.
///
/// A null pointer if there are none.
class Scalars {
 public:
  struct Value {
    Value(std::string the_name, at::Tensor const& value)
        : name(std::move(the_name)), tensor(value.defined() ? value.detach() : value) {}
    Value(std::string the_name, std::convertible_to<double> auto value)
        : name(std::move(the_name)), number(static_cast<double>(value)), is_number(true) {}

    std::string name;
    at::Tensor tensor{};
    double number = 0;
    bool is_number = false;
  };

  Scalars() = default;
  // Implicit, so that a Loss takes braces.
  Scalars(std::initializer_list<Value> values)  // NOLINT(google-explicit-constructor)
      : values_(values.size() == 0 ? nullptr : std::make_unique<std::vector<Value>>(values)) {}
  Scalars(Scalars const& other)
      : values_(other.values_ ? std::make_unique<std::vector<Value>>(*other.values_) : nullptr) {}
  Scalars& operator=(Scalars const& other) {
    if (this != &other) *this = Scalars(other);
    return *this;
  }
  Scalars(Scalars&&) noexcept = default;
  Scalars& operator=(Scalars&&) noexcept = default;
  ~Scalars() = default;

  void add(Value value);

  bool empty() const { return values_ == nullptr; }
  auto begin() const { return values_ ? values_->data() : nullptr; }
  auto end() const { return values_ ? values_->data() + values_->size() : nullptr; }

  /// A copy with tensors of its own.
  Scalars clone() const;

 private:
  std::unique_ptr<std::vector<Value>> values_;
};

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
#include <frugal/core/run/scalars.ipp>
#endif
