// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ATen.h>

#include <concepts>
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

}  // namespace frugal

#ifndef FRUGAL_COMPILED
#include <frugal/core/run/scalars.ipp>
#endif
