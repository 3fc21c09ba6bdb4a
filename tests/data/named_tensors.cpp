// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <ATen/ATen.h>

#include <frugal/data/named_tensors.hpp>

#include <map>
#include <string>
#include <unordered_map>

namespace frugal_test::data_named_tensors {

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

}  // namespace frugal_test::data_named_tensors
