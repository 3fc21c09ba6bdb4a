// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <frugal/core/source/tensor_identity.hpp>

#include <ATen/ATen.h>

#include <complex>

namespace frugal_test::data_tensor_identity {

using frugal::detail::tensor_identity;

TEST_CASE("a tensor is its type, shape and values, and not how it is strided") {
  at::Tensor const one = at::arange(12, at::kFloat).reshape({3, 4});
  CHECK(tensor_identity(one).starts_with("[3, 4] Float, hash "));
  CHECK(tensor_identity(one) == tensor_identity(one.clone()));
  CHECK(tensor_identity(one) == tensor_identity(one.t().contiguous().t()));
  CHECK(tensor_identity(one) != tensor_identity(one.reshape({4, 3})));
  CHECK(tensor_identity(one) != tensor_identity(one.to(at::kDouble)));
  at::Tensor const other = one.clone();
  other[2][3] += 1;
  CHECK(tensor_identity(one) != tensor_identity(other));
}

TEST_CASE("tensors without elements, without dimensions and undefined ones have an identity") {
  CHECK(tensor_identity(at::empty({0, 3})) == tensor_identity(at::empty({0, 3})));
  CHECK(tensor_identity(at::scalar_tensor(1)) != tensor_identity(at::scalar_tensor(2)));
  CHECK(tensor_identity(at::Tensor()).starts_with("undefined"));
}

TEST_CASE("a lazily conjugated tensor has the values of one that is conjugated at once") {
  at::Tensor const one = at::complex(at::arange(3, at::kFloat), at::ones({3}));
  CHECK(tensor_identity(one.conj()) == tensor_identity(one.conj().resolve_conj()));
  CHECK(tensor_identity(one.conj()) != tensor_identity(one));
}

}  // namespace frugal_test::data_tensor_identity
