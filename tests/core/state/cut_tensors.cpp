// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <frugal/core/state/cut_tensors.hpp>
#include <frugal/core/state/state_dict.hpp>
#include <frugal/core/state/state_reader.hpp>
#include <frugal/core/state/state_writer.hpp>
#include <frugal/core/state/tensor_part.hpp>
#include <frugal/model/load_weights.hpp>
#include <frugal/model/save_weights.hpp>

#include "support/files.hpp"

#include <torch/nn/modules/linear.h>

#include <cstdint>
#include <string>
#include <vector>

namespace frugal_test::core_state_cut_tensors {

using frugal::cut_tensor;
using frugal::part_of;
using frugal::TensorPart;

/// Columns 4 and 5 of a matrix of 3 x 6, which lie in memory one after the other.
struct Columns {
  at::Tensor whole = at::arange(18, at::kFloat).view({3, 6});
  at::Tensor by_columns = whole.t().contiguous().t();
  at::Tensor mine = at::empty_strided({3, 2}, {1, 3});
  TensorPart part = TensorPart::of(by_columns, 12, 6);
  Columns() {
    mine.copy_(whole.narrow(1, 4, 2));
    cut_tensor(mine, part);
  }
};

TEST_CASE("a mark belongs to one tensor, keeps with new data, and ends with it") {
  at::Tensor mine = at::ones({2, 3});
  CHECK_FALSE(part_of(mine));
  cut_tensor(mine, TensorPart::of(at::ones({4, 3}), 6, 6));
  REQUIRE(part_of(mine));
  CHECK(part_of(mine)->text() == "elements 6 to 12 of 12");
  CHECK_FALSE(part_of(mine.clone()));
  mine.set_data(at::zeros({2, 3}));
  CHECK(part_of(mine));
  CHECK(frugal::detail::whole_sizes(mine) == std::vector<std::int64_t>{4, 3});
  CHECK(frugal::detail::whole_sizes(at::ones({5})) == std::vector<std::int64_t>{5});
}

TEST_CASE("the own part of a whole tensor, by rows and by columns") {
  Columns const columns;
  CHECK(frugal::detail::own_part(columns.whole, columns.mine).equal(columns.mine));
  at::Tensor rows = at::empty({1, 6});
  cut_tensor(rows, TensorPart::of(columns.whole, 6, 6));
  CHECK(frugal::detail::own_part(columns.whole, rows).equal(columns.whole.narrow(0, 1, 1)));
}

TEST_CASE("an archive makes it whole, and takes the part of what is whole") {
  Columns const columns;
  frugal::StateDict memory;
  frugal::StateWriter writer(memory);
  writer.whole = [&](at::Tensor const& mine, TensorPart const& which) {
    CHECK(mine.equal(columns.mine));
    CHECK(which.first == 12);
    return columns.by_columns;
  };
  writer.part("weight", columns.mine, columns.part);
  CHECK(memory.tensors.at("weight").equal(columns.whole));
  frugal::StateReader reader(memory);
  at::Tensor loaded = at::empty_strided({3, 2}, {1, 3});
  reader.part("weight", loaded, columns.part);
  CHECK(loaded.equal(columns.mine));
}

TEST_CASE(
    "load_weights takes the part, and save_weights refuses to write it under the whole's name") {
  support::TemporaryFolder const folder;
  torch::nn::Linear whole(6, 3);
  frugal::save_weights(whole, folder / "whole");
  torch::nn::Linear mine(2, 3);
  mine->weight.set_data(at::empty_strided({3, 2}, {1, 3}));
  cut_tensor(mine->weight, Columns().part);
  frugal::load_weights(mine, folder / "whole");
  CHECK(mine->weight.equal(whole->weight.narrow(1, 4, 2)));
  CHECK(mine->bias.equal(whole->bias));
  CHECK_THROWS_AS(frugal::save_weights(mine, folder / "mine"), frugal::ModuleError);
  try {
    torch::nn::Linear other(7, 3);
    frugal::save_weights(other, folder / "other");
    frugal::load_weights(mine, folder / "other");
    FAIL("another whole");
  } catch (frugal::StateError const& error) {
    CHECK(std::string(error.what()).find("a part of [3, 6]") != std::string::npos);
  }
}

}  // namespace frugal_test::core_state_cut_tensors
