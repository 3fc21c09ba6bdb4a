// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>
#include <torch/csrc/autograd/saved_variable.h>
#include <torch/nn/modules/container/any_value.h>

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <frugal/core/source/batch.hpp>
#include <frugal/error.hpp>

namespace frugal::detail {

template <class T>
inline constexpr bool is_tuple_like = false;
template <class... Ts>
inline constexpr bool is_tuple_like<std::tuple<Ts...>> = true;
template <class A, class B>
inline constexpr bool is_tuple_like<std::pair<A, B>> = true;

template <class T>
inline constexpr bool is_row = false;
template <class T, class Allocator>
inline constexpr bool is_row<std::vector<T, Allocator>> = true;
template <class T, std::size_t N>
inline constexpr bool is_row<std::array<T, N>> = true;
template <class T>
inline constexpr bool is_optional = false;
template <class T>
inline constexpr bool is_optional<std::optional<T>> = true;

template <class T, class Visit>
void each_tensor(T& value, Visit const& visit);

/// Visits the tensors inside an AnyValue: a tensor, a vector of them, or a tuple of two to four.
/// Other contents are copied unchanged.
template <class Visit>
void each_tensor_of_any(torch::nn::AnyValue& value, Visit const& visit) {
  using T = at::Tensor;
  auto const look = [&]<class V>(std::type_identity<V>) {
    V* const found = value.try_get<V>();
    if (found) each_tensor(*found, visit);
    return found != nullptr;
  };
  look(std::type_identity<T>{}) || look(std::type_identity<std::vector<T>>{}) ||
      look(std::type_identity<std::tuple<T, T>>{}) ||
      look(std::type_identity<std::tuple<T, T, T>>{}) ||
      look(std::type_identity<std::tuple<T, T, T, T>>{});
}

/// Calls `visit` on every tensor in a value, including those in tuples, pairs, vectors, arrays and
/// optionals.
template <class T, class Visit>
void each_tensor(T& value, Visit const& visit) {
  using V = std::remove_const_t<T>;
  if constexpr (std::same_as<V, at::Tensor>) {
    visit(value);
  } else if constexpr (std::same_as<V, torch::nn::AnyValue>) {
    each_tensor_of_any(value, visit);
  } else if constexpr (is_tuple_like<V>) {
    std::apply([&](auto&... parts) { (each_tensor(parts, visit), ...); }, value);
  } else if constexpr (is_row<V>) {
    for (auto& part : value) each_tensor(part, visit);
  } else if constexpr (is_optional<V>) {
    if (value) each_tensor(*value, visit);
  }
}

/// The inputs of a function that will be called again. Their tensors are saved like those of an
/// operator, so that saved-tensor hooks apply to them too.
template <class Inputs>
class KeptInputs {
 public:
  explicit KeptInputs(Inputs const& inputs) : rest_(inputs) {
    each_tensor(rest_, [&](at::Tensor& tensor) {
      versions_.push_back(version_of(tensor));
      if (tensor.defined()) devices_.push_back(tensor.device());
      tensors_.emplace_back(tensor, /*is_output=*/false);
      tensor.reset();
    });
  }

  std::vector<c10::Device> const& devices() const { return devices_; }

  /// The restored inputs. Throws LibTorch's error if one was changed in place since.
  Inputs restored() const {
    Inputs inputs = rest_;
    std::size_t next = 0;
    each_tensor(inputs, [&](at::Tensor& tensor) { tensor = tensors_[next++].unpack(); });
    return inputs;
  }

  /// Throws ModuleError if an input was changed in place: it cannot be recomputed from.
  void require_unchanged(Inputs& inputs, std::string const& who) const {
    std::size_t next = 0;
    each_tensor(inputs, [&](at::Tensor& tensor) {
      if (version_of(tensor) == versions_[next++]) return;
      throw ModuleError(
          {.what = who + " changes its input " + shape_text(tensor) + " in place",
           .where = "recompute",
           .why = "backward computes the function again, and its input has changed by then",
           .fix = "Use the out-of-place operator, or begin with a clone(). A module such as ReLU "
                  "with inplace(true) may stand anywhere but at the beginning of a segment."});
    });
  }

 private:
  static std::int64_t version_of(at::Tensor const& tensor) {
    return tensor.defined() && !tensor.is_inference() ? tensor._version() : 0;
  }

  Inputs rest_;  ///< everything except the tensors
  std::vector<torch::autograd::SavedVariable> tensors_;
  std::vector<std::int64_t> versions_;
  std::vector<c10::Device> devices_;
};

}  // namespace frugal::detail
