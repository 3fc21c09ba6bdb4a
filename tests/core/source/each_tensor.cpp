// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <ATen/ATen.h>

#include <frugal/core/source/batch.hpp>

#include <torch/data/example.h>

#include <array>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

namespace frugal_test::data_each_tensor {

using at::Tensor;
using frugal::batch_tensors;
using frugal::ShowsTensors;

/// Declares its tensors itself, one of them made of tensors.
struct Declared {
  Tensor ids;
  std::vector<Tensor> masks;
  std::string note = "kept";
  void each_tensor(auto&& f) { f(ids, masks); }
};

/// Lists its members.
struct Listed {
  Tensor ids, mask;
  double temperature = 1;
  static constexpr std::tuple tensors{&Listed::ids, &Listed::mask};
};

/// A foreign type: its traits name its tensors, and take no const batch.
struct Foreign {
  Tensor rows;
};

struct Opaque {
  Tensor rows;
};

}  // namespace frugal_test::data_each_tensor

template <>
struct frugal::batch_traits<frugal_test::data_each_tensor::Foreign> {
  static void each_tensor(frugal_test::data_each_tensor::Foreign& batch, auto&& f) {
    f(batch.rows);
  }
};

namespace frugal_test::data_each_tensor {

/// The sizes of the first dimensions, in the order of the tensors.
template <class B>
std::vector<std::int64_t> shown(B const& batch) {
  std::vector<std::int64_t> sizes;
  batch_tensors(batch, [&](Tensor const& tensor) {
    sizes.push_back(tensor.defined() ? tensor.size(0) : -1);
  });
  return sizes;
}

Tensor of(std::int64_t size) { return at::zeros({size}); }

using Sizes = std::vector<std::int64_t>;

TEST_CASE("tensors, and pairs, tuples, arrays and vectors of them, show their tensors in order") {
  CHECK(shown(of(1)) == Sizes{1});
  CHECK(shown(std::pair{of(1), of(2)}) == Sizes{1, 2});
  CHECK(shown(std::tuple{of(1), of(2), of(3)}) == Sizes{1, 2, 3});
  CHECK(shown(std::array{of(1), of(2)}) == Sizes{1, 2});
  CHECK(shown(std::vector{of(1), of(2), of(3)}) == Sizes{1, 2, 3});
  CHECK(shown(torch::data::Example<>{of(1), of(2)}) == Sizes{1, 2});
  CHECK(shown(torch::data::TensorExample{of(1)}) == Sizes{1});
  CHECK(shown(std::optional{of(1)}) == Sizes{1});
  CHECK(shown(std::optional<Tensor>{}).empty());
}

TEST_CASE("batches may be nested, and undefined tensors are shown as well") {
  std::pair const nested{std::tuple{of(1), std::vector{of(2), of(3)}},
                         std::map<std::string, Tensor>{{"b", of(5)}, {"a", of(4)}}};
  CHECK(shown(nested) == Sizes{1, 2, 3, 4, 5});
  CHECK(shown(frugal::Batch{of(1), {}}) == Sizes{1, -1});
}

TEST_CASE("maps with the same keys show their tensors in one order, hashed ones too") {
  using Hashed = std::unordered_map<std::string, Tensor>;
  Hashed there;
  Hashed back;
  back.rehash(101);
  for (int i = 0; i < 9; ++i) there["key " + std::to_string(i)] = of(i);
  for (int i = 8; i >= 0; --i) back["key " + std::to_string(i)] = of(i);
  CHECK(shown(there) == Sizes{0, 1, 2, 3, 4, 5, 6, 7, 8});
  CHECK(shown(back) == shown(there));
}

TEST_CASE("a type names its tensors in a member, in a list of members, or in its batch_traits") {
  CHECK(shown(Declared{of(1), {of(2), of(3)}}) == Sizes{1, 2, 3});
  CHECK(shown(Listed{of(1), of(2)}) == Sizes{1, 2});
  CHECK(shown(Foreign{of(4)}) == Sizes{4});
  CHECK(shown(std::vector{Foreign{of(4)}, Foreign{of(5)}}) == Sizes{4, 5});
}

TEST_CASE("the tensors shown can be replaced") {
  auto const replaced = [](auto batch) {
    batch_tensors(batch, [](Tensor& tensor) { tensor = of(9); });
    return shown(batch);
  };
  CHECK(replaced(std::tuple{of(1), std::vector{of(2)}}) == Sizes{9, 9});
  CHECK(replaced(std::unordered_map<std::string, Tensor>{{"a", of(1)}}) == Sizes{9});
  CHECK(replaced(Declared{of(1), {of(2)}}) == Sizes{9, 9});
  CHECK(replaced(Listed{of(1), of(2)}) == Sizes{9, 9});
  CHECK(replaced(Foreign{of(1)}) == Sizes{9});
  CHECK(replaced(frugal::Batch{of(1), of(2)}) == Sizes{9, 9});
}

TEST_CASE("a type with anything else in it shows nothing") {
  CHECK(ShowsTensors<Declared>);
  CHECK(ShowsTensors<std::optional<Listed>>);
  CHECK_FALSE(ShowsTensors<Opaque>);
  CHECK_FALSE(ShowsTensors<int>);
  CHECK_FALSE(ShowsTensors<std::string>);
  CHECK_FALSE(ShowsTensors<std::tuple<>>);
  CHECK_FALSE(ShowsTensors<std::pair<Tensor, int>>);
  CHECK_FALSE(ShowsTensors<std::vector<Opaque>>);
  CHECK_FALSE(ShowsTensors<std::map<int, Tensor>>);
}

}  // namespace frugal_test::data_each_tensor
