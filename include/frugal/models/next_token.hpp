// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ATen.h>

#include <string>
#include <utility>

#include <frugal/core/run/forward_batch.hpp>
#include <frugal/core/run/objective.hpp>
#include <frugal/core/source/batch.hpp>
#include <frugal/error.hpp>

namespace frugal::models {

/// The objective of a language model: CrossEntropy of its logits [B, T, V] and the token that follows
/// each, [B, T]. CrossEntropy alone takes classes in the second dimension, and would take T for them.
/// Labels of -100 are ignored. Metrics get the logits as [B, V, T].
///
///     Trainer trainer{net, NextToken{}, Settings{}, Optimize<AdamW>{}};
struct NextToken {
  CrossEntropy loss{};

  template <class Module, class B>
  Loss operator()(Module& module, B const& batch) const {
    Turned<Module, B> turned{module};
    return loss(turned, batch);
  }

 private:
  template <class Module, class B>
  struct Turned {
    Module& module;

    at::Tensor forward_batch(B const& batch) {
      at::Tensor const logits = frugal::forward_batch(module, batch);
      if (logits.dim() == 3) return logits.transpose(1, 2);
      throw ShapeError({.what = "logits are of shape " + detail::shape_text(logits),
                        .where = "NextToken",
                        .why = "those of a language model are [B, T, V]",
                        .fix = "Use CrossEntropy for logits of another kind."});
    }
  };
};

}  // namespace frugal::models
