// SPDX-License-Identifier: Apache-2.0
#include <frugal/data/pad.hpp>

#include <doctest/doctest.h>

#include <frugal/data/fields_batch.hpp>

#include <ATen/ATen.h>
#include <torch/data/example.h>

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace frugal_test::data_pad {

using frugal::Pad;
using frugal::PaddedBatch;
using Example = torch::data::Example<>;

struct Counted {
  at::Tensor data{};
  at::Tensor lengths{};
  at::Tensor counts{};
  void each_tensor(auto&& f) { f(data); }
};

at::Tensor numbers(std::vector<std::int64_t> const& values) {
  return at::tensor(values, at::TensorOptions(at::kLong));
}

TEST_CASE("numbers on the host are added up") {
  CHECK(frugal::detail::host_sum(numbers({})) == 0);
  CHECK(frugal::detail::host_sum(numbers({3, -100, 7})) == -90);
}

TEST_CASE("a part of a batch has its part of the lengths and counts") {
  Counted const all{
      .data = at::arange(4), .lengths = numbers({1, 2, 3, 4}), .counts = numbers({5, 6, 7, 8})};
  Counted const part = frugal::detail::narrow_with_counts(all, 1, 2);
  CHECK(at::equal(part.data, numbers({1, 2})));
  CHECK(at::equal(part.lengths, numbers({2, 3})));
  CHECK(at::equal(part.counts, numbers({6, 7})));
}

at::Tensor longs(std::vector<std::int64_t> const& of) { return at::tensor(of, at::kLong); }

TEST_CASE("labels of positions are padded with -100, whatever integers they are") {
  std::vector<Example> const samples{{at::ones({3}), longs({4, -100, 6})},
                                     {at::ones({1}), longs({7})}};
  PaddedBatch const batch = Pad{.value = 5, .multiple = 4}(samples);
  CHECK(batch.data.equal(at::tensor({1.F, 1.F, 1.F, 5.F, 1.F, 5.F, 5.F, 5.F}).view({2, 4})));
  CHECK(batch.target.equal(longs({4, -100, 6, -100, 7, -100, -100, -100}).view({2, 4})));
  CHECK(batch.target_padded);
  CHECK(batch.counts.equal(longs({2, 1})));
  std::vector<Example> const bytes{{at::ones({2}), at::ones({2}, at::kByte)},
                                   {at::ones({1}), at::ones({1}, at::kByte)}};
  CHECK(Pad{}(bytes).target.equal(longs({1, 1, 1, -100}).view({2, 2})));
}

TEST_CASE("other targets of positions are padded with 0, and every position counts") {
  std::vector<Example> const samples{{at::ones({2}), at::full({2, 3}, 2.0)},
                                     {at::ones({1}), at::full({1, 3}, 2.0)}};
  PaddedBatch const batch = Pad{.value = 5}(samples);
  CHECK(batch.target.sizes() == at::IntArrayRef({2, 2, 3}));
  CHECK(batch.target[1][1].eq(0).all().item<bool>());
  CHECK(batch.counts.equal(longs({2, 1})));
}

TEST_CASE("a target for each sample is stacked, and counts once unless it is -100") {
  std::vector<std::pair<at::Tensor, std::int64_t>> const classes{{at::ones({2}), 3},
                                                                 {at::ones({4}), -100}};
  PaddedBatch const batch = Pad{}(classes);
  CHECK(batch.target.equal(longs({3, -100})));
  CHECK_FALSE(batch.target_padded);
  CHECK(batch.counted() == 1);
  std::vector<Example> const vectors{{at::ones({2}), at::ones({3})},
                                     {at::ones({4}), at::ones({3})}};
  CHECK(Pad{}(vectors).target.sizes() == at::IntArrayRef({2, 3}));
  CHECK(Pad{}(vectors).counted() == 2);
}

TEST_CASE("samples without a target are padded, and every position counts") {
  PaddedBatch const batch = Pad{}(std::vector{at::ones({2}), at::ones({3})});
  CHECK_FALSE(batch.target.defined());
  CHECK(batch.counted() == 5);
  CHECK(batch.positions() == 5);
}

TEST_CASE("maps with named data and labels are samples, too") {
  using Named = std::map<std::string, at::Tensor>;
  PaddedBatch const batch =
      Pad{}(std::vector<Named>{{{"input_ids", longs({1, 2})}, {"labels", longs({2, -100})}},
                               {{"input_ids", longs({3})}, {"labels", longs({-100})}}});
  CHECK(batch.data.equal(longs({1, 2, 3, 0}).view({2, 2})));
  CHECK(batch.counted() == 1);
}

TEST_CASE("an empty sample is refused by its number in the set") {
  std::vector<at::Tensor> const samples{at::ones({2}), at::ones({0})};
  std::array<std::size_t, 2> const indices{40, 17};
  CHECK_THROWS_WITH_AS(Pad{}(samples, indices),
                       "frugal: a sample is empty (data of sample 17): its shape is [0] Float, and "
                       "its first dimension is 0. Leave empty samples out of the data set.",
                       frugal::DataError);
  CHECK_THROWS_WITH_AS(Pad{}(samples),
                       "frugal: a sample is empty (data of sample 1 of the batch): its shape is "
                       "[0] Float, and its first dimension is 0. Leave empty samples out of the "
                       "data set.",
                       frugal::DataError);
}

TEST_CASE("samples of unlike type, rank or later dimensions are refused with both") {
  std::array<std::size_t, 2> const indices{4, 9};
  auto const refused = [&](at::Tensor const& second) {
    static_cast<void>(Pad{}(std::vector{at::ones({2, 3}), second}, indices));
  };
  CHECK_THROWS_WITH_AS(
      refused(at::ones({2, 3}, at::kLong)),
      "frugal: samples of one batch differ in type (data of sample 9): it is "
      "[2, 3] Long, and that of sample 4 is [2, 3] Float. Convert them in the data "
      "set.",
      frugal::DataError);
  CHECK_THROWS_WITH_AS(refused(at::ones({2})),
                       "frugal: samples of one batch differ in shape (data of sample 9): it is [2] "
                       "Float, and that of sample 4 is [2, 3] Float. Give samples that differ in "
                       "their first dimension alone.",
                       frugal::ShapeError);
  CHECK_THROWS_AS(refused(at::ones({2, 4})), frugal::ShapeError);
  CHECK_THROWS_AS(refused(at::ones({})), frugal::ShapeError);
  CHECK_THROWS_AS(refused(at::Tensor()), frugal::DataError);
}

TEST_CASE("a target with another length than its data is refused") {
  std::vector<Example> const samples{{at::ones({3}), at::ones({3})},
                                     {at::ones({2}), at::ones({1})}};
  CHECK_THROWS_WITH_AS(
      Pad{}(samples),
      "frugal: a target does not have the length of its data (target of sample 1 of the "
      "batch): it is [1] Float, and its data are [2] Float. Give one label for "
      "each position, or targets of one shape.",
      frugal::ShapeError);
}

using Named = std::map<std::string, at::Tensor>;

std::vector<Named> texts() {
  return {{{"input_ids", longs({1, 2, 3})},
           {"labels", longs({1})},
           {"attention_mask", longs({1, 1, 1})},
           {"teacher", at::full({3}, 0.5)}},
          {{"input_ids", longs({4})},
           {"labels", longs({0})},
           {"attention_mask", longs({1})},
           {"teacher", at::full({3}, 0.25)}}};
}

TEST_CASE("a map's other entries are fields: those of positions are padded, others are stacked") {
  PaddedBatch const batch = Pad{.multiple = 4, .fields = {{"attention_mask", 7}}}(texts());
  CHECK(batch.data.equal(longs({1, 2, 3, 0, 4, 0, 0, 0}).view({2, 4})));
  CHECK(batch.field("attention_mask").equal(longs({1, 1, 1, 7, 1, 7, 7, 7}).view({2, 4})));
  // Three numbers in each sample, and three positions in the longest: stacked all the same.
  CHECK(batch.field("teacher").equal(at::tensor({.5F, .5F, .5F, .25F, .25F, .25F}).view({2, 3})));
  CHECK(batch.fields.size() == 2);
  CHECK(batch.target.sizes() == at::IntArrayRef({2, 1}));
}

TEST_CASE("samples with a member for fields are padded likewise, with a target or without") {
  std::vector<frugal::FieldsBatch> samples{
      {.data = at::ones({2}), .target = longs({1, 2}), .fields = {{"mask", at::ones({2, 2})}}},
      {.data = at::ones({1}), .target = longs({3}), .fields = {{"mask", at::ones({1, 2})}}}};
  PaddedBatch const batch = Pad{.fields = {{"mask", 0}}}(samples);
  CHECK(batch.target.equal(longs({1, 2, 3, -100}).view({2, 2})));
  CHECK(batch.field("mask")[1].equal(at::tensor({1.F, 1.F, 0.F, 0.F}).view({2, 2})));
  for (frugal::FieldsBatch& each : samples) each.target = at::Tensor();
  PaddedBatch const without = Pad{.fields = {{"mask", 0}}}(samples);
  CHECK_FALSE(without.target.defined());
  CHECK(without.counted() == 3);
}

TEST_CASE("a part of a padded batch has that part of its fields, and they move with it") {
  PaddedBatch batch = frugal::batch_narrow(Pad{.fields = {{"attention_mask", 0}}}(texts()), 1, 1);
  CHECK(batch.field("attention_mask").equal(longs({1, 0, 0}).view({1, 3})));
  CHECK(batch.field("teacher").equal(at::full({1, 3}, 0.25)));
  frugal::batch_to(batch, at::Device(at::kMeta));
  CHECK(batch.field("teacher").is_meta());
  CHECK(batch.lengths.is_cpu());
}

TEST_CASE("a field that does not fit is refused, and the field and the sample are named") {
  auto const refusal = [](auto const& samples, Pad const& pad) -> std::string {
    try {
      pad(samples);
      return "not refused";
    } catch (frugal::Error const& error) {
      return error.fault().what + "; " + error.fault().where;
    }
  };
  Pad const pads{.fields = {{"attention_mask", 0}}};
  auto samples = texts();
  samples[1]["attention_mask"] = longs({1, 1});
  CHECK(refusal(samples, pads) ==
        "a field does not have the length of its data; field 'attention_mask' of sample 1 of the "
        "batch");
  samples[1]["attention_mask"] = longs({1});
  samples[0]["attention_mask"] = longs({1, 1});
  CHECK(refusal(samples, pads) ==
        "a field does not have the length of its data; field 'attention_mask' of sample 0 of the "
        "batch");
  samples = texts();
  samples[1].erase("attention_mask");
  CHECK(refusal(samples, pads) == "a sample has no field 'attention_mask'; sample 1 of the batch");
  // A field of positions that is not named cannot be stacked.
  CHECK(refusal(texts(), Pad{}) ==
        "samples of one batch differ in shape; entry 'attention_mask' of sample 1 of the batch");
  samples = texts();
  samples[1].erase("teacher");
  CHECK(refusal(samples, pads).starts_with("samples of one batch differ in their keys"));
  CHECK(refusal(std::vector{at::ones({2})}, pads) ==
        "a sample has no field 'attention_mask'; sample 0 of the batch");
}

using frugal::pad;
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

}  // namespace frugal_test::data_pad
