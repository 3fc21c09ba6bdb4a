// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/model/cached_teacher.hpp>

#include <frugal/base/hash.hpp>
#include <frugal/data/cache/cache_settings.hpp>
#include <frugal/inline.hpp>

#include <limits>

namespace frugal::detail {

FRUGAL_INLINE void refuse_cut(std::string what, std::string why, std::string fix) {
  throw SettingsError({.what = std::move(what),
                       .where = "TeacherCacheSettings",
                       .why = std::move(why),
                       .fix = std::move(fix)});
}

FRUGAL_INLINE std::map<std::string, at::Tensor> kept_outputs(at::Tensor const& all_BJC,
                                                             TeacherCacheSettings const& settings) {
  auto const stored = [&](at::Tensor const& exact) {
    at::Tensor kept = exact.to(settings.type);
    if (exact.isfinite().equal(kept.isfinite())) return kept.cpu().contiguous();
    throw DataError({.what = "an output of the teacher does not fit the type of the cache",
                     .where = "TeacherCacheSettings::type",
                     .why = std::string(at::toString(settings.type)) + " ends before " +
                            std::to_string(exact.abs().max().item<double>()),
                     .fix = "Set kBFloat16, or kFloat."});
  };
  if (settings.top_k == 0) return {{"teacher", stored(all_BJC)}};
  if (all_BJC.dim() < 3 || settings.top_k >= all_BJC.size(2)) {
    refuse_cut("top_k is " + std::to_string(settings.top_k),
               "the teacher has " + std::to_string(all_BJC.dim() < 3 ? 1 : all_BJC.size(2)) +
                   " classes, and those that are left are one outcome more",
               "Give fewer, or 0 for all of them.");
  }
  at::Tensor const log = at::log_softmax(at_least_float(all_BJC) / settings.temperature, 2);
  auto const [values, classes] = log.topk(settings.top_k, 2);
  at::Tensor const others = log.scatter(2, classes, -std::numeric_limits<double>::infinity())
                                .logsumexp({2}, /*keepdim=*/true);
  return {{"classes", classes.to(at::kInt).cpu().contiguous()},
          {"teacher", at::cat({values, others}, 2).to(settings.type).cpu().contiguous()}};
}

}  // namespace frugal::detail
