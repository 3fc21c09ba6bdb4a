// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/core/source/batch.hpp>
#include <frugal/core/source/range.hpp>
#include <frugal/core/source/sample_set.hpp>
#include <frugal/core/source/source.hpp>

#include <optional>
#include <type_traits>

// An argument of fit, evaluate or predict that is not a source gets one sentence that names the
// call to write, instead of the compiler's list of candidates.
namespace frugal {

namespace detail {

/// Stands in for a refused argument, so that the sentence is the only error.
struct RefusedSource {
  void seek(Cursor const&) {}
  std::optional<Batch> next() { return std::nullopt; }
};

// By their members: torch/data.h is not read for it.
template <class T>
concept TorchDataset = requires {
  typename T::BatchType;
  typename T::BatchRequestType;
  T::is_stateful;
};
template <class T>
concept TorchDataLoader = requires(T& loader) {
  typename T::BatchType;
  loader.join();
  loader.options();
  loader.begin();
};
/// A module, or what holds one: trainer.fit(model, data), as in Lightning.
template <class T>
concept HasParameters = requires(T& module) { module.named_parameters(); } ||
                        requires(T& holder) { holder->named_parameters(); };
template <class T>
concept Dereferenced = requires(T& pointer) { *pointer; };

/// False, and known only once T is: a static_assert with it fails where T is refused.
template <class T>
inline constexpr bool is_source = false;

template <class T>
constexpr bool refuse_source() {
  if constexpr (Source<T>) {  // only a const one comes here
    static_assert(is_source<T>,
                  "frugal: this source is const, and reading it moves its position. Remove the "
                  "const of its variable or parameter.");
  } else if constexpr (std::is_arithmetic_v<T>) {
    static_assert(is_source<T>,
                  "frugal: a number is not a source of batches. The length of a run is in the "
                  "trainer's settings: Settings{.epochs = 10}, or Settings{.steps = 1000}.");
  } else if constexpr (TorchDataset<T>) {
    static_assert(is_source<T>,
                  "frugal: a torch::data dataset is not a source of batches. Call "
                  "fit(from_dataset(dataset, {.batch = 64})).");
  } else if constexpr (TorchDataLoader<T>) {
    static_assert(is_source<T>,
                  "frugal: a torch::data DataLoader cannot seek, so no run over it could resume. "
                  "Give its dataset: fit(from_dataset(dataset, {.batch = 64})).");
  } else if constexpr (HasParameters<T>) {
    static_assert(is_source<T>,
                  "frugal: a module is not a source of batches, and the trainer has its module. "
                  "Write Trainer{module, ...}, and fit(train) or fit(train, valid).");
  } else if constexpr (SampleSet<T>) {
    static_assert(is_source<T>,
                  "frugal: a set of samples is not a source of batches. Call fit(loader(set, "
                  "{.batch = 64})).");
  } else if constexpr (Dereferenced<T>) {
    using Pointee = std::remove_cvref_t<decltype(*std::declval<T&>())>;
    if constexpr (TorchDataset<Pointee> || TorchDataLoader<Pointee>) {
      return refuse_source<Pointee>();
    } else {
      static_assert(is_source<T>,
                    "frugal: a pointer is not a source of batches. Give the source itself: "
                    "fit(*source).");
    }
  } else {
    static_assert(is_source<T>,
                  "frugal: this type is not a source of batches. Give a Source, with seek(cursor) "
                  "and next(); a range of batches, such as std::vector<Batch>; tensors as "
                  "TensorDataset(data, target); or from_dataset(dataset).");
  }
  return false;
}

}  // namespace detail

/// Refuses an argument that is not a source, with a sentence.
template <class S>
  requires(!Source<std::remove_reference_t<S>> && !BatchRange<S>)
detail::RefusedSource as_source(S&&) {
  static_cast<void>(detail::refuse_source<std::remove_cvref_t<S>>());
  return {};
}

}  // namespace frugal
