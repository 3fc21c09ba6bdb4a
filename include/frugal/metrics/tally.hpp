// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <string>
#include <utility>

#include <frugal/inline.hpp>

namespace frugal::detail {

/// A sum of scalars that stay where they are until somebody asks: those of the host are added up
/// as numbers, without an operator, those of a device on the device, without a wait.
///
/// Copies continue independently: nothing is added in place.
class Tally {
 public:
  void add(double here) { host_ += here; }
  FRUGAL_INLINE void add(at::Tensor const& scalar) {
    if (scalar.is_cpu()) {
      host_ += number(scalar);
    } else {
      at::Tensor const part = scalar.to(at::kDouble);
      device_ = device_.defined() ? device_.to(part.device()) + part : part;
    }
  }

  /// What was added on the host.
  double on_host() const { return host_; }
  /// Waits for the device if something lies there.
  double value() const {
    return device_.defined() ? host_ + device_.template item<double>() : host_;
  }

  template <class Sum>
  void reduce(Sum&& sum) {
    set(sum(value()));
  }

  template <class Archive>
  void persist(Archive& archive, std::string const& name) {
    double all = Archive::loading ? 0 : value();
    archive(name, all);
    if (Archive::loading) set(all);
  }

 private:
  // The two types that metrics make of a batch are read without a dispatch. Through the untyped
  // pointer: see host_scalar in core/run/loss_accumulator.hpp.
  FRUGAL_INLINE static double number(at::Tensor const& scalar) {
    if (scalar.scalar_type() == at::kLong) {
      return static_cast<double>(*static_cast<std::int64_t const*>(scalar.const_data_ptr()));
    }
    if (scalar.scalar_type() == at::kDouble) {
      return *static_cast<double const*>(scalar.const_data_ptr());
    }
    return scalar.item<double>();
  }
  FRUGAL_INLINE void set(double all) {
    host_ = all;
    device_ = at::Tensor();
  }

  double host_ = 0;
  at::Tensor device_;
};

/// A tally of one number per class, or of a table of them: a tensor of doubles that is added up
/// where it lies. All parts have one shape.
class TensorTally {
 public:
  FRUGAL_INLINE void add(at::Tensor const& part) {
    at::Tensor const exact = part.to(at::kDouble);
    // A run may have moved to another device since the last part.
    sum_ = sum_.defined() ? sum_.to(exact.device()) + exact : exact;
  }
  bool defined() const { return sum_.defined(); }
  at::Tensor const& sum() const { return sum_; }
  /// Waits for the device if it lies there.
  at::Tensor on_host() const { return sum_.defined() ? sum_.cpu() : sum_; }

  template <class Sum>
  void reduce(Sum&& sum) {
    if (sum_.defined()) sum_ = sum(sum_);
  }

  template <class Archive>
  void persist(Archive& archive, std::string const& name) {
    archive(name, sum_);
  }

 private:
  at::Tensor sum_;
};

}  // namespace frugal::detail
