// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ATen.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <frugal/core/run/scalars.hpp>

namespace frugal {

/// The scalars of objectives (Loss::scalars), for the spans of the policies that show them.
/// A scalar on a device is kept as a tensor until the losses are read.
class ScalarAccumulator {
 public:
  static constexpr std::size_t a_chunk = 4096;

  /// The span must outlive the accumulator's use.
  void follow(ScalarSpan& span) {
    if (std::find(spans_.begin(), spans_.end(), &span) == spans_.end()) spans_.push_back(&span);
  }

  /// Throws ShapeError for one that is not a single number, with its name and shape, and
  /// SettingsError for a name that a log's line has already.
  void add(Scalars const& scalars, double weight);

  /// Passes pending scalars to the spans; one wait for a device, however many there are.
  void read_pending();

  /// Forgets pending scalars.
  void reset() { pending_.clear(); }

  /// The place in it, to return to. Valid until pending scalars are read.
  using Mark = std::uint64_t;
  Mark mark();
  void go_back(Mark mark);

 private:
  struct Pending {
    std::size_t name;
    double weight;
    double value;
    at::Tensor tensor;
    bool is_sum = false;  ///< the tensor has been multiplied by the weights in it
  };

  /// In the order in which they came up.
  std::size_t index_of(std::string const& name);

  void enter(Pending const& entry, double sum) {
    for (ScalarSpan* const span : spans_) span->add(names_[entry.name], sum, entry.weight);
  }

  /// Numbers go to their spans; the tensors of a name become one, where they are, without a wait.
  void shorten();

  static std::vector<double> values_of(std::vector<at::Tensor> const& tensors);

  static void require_one(Scalars::Value const& each);
  static void require_free(std::string const& name);

  std::vector<std::string> names_;
  std::vector<ScalarSpan*> spans_;
  std::vector<Pending> pending_;
  std::uint64_t added_ = 0;  ///< to `pending_`, so far
  bool marked_ = false;
};

}  // namespace frugal

#ifndef FRUGAL_COMPILED
#include <frugal/core/run/scalar_accumulator.ipp>
#endif
