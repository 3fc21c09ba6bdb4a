// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <ATen/ATen.h>

#include <frugal/data/pad.hpp>
#include <frugal/data/padded.hpp>

#include <utility>
#include <vector>

namespace frugal_test::data_padded {

using frugal::pad;
using frugal::PaddedBatch;
using frugal::PaddedRows;

std::vector<at::Tensor> rows() {
  return {at::arange(1, 3).view({2, 1}), at::arange(3, 6).view({3, 1}),
          at::arange(6, 7).view({1, 1})};
}

/// Labels [T_i] for data [T_i, 1], one of them ignored.
PaddedBatch batch() {
  std::vector<std::pair<at::Tensor, at::Tensor>> samples;
  for (at::Tensor const& row : rows()) samples.emplace_back(row, row.view({-1}) * 10);
  samples[1].second[0] = -100;
  return frugal::Pad{}(samples);
}

TEST_CASE("rows are padded to the longest, with a mask and their lengths") {
  PaddedRows const padded = pad(rows(), -1);
  CHECK(padded.rows.squeeze(2).equal(
      at::tensor({1, 2, -1, 3, 4, 5, 6, -1, -1}, at::kLong).view({3, 3})));
  CHECK(padded.lengths.equal(at::tensor({2, 3, 1}, at::kLong)));
  CHECK(padded.mask.equal(padded.rows.squeeze(2).ne(-1)));
}

TEST_CASE("rows are padded on to a multiple, whatever follows their first dimension") {
  CHECK(pad(rows(), 0, 4).rows.sizes() == at::IntArrayRef({3, 4, 1}));
  CHECK(pad(rows(), 0, 3).rows.sizes() == at::IntArrayRef({3, 3, 1}));
  PaddedRows const wide = pad({at::ones({2, 5, 6}), at::ones({1, 5, 6})}, 7, 8);
  CHECK(wide.rows.sizes() == at::IntArrayRef({2, 8, 5, 6}));
  CHECK(wide.mask.sum().item<std::int64_t>() == 3);
  CHECK(
      wide.rows.masked_select(wide.mask.logical_not().view({2, 8, 1, 1})).eq(7).all().item<bool>());
  CHECK(pad({at::ones({3})}, 0, 2).rows.equal(at::tensor({1.0F, 1.0F, 1.0F, 0.0F}).view({1, 4})));
}

TEST_CASE("no rows, and a multiple below 1, are refused") {
  CHECK_THROWS_AS(pad({}), frugal::EmptySourceError);
  CHECK_THROWS_AS(pad(rows(), 0, 0), frugal::SettingsError);
}

TEST_CASE("a padded batch counts samples, positions that are its own, and labels that count") {
  PaddedBatch const padded = batch();
  CHECK(frugal::batch_samples(padded) == 3);
  CHECK(frugal::batch_tokens(padded) == 6);
  CHECK(padded.counted() == 5);
}

TEST_CASE("a part of a padded batch counts what is in it") {
  PaddedBatch const part = frugal::batch_narrow(batch(), 1, 2);
  CHECK(part.data.sizes() == at::IntArrayRef({2, 3, 1}));
  CHECK(part.mask.sizes() == at::IntArrayRef({2, 3}));
  CHECK(part.target.equal(at::tensor({-100, 40, 50, 60, -100, -100}, at::kLong).view({2, 3})));
  CHECK(part.counted() == 3);
  CHECK(frugal::batch_tokens(part) == 4);
}

TEST_CASE("a padded batch is placed with its mask, and its numbers stay on the host") {
  PaddedBatch padded = batch();
  frugal::batch_to(padded, at::kMeta);
  CHECK(padded.data.is_meta());
  CHECK(padded.target.is_meta());
  CHECK(padded.mask.is_meta());
  CHECK(padded.counted() == 5);
}

}  // namespace frugal_test::data_padded
