// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <iterator>
#include <vector>

namespace frugal::watch {

/// A stretch of time in nanoseconds, from `begin` to before `end`.
struct Span {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;

  std::uint64_t length() const { return end > begin ? end - begin : 0; }
  friend bool operator==(Span const&, Span const&) = default;
};

/// Sets of time: sorted spans that neither overlap nor touch.
using Spans = std::vector<Span>;

/// The union of spans in any order, which may overlap.
Spans merged(Spans spans);

std::uint64_t total(Spans const& spans);

/// The time that is in both of two merged sets.
Spans common(Spans const& a, Spans const& b);

/// The time of the merged set `a` that is not in the merged set `b`.
Spans without(Spans const& a, Spans const& b);

/// Whether a moment is in a merged set.
bool holds(Spans const& spans, std::uint64_t moment);

}  // namespace frugal::watch

#ifndef FRUGAL_COMPILED
#include <frugal/report/profile/spans.ipp>
#endif
