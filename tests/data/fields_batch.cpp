// SPDX-License-Identifier: Apache-2.0
#include <frugal/data/fields_batch.hpp>

#include <doctest/doctest.h>

#include <ATen/ATen.h>

#include <map>
#include <string>
#include <unordered_map>
#include <vector>

namespace frugal_test::data_fields_batch {

using frugal::FieldsBatch;
using frugal::NamedTensors;
using frugal::detail::field_in;
using frugal::detail::fields_of;

std::string refusal(NamedTensors const& fields, std::string const& name) {
  try {
    field_in(fields, name);
    return "not refused";
  } catch (frugal::DataError const& error) {
    return error.fault().what + "; " + error.fault().why;
  }
}

TEST_CASE("a field that is not there is refused, with the names that there are") {
  NamedTensors const fields{{"mask", at::ones({2})}, {"teacher", at::zeros({2})}};
  CHECK(field_in(fields, "teacher").equal(at::zeros({2})));
  CHECK(refusal(fields, "techer") ==
        "the batch has no field 'techer'; its fields are 'mask', 'teacher'");
  CHECK(refusal({}, "mask") == "the batch has no field 'mask'; it has none");
}

TEST_CASE("the fields of a map are what is neither its data nor its target") {
  at::Tensor const one = at::ones({1});
  std::map<std::string, at::Tensor> const plain{{"data", one}, {"target", one}, {"labels", one}};
  // "target" comes first, so "labels" is one more.
  CHECK(fields_of(plain).size() == 1);
  CHECK(fields_of(plain).contains("labels"));
  std::unordered_map<std::string, at::Tensor> const text{
      {"input_ids", one}, {"labels", one}, {"attention_mask", one}, {"teacher", one}};
  NamedTensors const found = fields_of(text);
  CHECK(found.size() == 2);
  CHECK(found.contains("attention_mask"));
  CHECK(found.at("teacher").is_same(one));
}

FieldsBatch example() {
  return {.data = at::arange(12).view({4, 3}),
          .target = at::arange(4),
          .fields = {{"mask", at::ones({4, 3})}, {"teacher", at::arange(8).view({4, 2})}}};
}

TEST_CASE("the loop sees data, target and every field") {
  FieldsBatch batch = example();
  CHECK(frugal::batch_samples(batch) == 4);
  CHECK(frugal::batch_tokens(batch) == 4);
  std::vector<std::int64_t> elements;
  frugal::batch_tensors(batch, [&](at::Tensor const& each) { elements.push_back(each.numel()); });
  CHECK(elements == std::vector<std::int64_t>{12, 4, 12, 8});
  CHECK(frugal::batch_data(batch).is_same(batch.data));
  CHECK(frugal::batch_target(batch).is_same(batch.target));
  CHECK_THROWS_AS(batch.field("techer"), frugal::DataError);
}

TEST_CASE("a part of a batch has that part of every field, and a batch moves whole") {
  FieldsBatch part = frugal::batch_narrow(example(), 1, 2);
  CHECK(part.data.equal(at::arange(3, 9).view({2, 3})));
  CHECK(part.field("teacher").equal(at::arange(2, 6).view({2, 2})));
  frugal::batch_to(part, at::Device(at::kMeta));
  CHECK(part.target.is_meta());
  CHECK(part.field("mask").is_meta());
  CHECK(part.field("teacher").is_meta());
}

TEST_CASE("a field that does not have the batch's samples cannot be split") {
  FieldsBatch batch = example();
  batch.fields["weights"] = at::ones({2});
  CHECK_THROWS_AS(frugal::batch_narrow(batch, 0, 2), frugal::ShapeError);
}

TEST_CASE("without a target, tokens are the data's elements") {
  FieldsBatch batch = example();
  batch.target = at::Tensor();
  CHECK(frugal::batch_tokens(batch) == 12);
  CHECK(frugal::batch_samples(batch) == 4);
  CHECK_FALSE(frugal::batch_narrow(batch, 0, 2).target.defined());
}

}  // namespace frugal_test::data_fields_batch
