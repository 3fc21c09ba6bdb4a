// SPDX-License-Identifier: Apache-2.0
// needs: torch
// expect: frugal: a curriculum's pace of 0 epochs leaves nothing out. Write LinearPace<1> or more, or train without Curriculum.
#include <frugal/policy/curriculum.hpp>
#include <frugal/policy/early_stop.hpp>
#include <frugal/policy/importance.hpp>
#include <frugal/policy/optimize.hpp>
#include <frugal/policy/validate.hpp>
#include <frugal/trainer.hpp>

#include <torch/nn/modules/linear.h>

#include <cstdint>
#include <utility>

using namespace frugal;

struct Rows {
  std::uint64_t size() const { return 4; }
  std::pair<at::Tensor, at::Tensor> get(std::uint64_t) const { return {}; }
};
struct Size {
  double operator()(std::pair<at::Tensor, at::Tensor> const&) const { return 0; }
};
using EasyFirst = Curriculum<By<Size>, LinearPace<5>>;

Curriculum<By<Size>, LinearPace<1>> good;
#ifdef FRUGAL_REJECT
Curriculum<By<Size>, LinearPace<0>> bad;
#endif
