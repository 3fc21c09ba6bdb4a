// SPDX-License-Identifier: Apache-2.0
// needs: torch
// expect: frugal: Curriculum<...> begins with what makes a sample hard: Curriculum<By<Length>>, where Length is a type of yours with `double operator()(sample) const`.
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

EasyFirst good;
#ifdef FRUGAL_REJECT
Curriculum<Size> bad;
#endif
