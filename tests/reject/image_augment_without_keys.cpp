// SPDX-License-Identifier: Apache-2.0
// needs: torch
// expect: frugal: this Augment has random transforms, which draw by sample. Give it the keys: as a loader's collate function, CollateThen{Stack{}, Augment{...}}, or around a set of samples, Transformed(set, Augment{...}).
#include <frugal/data/image/augment.hpp>
#include <frugal/data/image/color.hpp>
#include <frugal/data/image/geometry.hpp>

using namespace frugal;

inline at::Tensor good(at::Tensor const& images) { return Augment{Normalize{}}(images); }
#ifdef FRUGAL_REJECT
inline at::Tensor bad(at::Tensor const& images) {
  return Augment{RandomFlip{}, Normalize{}}(images);
}
#endif
