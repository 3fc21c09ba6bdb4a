// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/base/file.hpp>
#include <frugal/base/html_text.hpp>
#include <frugal/data/curate/curation.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

namespace frugal {

/// What a page shows of the samples; either may be left out.
struct CurationPage {
  std::function<std::string(std::uint64_t)> name{};  ///< what it calls a sample
  std::function<std::string(std::uint64_t)> text{};  ///< of which it shows the beginning
  std::size_t rows = 500;     ///< removed samples shown, spread evenly over all of them
  std::size_t excerpt = 600;  ///< bytes of a text
};

namespace detail {

inline constexpr std::string_view page_style = R"(
:root { color-scheme: light dark; --line: #8884; --soft: #8881; --bar: #3b7dd8; }
body { font: 15px/1.45 system-ui, sans-serif; max-width: 72rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.1rem; margin-top: 2rem; }
dl { display: grid; grid-template-columns: repeat(auto-fit, minmax(10rem, 1fr)); gap: .8rem; }
dl div { background: var(--soft); border-radius: .4rem; padding: .6rem .8rem; }
dt { font-size: .8rem; opacity: .75; } dd { margin: 0; font-size: 1.3rem; font-variant-numeric: tabular-nums; }
.bars td { padding: .1rem .5rem; } .bars i { display: block; height: .8rem; background: var(--bar); min-width: 1px; }
article { border-top: 1px solid var(--line); padding: .8rem 0; }
article h3 { font-size: .95rem; margin: 0 0 .4rem; font-weight: 600; }
.two { display: grid; grid-template-columns: 1fr 1fr; gap: 1rem; }
@media (max-width: 45rem) { .two { grid-template-columns: 1fr; } }
pre { white-space: pre-wrap; overflow-wrap: anywhere; background: var(--soft); padding: .5rem; border-radius: .4rem; margin: .3rem 0; font-size: .85rem; }
small { opacity: .75; }
)";

class PageWriter {
 public:
  PageWriter(Curation const& curation, CurationPage const& page)
      : curation_(curation), page_(page) {}

  std::string html() {
    std::string const title =
        curation_.name.empty() ? "Curation" : "Curation of " + as_html(curation_.name);
    // Nothing may be fetched or run, whatever a sample contains.
    out_ =
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src "
        "'unsafe-inline'\">\n<meta name=\"viewport\" content=\"width=device-width\">\n<title>" +
        title + "</title>\n<style>" + std::string(page_style) + "</style></head><body>\n<h1>" +
        title + "</h1>\n<p>" + as_html(curation_.method) + ".</p>\n";
    figures();
    similarities();
    rows();
    return out_ + "</body></html>\n";
  }

 private:
  void figure(std::string const& name, std::string const& value) {
    out_ += "<div><dt>" + name + "</dt><dd>" + value + "</dd></div>\n";
  }

  void figures() {
    std::uint64_t const removed = curation_.removed.size(), bytes = curation_.removed_bytes();
    out_ += "<dl>\n";
    figure("samples", grouped(curation_.samples));
    figure("kept", grouped(curation_.kept()));
    figure("removed",
           grouped(removed) + " <small>" + percent_of(removed, curation_.samples) + "</small>");
    figure("of these, copies", grouped(curation_.copies()));
    figure("bytes saved",
           grouped(bytes) + " <small>" + percent_of(bytes, curation_.bytes) + "</small>");
    if (auto const dollars = curation_.dollars_per_epoch()) {
      figure("saved per epoch", "$" + fixed(*dollars, *dollars < 1 ? 4 : 2));
    }
    out_ += "</dl>\n";
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
    out_ += "<h2>Similarity with the twin</h2>\n<table class=\"bars\">\n";
    for (std::size_t i = counts.size(); i-- > 0;) {
      if (counts[i] == 0) continue;
      double const from = static_cast<double>(i) / 20;
      double const width = 24 * static_cast<double>(counts[i]) / static_cast<double>(most);
      out_ += "<tr><td>" + (i == 20 ? "1" : fixed(from, 2) + " to " + fixed(from + 0.05, 2)) +
              "</td><td>" + grouped(counts[i]) + "</td><td><i style=\"width: " + fixed(width, 2) +
              "rem\"></i></td></tr>\n";
    }
    out_ += "</table>\n";
  }

  void rows() {
    std::size_t const all = curation_.removed.size(), shown = std::min(all, page_.rows);
    if (shown == 0) return;
    out_ += "<h2>Removed samples</h2>\n";
    if (shown < all) {
      out_ += "<p>" + grouped(shown) + " of " + grouped(all) +
              ", spread evenly. The JSONL report lists all.</p>\n";
    }
    for (std::size_t i = 0; i < shown; ++i) row(curation_.removed[i * all / shown]);
  }

  void row(Removed const& each) {
    out_ += "<article><h3>" + name_of(each.index) + " <small>" +
            (each.copy ? "copy of" : "similarity " + fixed(each.similarity, 3) + " with") +
            "</small> " + name_of(each.twin);
    if (each.through != each.twin) {
      out_ += " <small>through</small> " + name_of(each.through) + " <small>(" +
              fixed(each.through_similarity, 3) + ")</small>";
    }
    out_ += "</h3>\n";
    if (page_.text) {
      out_ += "<div class=\"two\"><div><small>removed</small>" + excerpt(each.index) +
              "</div><div><small>kept</small>" + excerpt(each.twin) + "</div></div>\n";
    }
    out_ += "</article>\n";
  }

  std::string name_of(std::uint64_t index) const {
    return as_html(page_.name ? page_.name(index) : "sample " + std::to_string(index));
  }
  std::string excerpt(std::uint64_t index) const {
    return "<pre>" + as_html(beginning(page_.text(index), page_.excerpt)) + "</pre>";
  }

  Curation const& curation_;
  CurationPage const& page_;
  std::string out_;
};

}  // namespace detail

/// The report as one HTML page that needs no other file: figures, a histogram of similarities, and
/// removed samples next to their twins. Texts are escaped, and the page runs no script.
inline std::string curation_html(Curation const& curation, CurationPage const& page = {}) {
  return detail::PageWriter(curation, page).html();
}

/// Writes the page, replacing a file of that name. StoreError if that fails.
inline void write_curation_page(std::filesystem::path const& path, Curation const& curation,
                                CurationPage const& page = {}) {
  detail::write_whole_file(path, curation_html(curation, page), detail::Durable::yes);
}

}  // namespace frugal
