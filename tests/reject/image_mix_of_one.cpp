// SPDX-License-Identifier: Apache-2.0
// needs: torch
// expect: frugal: MixUp, CutMix and Mosaic mix the images of a batch, and a sample alone has no other. Apply them to batches: CollateThen{Stack{}, Augment{MixUp{.classes = 10}}} as the collate function of a loader.
#include <frugal/data/image/augment.hpp>
#include <frugal/data/image/color.hpp>
#include <frugal/data/image/mix.hpp>

#include <span>

using namespace frugal;

inline Batch good(Batch const& batch, std::span<SampleKey const> keys) {
  return Augment{ToFloat{}, MixUp{.classes = 10}}(batch, keys);
}
#ifdef FRUGAL_REJECT
inline at::Tensor bad(at::Tensor const& image, SampleKey const& key) {
  return Augment{ToFloat{}, MixUp{.classes = 10}}(image, key);
}
#endif
