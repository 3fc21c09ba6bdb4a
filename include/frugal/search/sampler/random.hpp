// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include <frugal/search/sampler/sampler.hpp>
#include <frugal/search/trials/candidate.hpp>
#include <frugal/search/trials/history.hpp>

namespace frugal {

/// Random search: each recipe as likely, and each value of its settings as its distribution has it. It looks
/// at no history, so it needs no trial to be over, and any number of workers can ask at the same time.
///
/// Source  Bergstra and Bengio, "Random search for hyper-parameter optimization" (JMLR 13, 2012).
struct RandomSampler {
  static constexpr std::string_view name = "random";
  static constexpr bool learns = false;

  Candidate suggest(SearchDomain const& domain, SearchHistory const&, std::size_t trial,
                    std::uint64_t seed) const;

  void require() const {}
  /// For the journal: searches whose samplers differ are not the same.
  std::string text() const;
  std::size_t generation() const { return 0; }

  friend bool operator==(RandomSampler const&, RandomSampler const&) = default;
};

static_assert(SearchSampler<RandomSampler>);

}  // namespace frugal

#ifndef FRUGAL_COMPILED
#include <frugal/search/sampler/random.ipp>
#endif
