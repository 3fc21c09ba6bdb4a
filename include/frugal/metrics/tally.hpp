// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ATen.h>

#include <string>

namespace frugal::detail {

/// A sum of scalars that stay where they are until somebody asks: those of the host are added up
/// as numbers, without an operator, those of a device on the device, without a wait.
///
/// Copies continue independently: nothing is added in place.
class Tally {
 public:
  void add(double here) { host_ += here; }
  void add(at::Tensor const& scalar);

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
  static double number(at::Tensor const& scalar);
  void set(double all);

  double host_ = 0;
  at::Tensor device_;
};

/// A tally of one number per class, or of a table of them: a tensor of doubles that is added up
/// where it lies. All parts have one shape.
class TensorTally {
 public:
  void add(at::Tensor const& part);
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

#ifndef FRUGAL_COMPILED
#include <frugal/metrics/tally.ipp>
#endif
