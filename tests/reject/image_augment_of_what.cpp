// SPDX-License-Identifier: Apache-2.0
// needs: torch
// expect: frugal: Augment has something that is no transform of these images. Give it `images(images)` or `images(images, keys)`, const; `batch(Batch, keys)` works where a Batch is augmented.
#include <frugal/data/image/augment.hpp>
#include <frugal/data/image/color.hpp>

using namespace frugal;

inline at::Tensor good(at::Tensor const& images) { return Augment{Normalize{}}(images); }
#ifdef FRUGAL_REJECT
struct Counted {  // not const: threads would share the count
  int count = 0;
  at::Tensor operator()(at::Tensor const& images) { return ++count, images; }
};
inline at::Tensor bad(at::Tensor const& images) { return Augment{Counted{}}(images); }
#endif
