// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace frugal::html {

/// The page's script: a slider under each chart reads its points, by keyboard, mouse or touch.
/// Without it the pictures, the choice of the axis (which is CSS) and the tables remain.
inline constexpr std::string_view script = R"js(
(() => {
"use strict";
const short = v => {
  const a = Math.abs(v);
  if (a === 0) return "0";
  if (a < 1e-3 || a >= 999.95e12) return v.toExponential(2);
  for (const [unit, size] of [["T", 1e12], ["G", 1e9], ["M", 1e6], ["k", 1e3]])
    if (a >= 9999.5 && a >= 0.99995 * size) return +(v / size).toPrecision(4) + unit;
  return String(+v.toPrecision(4));
};
const two = (a, u, b, w) => a + u + (b ? (b < 10 ? " 0" : " ") + b + w : "");
const units = {
  plain: short,
  count: v => Math.round(v).toLocaleString("en-US"),
  percent: v => short(Math.round(1000 * v) / 10) + "%",
  dollars: v => (v < 0 ? "\u2212$" : "$") + Math.abs(v).toFixed(Math.abs(v) >= 1 || v === 0 ? 2 : Math.abs(v) >= 0.01 ? 3 : 5),
  bytes: v => {
    let i = 0, a = Math.abs(v);
    for (; a >= 1024 && i < 4; ++i) a /= 1024;
    return (v < 0 ? "\u2212" : "") + a.toFixed(i ? 1 : 0) + " " + ["B", "KiB", "MiB", "GiB", "TiB"][i];
  },
  seconds: v => {
    const s = Math.round(v);
    if (v < 0.9995) return v === 0 ? "0 s" : short(1e3 * v) + " ms";
    if (v < 59.95) return short(Math.round(10 * v) / 10) + " s";
    if (s < 3600) return two(Math.floor(s / 60), " min", s % 60, " s");
    if (s < 86400) return two(Math.floor(s / 3600), " h", Math.floor(s % 3600 / 60), " min");
    return two(Math.floor(s / 86400), " d", Math.floor(s % 86400 / 3600), " h");
  }
};
const axisUnit = { step: "count", seconds: "seconds", dollars: "dollars" };
const axisNow = () => (document.querySelector(".axes input:checked") || { value: "step" }).value;
const svg = (name, attributes) => {
  const made = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const key in attributes) made.setAttribute(key, attributes[key]);
  return made;
};
for (const figure of document.querySelectorAll("figure.chart")) {
  const block = figure.querySelector("script[type='application/json']");
  if (!block) continue;
  const data = JSON.parse(block.textContent);
  const slider = figure.querySelector(".probe input"), out = figure.querySelector("output");
  const longest = data.lines.reduce((a, b) => b.value.length > a.value.length ? b : a, data.lines[0]);
  if (!longest || longest.value.length < 2) continue;
  const known = (line, axis) => line[axis] ? line[axis].filter(v => v !== null).length : 0;
  const guide = axis => known(longest, axis) ? longest : data.lines.reduce((a, b) => known(b, axis) > known(a, axis) ? b : a);
  slider.max = longest.value.length - 1;
  slider.value = slider.max;
  figure.querySelector(".probe").hidden = false;
  const show = drawn => {
    const axis = longest[axisNow()] ? axisNow() : Object.keys(axisUnit).find(each => longest[each]);
    const points = guide(axis)[axis], x = points[Math.round(slider.value / slider.max * (points.length - 1))];
    for (const old of figure.querySelectorAll(".reading")) old.remove();
    if (x === null) { out.textContent = "nothing known here"; return; }
    const plot = figure.querySelector(".by-" + axis);
    const [x0, x1, left, right] = plot.dataset.x.split(" ").map(Number);
    const [y0, y1, floor, top, log] = plot.dataset.y.split(" ").map(Number);
    const atX = v => left + (v - x0) / (x1 - x0) * (right - left);
    const atY = v => floor - (log ? Math.log(v / y0) / Math.log(y1 / y0) : (v - y0) / (y1 - y0)) * (floor - top);
    const group = svg("g", { class: "reading" });
    group.append(svg("path", { class: "cross", d: "M" + atX(x) + " " + top + "V" + floor }));
    const parts = [];
    for (const line of data.lines) {
      let best = -1;
      line[axis].forEach((v, i) => { if (v !== null && (best < 0 || Math.abs(v - x) <= Math.abs(line[axis][best] - x))) best = i; });
      if (best < 0) continue;
      parts.push((data.lines.length > 1 ? line.name + " " : "") + units[data.unit](line.value[best]));
      group.append(svg("circle", { class: "dot s" + line.colour, r: 3.5, cx: atX(line[axis][best]), cy: atY(line.value[best]) }));
    }
    if (drawn) plot.append(group);
    const place = axis === "step" ? "step " + units.count(x) : axis === "seconds" ? "after " + units.seconds(x) : "at " + units.dollars(x);
    out.textContent = place + ": " + parts.join(", ");
    slider.setAttribute("aria-valuetext", out.textContent);
  };
  slider.addEventListener("input", () => show(true));
  slider.addEventListener("focus", () => show(true));
  for (const plot of figure.querySelectorAll(".plot")) {
    const move = event => {
      const box = plot.getBoundingClientRect(), axis = plot.dataset.axis;
      const [x0, x1, left, right] = plot.dataset.x.split(" ").map(Number);
      const x = x0 + ((event.clientX - box.left) / box.width * 400 - left) / (right - left) * (x1 - x0);
      const points = guide(axis)[axis] || [];
      let best = -1;
      points.forEach((v, i) => { if (v !== null && (best < 0 || Math.abs(v - x) < Math.abs(points[best] - x))) best = i; });
      if (best < 0) return;
      slider.value = Math.round(best / Math.max(1, points.length - 1) * slider.max);
      show(true);
    };
    plot.addEventListener("pointermove", move);
    plot.addEventListener("pointerdown", move);
  }
  for (const choice of document.querySelectorAll(".axes input")) choice.addEventListener("change", () => show(false));
  show(false);
}
})();
)js";

/// Hash of the script, for the page's content security policy; tests/interop/report.py checks it.
inline constexpr std::string_view script_hash =
    "sha256-sEeFXicL2PWgksOD1mVr6+GAwUH4oQ4unYVdrp+Isf8=";

}  // namespace frugal::html
