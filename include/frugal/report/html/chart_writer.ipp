// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/report/html/chart_writer.hpp>

#include <frugal/base/html_text.hpp>
#include <frugal/inline.hpp>
#include <frugal/report/html/chart_values.hpp>
#include <frugal/report/html/plot.hpp>
#include <frugal/report/html/quantity.hpp>

namespace frugal::html {

FRUGAL_INLINE void ChartWriter::write() const {
  std::string const title = detail::as_html(chart_.title);
  out_ += "<figure class=\"chart\" id=\"" + id_ + "\">\n<figcaption><h3>" + title + "</h3>";
  if (!chart_.note.empty()) {
    out_ += "<span class=\"note\">" + detail::as_html(chart_.note) + "</span>";
  }
  if (is_logarithmic(chart_)) out_ += "<span class=\"note\">logarithmic</span>";
  out_ += "</figcaption>\n";
  legend();
  for (Axis const axis : chart_.axes) Plot(out_, chart_, id_).write(axis);
  // The script shows these. A screen reader hears the slider's text. All outputs change with the
  // axis: as live regions, which they are by default, each would be read out.
  out_ +=
      "<div class=\"probe\" hidden><input type=\"range\" min=\"0\" max=\"0\" value=\"0\" "
      "aria-label=\"" +
      title + ": point to read\"><output aria-live=\"off\"></output></div>\n";
  ChartValues const values(out_, chart_);
  values.table();
  values.json();
  out_ += "</figure>\n";
}

FRUGAL_INLINE void ChartWriter::legend() const {
  if (chart_.lines.size() < 2) {
    if (!chart_.lines.empty() && !chart_.lines[0].points.empty()) {
      out_ += "<p class=\"legend\">last <b>" +
              value_text(chart_.lines[0].points.back().value, chart_.unit) + "</b></p>\n";
    }
    return;
  }
  out_ += "<ul class=\"legend\">";
  for (ChartLine const& line : chart_.lines) {
    out_ +=
        "<li><svg class=\"key\" viewBox=\"0 0 22 6\" aria-hidden=\"true\"><path d=\"M0 3H22\" "
        "class=\"" +
        class_of(line) + "\"/></svg>" + detail::as_html(line.name) + " <b>" +
        (line.points.empty() ? std::string(no_value)
                             : value_text(line.points.back().value, chart_.unit)) +
        "</b></li>";
  }
  out_ += "</ul>\n";
}

}  // namespace frugal::html
