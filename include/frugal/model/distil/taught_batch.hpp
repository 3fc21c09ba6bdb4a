// SPDX-License-Identifier: Apache-2.0
// Shapes: B samples, J teachers, C classes, K kept ones, ... whatever one sample has.
#pragma once

#include <ATen/ATen.h>

#include <concepts>
#include <cstdint>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <frugal/core/source/batch.hpp>
#include <frugal/core/source/fields.hpp>
#include <frugal/data/fields_batch.hpp>

namespace frugal {

/// Whose outputs a cache has, and what of them.
struct TeacherOutputs {
  std::string identity{};         ///< of all teachers
  std::vector<double> weights{};  ///< of each
  std::int64_t top_k = 0;         ///< 0: all outputs
  double temperature = 1;         ///< of the top K
};

/// A batch with what its teachers said of it. It is a batch of the type that it was before, with
/// two more tensors, so that objectives and metrics take it as they took that one.
template <class B>
struct TaughtBatch : B {
  /// [B, J, C, ...]; of the top K log-probabilities [B, J, K + 1, ...], that of all others last.
  at::Tensor teacher{};
  at::Tensor classes{};  ///< [B, J, K, ...] int32; undefined where all outputs are kept
  std::shared_ptr<TeacherOutputs const> taught_by{};

  B& untaught() { return *this; }
  B const& untaught() const { return *this; }

  /// "teacher", "classes", or a field that the batch had before.
  at::Tensor const& field(std::string const& name) const {
    if (name == "teacher") return teacher;
    if (name == "classes" && classes.defined()) return classes;
    if constexpr (requires { untaught().field(name); }) {
      return untaught().field(name);
    } else {
      return detail::field_in({{"teacher", teacher}}, name);  // throws
    }
  }

  void each_tensor(auto&& f) { f(untaught(), teacher, classes); }
};

template <class B>
struct batch_traits<TaughtBatch<B>> {
  static std::int64_t samples(TaughtBatch<B> const& batch) {
    return batch_samples(batch.untaught());
  }
  static std::int64_t tokens(TaughtBatch<B> const& batch) { return batch_tokens(batch.untaught()); }
  static TaughtBatch<B> narrow(TaughtBatch<B> const& batch, std::int64_t begin, std::int64_t count)
    requires Splittable<B>
  {
    auto const part = [&](at::Tensor const& all) {
      return all.defined() ? all.narrow(0, begin, count) : all;
    };
    return {batch_narrow(batch.untaught(), begin, count), part(batch.teacher), part(batch.classes),
            batch.taught_by};
  }
};

namespace detail {

template <class B>
inline constexpr bool is_taught = false;
template <class B>
inline constexpr bool is_taught<TaughtBatch<B>> = true;

/// Adds a teacher's outputs to a batch. A pair, tuple or list of data and target becomes a Batch.
template <class B>
auto taught(B batch, at::Tensor teacher, at::Tensor classes,
            std::shared_ptr<TeacherOutputs const> taught_by) {
  constexpr bool both = [] {
    if constexpr (HasData<B> && HasTarget<B>) {
      return IsTensor<std::remove_cvref_t<decltype(batch_data(std::declval<B&>()))>> &&
             IsTensor<std::remove_cvref_t<decltype(batch_target(std::declval<B&>()))>>;
    } else {
      return false;
    }
  }();
  if constexpr (DataMember<B> && !std::is_final_v<B>) {
    return TaughtBatch<B>{std::move(batch), std::move(teacher), std::move(classes),
                          std::move(taught_by)};
  } else {
    static_assert(both,
                  "frugal: CachedTeacher cannot add the teacher's outputs to this batch. Give a "
                  "collate function that makes a Batch, a PaddedBatch, or a struct of your own "
                  "with a member `data`.");
    return TaughtBatch<Batch>{{batch_data(batch), batch_target(batch)},
                              std::move(teacher),
                              std::move(classes),
                              std::move(taught_by)};
  }
}

}  // namespace detail
}  // namespace frugal
