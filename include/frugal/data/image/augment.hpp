// SPDX-License-Identifier: Apache-2.0
// Shapes: B images, C channels, H rows, W columns.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <ATen/ATen.h>

#include <frugal/core/source/batch.hpp>
#include <frugal/core/source/fields.hpp>
#include <frugal/core/source/sample_set.hpp>
#include <frugal/data/sampling/permutation.hpp>

namespace frugal {

namespace detail {

template <class T>
concept Plain = std::is_invocable_r_v<at::Tensor, T const&, at::Tensor const&>;
template <class T>
concept ByKeys = requires(T const& transform, at::Tensor images, std::span<SampleKey const> keys) {
  { transform(images, keys) } -> std::convertible_to<at::Tensor>;
};
template <class T>
concept ForBatches = requires(T const& transform, Batch batch, std::span<SampleKey const> keys) {
  { transform(std::move(batch), keys) } -> std::same_as<Batch>;
};
template <class T>
concept MixesSamples = T::mixes_samples;
/// Annotations move with the image: AnnotatedImage and its batches.
template <class X>
concept Annotated = static_cast<bool>(X::annotated);
template <class T, class X>
concept MovesByKey = Annotated<X> && std::is_invocable_r_v<X, T const&, X, SampleKey const&>;
template <class T, class X>
concept MovesPlainly = Annotated<X> && std::is_invocable_r_v<X, T const&, X>;
/// It changes the values of pixels, and moves none.
template <class T>
concept KeepsGeometry = static_cast<bool>(T::keeps_geometry);
template <class T>
concept SaysIdentity = requires(T const& transform) {
  { transform.identity() } -> std::convertible_to<std::string>;
};
template <class T>
concept Draws = ByKeys<T> || ForBatches<T>;

/// A tensor, or an example, a batch or the like with a tensor `data`.
template <class X>
concept HoldsImages =
    IsTensor<X> ||
    (DataMember<X> && requires(X& x) { requires IsTensor<std::remove_cvref_t<decltype(x.data)>>; });

}  // namespace detail

/// Transforms of images, one after the other. What an image becomes is a function of the image and
/// of its key; where transforms mix images, also of the others in the batch.
///
///     augment(batch, keys)   images [B, C, H, W], or a Batch of them: in CollateThen
///     augment(sample, key)   an image [C, H, W], or a sample with one as `data`: in Transformed
///     augment(images)        either, where no transform is random
///
/// Annotations of an AnnotatedImage move with it; its pixels are those of the same image without them.
/// Transforms that move pixels do not compile for batches of them.
///
/// A transform of your own is `images(images)`, `images(images, keys)`, or `batch(Batch, keys)`;
/// with `static constexpr bool mixes_samples = true` if it needs more than one image. A second
/// transform of one kind draws other numbers than the first, because of its place.
template <class... Transforms>
class Augment {
 public:
  explicit Augment(Transforms... transforms) : transforms_(std::move(transforms)...) {}

  /// Whole batches: `keys` are those of the rows.
  template <detail::HoldsImages X>
  X operator()(X batch, std::span<SampleKey const> keys) const {
    return through(std::move(batch), keys, std::index_sequence_for<Transforms...>{});
  }

  /// One sample.
  template <detail::HoldsImages X>
  X operator()(X sample, SampleKey const& key) const {
    constexpr bool alone_too = (!detail::MixesSamples<Transforms> && ...);
    static_assert(
        alone_too,
        "frugal: MixUp, CutMix and Mosaic mix the images of a batch, and a sample alone has "
        "no other. Apply them to batches: CollateThen{Stack{}, Augment{MixUp{.classes = "
        "10}}} as the collate function of a loader.");
    if constexpr (alone_too) {
      return alone(std::move(sample), std::span(&key, 1));
    } else {
      return sample;
    }
  }

  /// One sample or a whole batch, without random transforms.
  template <detail::HoldsImages X>
  X operator()(X images) const {
    static_assert(((!detail::Draws<Transforms> && !detail::MovesByKey<Transforms, X>) && ...),
                  "frugal: this Augment has random transforms, which draw by sample. Give it the "
                  "keys: as a loader's collate function, CollateThen{Stack{}, Augment{...}}, or "
                  "around a set of samples, Transformed(set, Augment{...}).");
    return through(std::move(images), {}, std::index_sequence_for<Transforms...>{});
  }

  /// What it does, for caches; exists where every transform says it.
  std::string identity() const
    requires(detail::SaysIdentity<Transforms> && ...)
  {
    return std::apply([](auto const&... each) { return ("Augment/1" + ... + each.identity()); },
                      transforms_);
  }

 private:
  template <class X, std::size_t... I>
  X through(X x, std::span<SampleKey const> keys, std::index_sequence<I...>) const {
    ((x = step<I>(std::move(x), keys)), ...);
    return x;
  }

  template <std::size_t I, class X>
  X step(X x, std::span<SampleKey const> keys) const {
    auto const& transform = std::get<I>(transforms_);
    using T = std::remove_cvref_t<decltype(transform)>;
    if constexpr (std::same_as<X, Batch> && detail::ForBatches<T>) {
      return transform(std::move(x), keys_at<I>(keys));
    } else if constexpr (detail::MovesByKey<T, X>) {
      return transform(std::move(x), keys_at<I>(keys)[0]);
    } else if constexpr (detail::MovesPlainly<T, X>) {
      return transform(std::move(x));
    } else if constexpr (detail::Annotated<X>) {
      static_assert(
          detail::KeepsGeometry<T>,
          "frugal: Augment has a transform that would move the pixels of annotated images "
          "and not their boxes, masks and keypoints. Crops, flips and sizes go into "
          "Transformed(set, Augment{...}), before the images become a batch. Give a "
          "transform of your own `sample(AnnotatedImage)` or `sample(AnnotatedImage, "
          "SampleKey)`; or `static constexpr bool keeps_geometry = true`, if it moves no "
          "pixel.");
      if constexpr (detail::KeepsGeometry<T>) {
        bool const one = x.data.dim() == 3;
        at::Tensor const changed = step<I>(one ? x.data.unsqueeze(0) : x.data, keys);
        x.data = one ? changed.squeeze(0) : changed;
      }
      return x;
    } else if constexpr (!detail::IsTensor<X>) {
      x.data = step<I>(at::Tensor(std::move(x.data)), keys);
      return x;
    } else if constexpr (detail::ByKeys<T>) {
      return transform(x, keys_at<I>(keys));
    } else if constexpr (detail::Plain<T>) {
      return transform(x);
    } else {
      static_assert(detail::Plain<T>,
                    "frugal: Augment has something that is no transform of these images. Give it "
                    "`images(images)` or `images(images, keys)`, const; `batch(Batch, keys)` works "
                    "where a Batch is augmented.");
      return x;
    }
  }

  template <class X>
  X alone(X sample, std::span<SampleKey const> key) const {
    if constexpr (detail::Annotated<X>) {
      return through(std::move(sample), key, std::index_sequence_for<Transforms...>{});
    } else if constexpr (detail::IsTensor<X>) {
      return through(sample.unsqueeze(0), key, std::index_sequence_for<Transforms...>{}).squeeze(0);
    } else {
      sample.data = alone(at::Tensor(std::move(sample.data)), key);
      return sample;
    }
  }

  /// The first transform draws as it would by itself. Later ones have keys of another seed.
  template <std::size_t I>
  static auto keys_at(std::span<SampleKey const> keys) {
    if constexpr (I == 0) {
      return keys;
    } else {
      std::vector<SampleKey> mine(keys.begin(), keys.end());
      for (SampleKey& key : mine) key.seed = detail::mix64(key.seed + I * 0x9e3779b97f4a7c15U);
      return mine;
    }
  }

  std::tuple<Transforms...> transforms_;
};

}  // namespace frugal
