// SPDX-License-Identifier: Apache-2.0
#include "references.hpp"

#include <frugal/data/collate.hpp>
#include <frugal/data/collate_then.hpp>
#include <frugal/data/image/augment.hpp>
#include <frugal/data/image/color.hpp>
#include <frugal/data/image/geometry.hpp>
#include <frugal/data/image/mix.hpp>

#include <vector>

namespace frugal_test::image_augment {

using namespace frugal_test::image;
using namespace frugal;

struct Sample {
  at::Tensor data;
  std::int64_t target = 0;
};

TEST_CASE("one transform draws as it does by itself") {
  at::Tensor const all = images({8, 3, 6, 6}, 1, true);
  auto const keys = keys_of(8);
  CHECK(at::equal(Augment{RandomFlip{}}(all, keys), RandomFlip{}(all, keys)));
}

TEST_CASE("transforms run in their order, on a tensor and on the data of a batch") {
  at::Tensor const all = images({4, 3, 9, 9}, 1, true);
  auto const keys = keys_of(4);
  Augment const augment{RandomCrop{.height = 6, .width = 6}, ToFloat{}, CenterCrop{4, 4}};
  at::Tensor const expected =
      CenterCrop{4, 4}(ToFloat{}(RandomCrop{.height = 6, .width = 6}(all, keys)));
  CHECK(at::equal(augment(all, keys), expected));
  Batch const out = augment(Batch{all, at::arange(4)}, keys);
  CHECK(at::equal(out.data, expected));
  CHECK(at::equal(out.target, at::arange(4)));
}

TEST_CASE("a sample becomes what it becomes in a batch, whatever the batch") {
  at::Tensor const all = images({6, 3, 16, 14}, 1, true);
  auto const keys = keys_of(6);
  Augment const augment{RandomResizedCrop{.height = 8, .width = 8}, RandomFlip{},
                        ColorJitter{.brightness = 0.4, .hue = 0.1}, Normalize{}};
  at::Tensor const whole = augment(all, keys);
  for (std::size_t b = 0; b < 6; ++b) {
    auto const row = static_cast<std::int64_t>(b);
    CHECK(at::equal(augment(all[row], keys[b]), whole[row]));
    Sample const sample = augment(Sample{all[row], 3}, keys[b]);
    CHECK(at::equal(sample.data, whole[row]));
    CHECK(sample.target == 3);
  }
  CHECK(at::equal(augment(all.narrow(0, 2, 2), std::span(keys).subspan(2, 2)),
                  whole.narrow(0, 2, 2)));
}

TEST_CASE("two transforms of one kind draw different numbers") {
  at::Tensor const all = images({64, 1, 2, 3}, 1, true);
  auto const keys = keys_of(64);
  // Flips that agreed would undo each other in every image.
  CHECK_FALSE(at::equal(Augment(RandomFlip{}, RandomFlip{})(all, keys), all));
}

TEST_CASE("an epoch repeats for its seed, and differs from the others") {
  at::Tensor const all = images({8, 3, 12, 12}, 1, true);
  Augment const augment{RandomCrop{.height = 6, .width = 6}, RandomFlip{}};
  auto const epoch = [&](std::uint64_t number, std::uint64_t seed) {
    return augment(all, keys_of(8, 0, number, seed));
  };
  CHECK(at::equal(epoch(3, 1), epoch(3, 1)));
  CHECK_FALSE(at::equal(epoch(3, 1), epoch(4, 1)));
  CHECK_FALSE(at::equal(epoch(3, 1), epoch(3, 2)));
}

TEST_CASE("LibTorch's generator is not touched") {
  at::manual_seed(1);
  at::Tensor const expected = at::rand({4});
  at::manual_seed(1);
  Batch batch{images({4, 3, 12, 12}, 1, true), at::zeros({4}, at::kLong)};
  Augment const augment{RandomResizedCrop{.height = 8, .width = 8},
                        RandomFlip{},
                        ToFloat{},
                        Mosaic{.classes = 2},
                        MixUp{.classes = 2},
                        CutMix{.classes = 2}};
  static_cast<void>(augment(batch, keys_of(4)));
  CHECK(at::equal(at::rand({4}), expected));
}

TEST_CASE("what mixes images also mixes the targets of a batch") {
  Batch const batch{images({4, 3, 6, 6}, 1, true), at::tensor({0, 1, 2, 0}, at::kLong)};
  Batch const out = Augment{ToFloat{}, MixUp{.classes = 3, .alpha = 1}}(batch, keys_of(4));
  CHECK(out.target.sizes() == at::IntArrayRef({4, 3}));
  CHECK(at::allclose(out.target.sum(1), at::ones({4})));
  // Without targets Mosaic takes the images alone.
  CHECK(Augment{Mosaic{}}(batch.data, keys_of(4)).sizes() == batch.data.sizes());
}

TEST_CASE("without random transforms it needs no keys") {
  Augment const augment{ResizeShorter{.size = 8}, CenterCrop{6, 6}, Normalize{}};
  at::Tensor const all = images({2, 3, 10, 12}, 1, true);
  CHECK(at::equal(augment(all), augment(all, keys_of(2))));
  CHECK(at::equal(augment(all[1]), augment(all)[1]));
}

TEST_CASE("it is the function of a batch in CollateThen, which stacks first") {
  std::vector<Sample> samples;
  at::Tensor const all = images({3, 3, 6, 6}, 1, true);
  for (std::int64_t b = 0; b < 3; ++b) samples.push_back({all[b], b});
  auto const keys = keys_of(3, 10);
  CollateThen const collate{Stack{}, Augment{RandomFlip{}, ToFloat{}, CutMix{.classes = 3}}};
  static_assert(KeyedCollate<decltype(collate), Sample>);
  Batch const out = collate(samples, keys);
  Batch const expected =
      Augment{RandomFlip{}, ToFloat{}, CutMix{.classes = 3}}(Batch{all, at::arange(3)}, keys);
  CHECK(at::equal(out.data, expected.data));
  CHECK(at::equal(out.target, expected.target));
}

template <class A>
concept Told = requires(A const& augment) { augment.identity(); };

struct Inverted {  // a transform of one's own
  at::Tensor operator()(at::Tensor const& images) const { return 255 - images; }
};

TEST_CASE("a cache can tell one Augment from another, if every transform says what it is") {
  auto const text = [](auto const& augment) { return augment.identity(); };
  CHECK(text(Augment{Resize{8, 8}}) == text(Augment{Resize{8, 8}}));
  CHECK(text(Augment{Resize{8, 8}}) != text(Augment{Resize{8, 9}}));
  CHECK(text(Augment{Resize{8, 8}, ToFloat{}}) != text(Augment{ToFloat{}, Resize{8, 8}}));
  CHECK(text(Augment{Normalize{}}) != text(Augment{Normalize{.mean = {0.5, 0.5, 0.5}}}));
  static_assert(Told<Augment<RandomCrop, RandomResizedCrop, RandomFlip, ColorJitter, MixUp, CutMix,
                             Mosaic, CenterCrop, ResizeShorter>>);
  static_assert(!Told<Augment<Inverted>>);
  CHECK(at::equal(Augment{Inverted{}}(at::zeros({3, 2, 2}, at::kByte)),
                  at::full({3, 2, 2}, 255, at::kByte)));
}

}  // namespace frugal_test::image_augment
