// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/base/file.hpp>
#include <frugal/base/html_page.hpp>
#include <frugal/base/number_text.hpp>
#include <frugal/base/utf8.hpp>
#include <frugal/data/curate/curation.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace frugal {

/// What a page shows of the samples; either may be left out.
struct CurationPage {
  std::function<std::string(std::uint64_t)> name{};  ///< what it calls a sample
  std::function<std::string(std::uint64_t)> text{};  ///< of which it shows the beginning
  std::size_t rows = 500;     ///< removed samples shown, spread evenly over all of them
  std::size_t excerpt = 600;  ///< bytes of a text
};

namespace detail {

class CurationWriter {
 public:
  CurationWriter(Curation const& curation, CurationPage const& settings)
      : curation_(curation), settings_(settings) {}

  std::string html() && {
    figures();
    similarities();
    removed();
    return std::move(page_).html(
        curation_.name.empty() ? "Curation" : "Curation of " + curation_.name,
        curation_.method + ".");
  }

 private:
  void figures() {
    std::uint64_t const removed = curation_.removed.size(), bytes = curation_.removed_bytes();
    std::vector<html::Figure> figures{
        {"samples", grouped(curation_.samples)},
        {"kept", grouped(curation_.kept())},
        {"removed", grouped(removed), percent_of(removed, curation_.samples)},
        {"of these, copies", grouped(curation_.copies())},
        {"bytes saved", grouped(bytes), percent_of(bytes, curation_.bytes)}};
    if (auto const dollars = curation_.dollars_per_epoch()) {
      figures.push_back({"saved per epoch", "$" + fixed(*dollars, *dollars < 1 ? 4 : 2)});
    }
    page_.figures(figures);
  }

  /// How many were removed at which similarity with their twin.
  void similarities() {
    if (curation_.removed.empty()) return;
    std::array<std::uint64_t, 21> counts{};  // steps of 0.05, and 1 by itself
    for (Removed const& each : curation_.removed) {
      double const inside = std::clamp(each.similarity, 0.0, 1.0);
      ++counts[static_cast<std::size_t>(inside * 20 + 1e-9)];
    }
    std::uint64_t const most = *std::max_element(counts.begin(), counts.end());
    std::vector<html::Bar> bars;
    for (std::size_t i = counts.size(); i-- > 0;) {
      if (counts[i] == 0) continue;
      double const from = static_cast<double>(i) / 20;
      bars.push_back({.name = i == 20 ? "1" : fixed(from, 2) + " to " + fixed(from + 0.05, 2),
                      .value = grouped(counts[i]),
                      .to = static_cast<double>(counts[i]) / static_cast<double>(most)});
    }
    page_.section("similarities", "Similarity with the twin");
    page_.bars(bars);
  }

  void removed() {
    std::size_t const all = curation_.removed.size(), shown = std::min(all, settings_.rows);
    if (shown == 0) return;
    page_.section("removed", "Removed samples");
    if (shown < all) {
      page_.text(grouped(shown) + " of " + grouped(all) +
                 ", spread evenly. The JSONL report lists all.");
    }
    std::vector<html::Twins> twins;
    for (std::size_t i = 0; i < shown; ++i) {
      Removed const& each = curation_.removed[i * all / shown];
      html::Twins& made = twins.emplace_back(html::Twins{
          .removed = name_of(each.index),
          .how = each.copy ? "copy of" : "similarity " + fixed(each.similarity, 3) + " with",
          .kept = name_of(each.twin)});
      if (each.through != each.twin) {
        made.through = name_of(each.through) + " (" + fixed(each.through_similarity, 3) + ")";
      }
      if (settings_.text) made.texts = {excerpt(each.index), excerpt(each.twin)};
    }
    page_.twins(twins);
  }

  std::string name_of(std::uint64_t index) const {
    return settings_.name ? settings_.name(index) : "sample " + std::to_string(index);
  }
  std::string excerpt(std::uint64_t index) const {
    return beginning(settings_.text(index), settings_.excerpt);
  }

  Curation const& curation_;
  CurationPage const& settings_;
  html::Page page_{};
};

}  // namespace detail

/// The report as one HTML page that needs no other file: figures, a histogram of similarities, and
/// removed samples next to their twins. Whatever a sample contains, the page runs its own script
/// alone.
inline std::string curation_html(Curation const& curation, CurationPage const& page = {}) {
  return detail::CurationWriter(curation, page).html();
}

/// Writes the page, replacing a file of that name. StoreError if that fails.
inline void write_curation_page(std::filesystem::path const& path, Curation const& curation,
                                CurationPage const& page = {}) {
  detail::write_whole_file(path, curation_html(curation, page), detail::Durable::yes);
}

}  // namespace frugal
