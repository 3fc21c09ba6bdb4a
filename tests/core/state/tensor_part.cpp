// SPDX-License-Identifier: Apache-2.0
#include <ATen/ATen.h>
#include <doctest/doctest.h>

#include <string>

#include <frugal/core/state/state_dict.hpp>
#include <frugal/core/state/state_reader.hpp>
#include <frugal/core/state/state_writer.hpp>
#include <frugal/core/state/tensor_part.hpp>
#include <frugal/error.hpp>

namespace frugal_test::state_tensor_part {

using frugal::StateDict;
using frugal::StateError;
using frugal::StateReader;
using frugal::StateWriter;
using frugal::TensorPart;
using frugal::detail::in_memory_order;

/// A tensor whose memory is not in the order of its dimensions.
at::Tensor turned() { return at::arange(12, at::kFloat).view({3, 4}).t(); }

TEST_CASE("a part is taken of a tensor that was saved whole, in the order of memory") {
  StateDict memory;
  StateWriter writer(memory);
  writer("moment", turned().contiguous());  // as a file has it
  StateReader reader(memory);
  at::Tensor part = at::zeros({5});
  at::Tensor undefined;
  reader.part("moment", part, TensorPart::of(turned(), 4, 5));
  StateReader(memory).part("moment", undefined, TensorPart::of(turned(), 0, 2));
  CHECK(part.equal(at::arange(4, 9, at::kFloat)));
  CHECK(undefined.equal(at::arange(2, at::kFloat)));
  CHECK_FALSE(reader.unread());
}

TEST_CASE("a writer makes it whole, or keeps it as it is") {
  TensorPart const which = TensorPart::of(turned(), 4, 5);
  at::Tensor const mine = in_memory_order(turned()).narrow(0, 4, 5);
  StateDict kept;
  StateWriter(kept).part("moment", mine, which);
  at::Tensor again = at::zeros({5});
  StateReader(kept).part("moment", again, which);
  CHECK(again.equal(mine));

  StateDict whole;
  StateWriter writer(whole);
  writer.whole = [&](at::Tensor const& part, TensorPart const& of) {
    CHECK(part.equal(mine));
    CHECK(of.text() == "elements 4 to 9 of 12");
    return turned();
  };
  writer.part("moment", mine, which);
  writer.part("not begun", at::Tensor(), which);
  CHECK(whole.tensors.at("moment").equal(turned()));
  StateReader reader(whole);
  at::Tensor absent = at::zeros({5});
  reader.part("not begun", absent, which);
  CHECK_FALSE(absent.defined());
}

TEST_CASE("a part of another shape does not load") {
  StateDict memory;
  StateWriter writer(memory);
  writer("moment", at::zeros({7}));
  StateReader reader(memory);
  at::Tensor part = at::zeros({5});
  CHECK_THROWS_WITH_AS(reader.part("moment", part, TensorPart::of(turned(), 4, 5)),
                       doctest::Contains("saved as [7] Float, here it is [5] Float"), StateError);
}

}  // namespace frugal_test::state_tensor_part

namespace frugal_test::state_tensor_places {

namespace fr = frugal;
using Place = fr::PlacedTensor::Place;

fr::TensorPlaces places() {
  fr::TensorPlaces all;
  all.tensors["0.weight"] = {.place = Place::here, .sizes = {2, 3}};
  all.tensors["1.weight"] = {.place = Place::elsewhere, .sizes = {4}};
  all.tensors["head.weight"] = {.place = Place::everywhere, .sizes = {5}};
  return all;
}

TEST_CASE("a path names a tensor as a scope, as its last word, or as a whole") {
  fr::TensorPlaces const all = places();
  CHECK(all.is(Place::here, "policies/Optimize/0.weight/exp_avg"));
  CHECK(all.is(Place::here, "policies/Average/weights/0.weight"));
  CHECK(all.is(Place::here, "0.weight"));
  CHECK(all.is(Place::elsewhere, "policies/Optimize/1.weight/step"));
  CHECK(all.is(Place::everywhere, "policies/Optimize/head.weight/step"));
  for (std::string const path : {"", "/", "policies/Optimize/10.weight/step", "0.weights",
                                 "policies/x0.weight", "generators/cpu"}) {
    CAPTURE(path);
    CHECK(all.find(path) == nullptr);
    CHECK(!all.is(Place::everywhere, path));
  }
  // Items of a list, and a tensor of all processes that is called as a scope is.
  CHECK(all.is(Place::here, "policies/Mine/0.weight.12"));
  CHECK(all.find("policies/Mine/weights.12") == nullptr);
  fr::TensorPlaces named = places();
  named.tensors["weights"] = {.place = Place::everywhere};
  CHECK(named.is(Place::elsewhere, "policies/Average/weights/1.weight"));
  CHECK(named.is(Place::everywhere, "policies/Average/weights/2.weight"));
  CHECK(fr::TensorPlaces{}.empty());
  CHECK(fr::TensorPlaces{}.find("0.weight") == nullptr);
}

TEST_CASE("a process that is not the first saves its own tensors, and those of no layer") {
  fr::TensorPlaces const all = places();
  fr::StateDict state;
  fr::StateWriter writer(state);
  writer.parts_alone = true;
  writer.places = &all;
  at::Tensor const tensor = at::ones({2});
  for (std::string const name : {"0.weight", "head.weight", "cpu"}) writer(name, tensor);
  writer.give("1.weight", tensor);
  CHECK(state.tensors.contains("0.weight"));
  CHECK(state.tensors.contains("cpu"));
  CHECK(!state.tensors.contains("head.weight"));
  CHECK(!state.tensors.contains("1.weight"));
  CHECK(state.values.size() == 4);

  // Of processes with the same layers, one writes them.
  fr::TensorPlaces copy = places();
  copy.writes = false;
  fr::StateDict little;
  fr::StateWriter again(little);
  again.parts_alone = true;
  again.places = &copy;
  for (std::string const name : {"0.weight", "head.weight", "cpu"}) again(name, tensor);
  CHECK(little.tensors.size() == 1);
  CHECK(little.tensors.contains("cpu"));
  CHECK(all.saves("0.weight"));
  CHECK(!copy.saves("0.weight"));

  fr::StateDict none;
  fr::StateWriter others(none);  // of a module that is not divided
  others.parts_alone = true;
  others("0.weight", tensor);
  CHECK(none.tensors.empty());
}

}  // namespace frugal_test::state_tensor_places
