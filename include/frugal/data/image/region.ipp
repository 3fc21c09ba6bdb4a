// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/data/image/region.hpp>

#include <frugal/inline.hpp>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <utility>

namespace frugal::detail {

FRUGAL_INLINE std::vector<PixelRun> polygon_runs(std::span<double const> xy, std::uint32_t height,
                                                 std::uint32_t width) {
  constexpr double scale = 5;  // points of the grid per pixel
  std::vector<std::uint64_t> crossings;
  auto const h = static_cast<double>(height), w = static_cast<double>(width);
  // The outline steps from one point of the grid to the next.
  auto const step = [&](int from_u, int from_v, int u, int v) {
    if (u == from_u) return;
    double const column = ((u < from_u ? u : u - 1) + .5) / scale - .5;
    if (std::floor(column) != column || column < 0 || column > w - 1) return;
    double const row = (std::min(v, from_v) + .5) / scale - .5;
    crossings.push_back(static_cast<std::uint64_t>(column) * height +
                        static_cast<std::uint64_t>(std::ceil(row < 0 ? 0 : (row > h ? h : row))));
  };
  auto const on_grid = [&](double x) { return static_cast<int>(scale * x + .5); };
  std::size_t const vertices = xy.size() / 2;
  bool first = true;
  int u = 0, v = 0;
  auto const draw = [&](int next_u, int next_v) {
    if (!first) step(u, v, next_u, next_v);
    first = false;
    u = next_u;
    v = next_v;
  };
  for (std::size_t i = 0; i < vertices; ++i) {
    std::size_t const to = i + 1 == vertices ? 0 : i + 1;
    int xs = on_grid(xy[2 * i]), ys = on_grid(xy[2 * i + 1]);
    int xe = on_grid(xy[2 * to]), ye = on_grid(xy[2 * to + 1]);
    int const dx = std::abs(xe - xs), dy = std::abs(ye - ys);
    bool const by_columns = dx >= dy;
    // Both directions give the same points: a line is drawn from its lesser end.
    bool const turned = by_columns ? xs > xe : ys > ye;
    if (turned) {
      std::swap(xs, xe);
      std::swap(ys, ye);
    }
    int const steps = std::max(dx, dy);
    double const slope =
        steps == 0 ? 0 : (by_columns ? double(ye - ys) / dx : double(xe - xs) / dy);
    for (int d = 0; d <= steps; ++d) {
      int const t = turned ? steps - d : d;
      if (by_columns) {
        draw(t + xs, static_cast<int>(ys + slope * t + .5));
      } else {
        draw(static_cast<int>(xs + slope * t + .5), t + ys);
      }
    }
  }
  std::sort(crossings.begin(), crossings.end());
  if (crossings.size() % 2 != 0) crossings.push_back(std::uint64_t{height} * width);
  std::vector<PixelRun> runs;
  for (std::size_t i = 0; i < crossings.size(); i += 2) {
    if (crossings[i] != crossings[i + 1]) runs.push_back({crossings[i], crossings[i + 1]});
  }
  return runs;
}

FRUGAL_INLINE std::vector<PixelRun> counted_runs(std::span<std::uint32_t const> counts) {
  std::vector<PixelRun> runs;
  std::uint64_t at = 0;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    if (i % 2 != 0 && counts[i] != 0) runs.push_back({at, at + counts[i]});
    at += counts[i];
  }
  return runs;
}

FRUGAL_INLINE std::optional<std::vector<std::uint32_t>> decoded_counts(std::string_view text) {
  std::vector<std::uint32_t> counts;
  constexpr std::uint32_t most_digits = 7;  // of five bits each: more than a length has
  for (std::size_t i = 0; i < text.size();) {
    std::int64_t value = 0;
    std::uint32_t digits = 0;
    for (bool more = true; more; ++i) {
      if (i == text.size() || digits == most_digits) return std::nullopt;
      int const six = static_cast<unsigned char>(text[i]) - '0';
      if (six < 0 || six > 63) return std::nullopt;
      value |= std::int64_t{six & 0x1f} << (5 * digits++);
      more = (six & 0x20) != 0;
      if (!more && (six & 0x10) != 0) value -= std::int64_t{1} << (5 * digits);
    }
    if (counts.size() > 2) value += counts[counts.size() - 2];
    if (value < 0 || value > std::numeric_limits<std::uint32_t>::max()) return std::nullopt;
    counts.push_back(static_cast<std::uint32_t>(value));
  }
  return counts;
}

FRUGAL_INLINE void paint(std::span<PixelRun const> runs, std::int64_t label, std::int64_t ignored,
                         std::uint32_t height, std::uint32_t width,
                         std::span<std::int64_t> mask_HW) {
  for (PixelRun const& run : runs) {
    for (std::uint64_t i = run.begin; i < run.end; ++i) {
      std::int64_t& pixel = mask_HW[(i % height) * width + i / height];
      pixel = pixel == 0 || pixel == label ? label : ignored;
    }
  }
}

}  // namespace frugal::detail
