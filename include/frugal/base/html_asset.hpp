// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace frugal::html {

/// The beginning of every page: its style, and the script that draws the page from the JSON that Page (html_page.hpp)
/// writes behind it. All texts of the JSON become text nodes or attributes, so none of them is markup. The policy names
/// the script by its hash, which tests/interop/report.py checks: nothing else runs, and nothing is fetched. Text has a
/// contrast of at least 4.5 with its background, and lines one of 3 (WCAG 2.2, 1.4.3 and 1.4.11), in light and in dark;
/// that script computes both.
///
/// Source  P. Heckbert, "Nice Numbers for Graph Labels", Graphics Gems, 1990: the steps between ticks.
inline constexpr std::string_view page_asset = R"html(<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-7HqI8RLbgzmD7SSVq9Ujofn5TDjqaVMWqusE9YmILcQ='; img-src data:; base-uri 'none'; form-action 'none'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<link rel="icon" href="data:,">
<title>frugal</title>
<style>
:root { color-scheme: light dark; --page: #f5f6f8; --card: #ffffff; --text: #1a1f27; --soft: #57606d;
  --line: #d9dde3; --grid: #e6e9ee; --axis: #7b8491; --mark: #8a6100; --good: #1a7f4b; --bad: #b3261e; --plan: #737c89;
  --s0: #0b5cad; --s1: #b3470b; --s2: #1a7f4b; --s3: #8a3ffc; --s4: #b3261e; --s5: #00707c; --s6: #6b5d00; --s7: #c2187a; }
@media (prefers-color-scheme: dark) { :root { --page: #0f1216; --card: #181c22; --text: #e6e9ee; --soft: #a3acb9;
  --line: #2c333d; --grid: #262c35; --axis: #7f8997; --mark: #e0a83c; --good: #5fd38d; --bad: #ff8f87; --plan: #7f8997;
  --s0: #6cb2ff; --s1: #ffa657; --s2: #5fd38d; --s3: #c9a6ff; --s4: #ff8f87; --s5: #4fd1dc; --s6: #d9c64a; --s7: #ff8cc6; } }
* { box-sizing: border-box; }
body { font: 15px/1.5 system-ui, -apple-system, "Segoe UI", "DejaVu Sans", sans-serif; color: var(--text); background: var(--page);
  margin: 0 auto; max-width: 78rem; padding: 0 1rem 2rem; overflow-wrap: anywhere; }
header { padding: 1.5rem 0 .5rem; }
.brand { margin: 0; font-size: .8rem; letter-spacing: .08em; text-transform: uppercase; color: var(--soft); }
h1 { font-size: 1.6rem; line-height: 1.25; margin: .1rem 0; }
.sub { margin: 0; color: var(--soft); }
h2 { font-size: 1.15rem; margin: 2.2rem 0 .7rem; }
h3 { font-size: .95rem; margin: 0; font-weight: 600; }
p { margin: .4rem 0; }
.note { color: var(--soft); font-size: .85rem; }
.skip { position: absolute; left: -99rem; } .skip:focus { left: 1rem; top: .5rem; background: var(--card); padding: .3rem .6rem; }
:focus-visible { outline: 3px solid var(--s0); outline-offset: 2px; }
.figures { display: grid; grid-template-columns: repeat(auto-fit, minmax(9.5rem, 1fr)); gap: .75rem; margin: 1rem 0; }
.figures div, .chart, .card { background: var(--card); border: 1px solid var(--line); border-radius: .5rem; }
.figures div { padding: .6rem .85rem; } dt { font-size: .8rem; color: var(--soft); }
dd { margin: 0; font-size: 1.3rem; font-weight: 600; font-variant-numeric: tabular-nums; }
dd small { display: block; font-size: .8rem; font-weight: 400; color: var(--soft); }
.axes { border: 0; margin: 0 0 .8rem; padding: 0; display: flex; flex-wrap: wrap; gap: .3rem 1.1rem; align-items: center; }
.axes legend { float: left; padding: 0; margin-right: 1rem; color: var(--soft); } .axes label { display: inline-flex; gap: .35rem; align-items: center; min-height: 24px; cursor: pointer; }
.charts { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(100%, 21rem), 1fr)); gap: .9rem; align-items: start; margin: .8rem 0; }
.charts.pair { grid-template-columns: repeat(auto-fill, minmax(min(100%, 26rem), 1fr)); }
.chart { margin: 0; padding: .8rem .9rem .6rem; min-width: 0; }
figcaption { display: flex; justify-content: space-between; gap: .5rem; align-items: baseline; }
.legend { list-style: none; margin: .2rem 0 .3rem; padding: 0; display: flex; flex-wrap: wrap; gap: .1rem .9rem; font-size: .85rem; color: var(--soft); }
p.legend { gap: .35rem; } .legend b { color: var(--text); font-variant-numeric: tabular-nums; }
.key { width: 22px; height: 6px; margin-right: .35rem; vertical-align: middle; }
.plot { display: block; width: 100%; height: auto; touch-action: pan-y; }
.grid { stroke: var(--grid); } .axis { stroke: var(--axis); } .mark { stroke: var(--mark); stroke-dasharray: 2 3; }
.tick { fill: var(--soft); font-size: 12px; } .label { font-size: 12px; font-weight: 600; }
.line { fill: none; stroke-width: 1.8; stroke-linejoin: round; } .d1 { stroke-dasharray: 5 3; } .d2 { stroke-dasharray: 1.5 3; } .d3 { stroke-dasharray: 8 3 1.5 3; }
.s0 { stroke: var(--s0); } .s1 { stroke: var(--s1); } .s2 { stroke: var(--s2); } .s3 { stroke: var(--s3); }
.s4 { stroke: var(--s4); } .s5 { stroke: var(--s5); } .s6 { stroke: var(--s6); } .s7 { stroke: var(--s7); }
.f0 { fill: var(--s0); } .f1 { fill: var(--s1); } .f2 { fill: var(--s2); } .f3 { fill: var(--s3); }
.dot { fill: var(--card); stroke-width: 1.5; } .cross { stroke: var(--axis); }
.probe { display: grid; gap: .15rem; font-size: .85rem; }
.probe input { width: 100%; margin: .2rem 0 0; accent-color: var(--s0); min-height: 24px; } output { font-variant-numeric: tabular-nums; min-height: 1.5em; }
/* Lines of worse trials are paler: they are there for comparison, and the table of trials has their values. */
.run { fill: none; stroke: var(--plan); stroke-linejoin: round; } .spot { fill: var(--plan); fill-opacity: .6; }
.run.last { stroke: var(--s0); stroke-width: 1.6; } .run.best { stroke: var(--s1); stroke-width: 3; } .run.edge { stroke: var(--s2); stroke-width: 1.8; }
.spot.last, .spot.best, .spot.edge { fill-opacity: 1; } .spot.last { fill: var(--s0); } .spot.best { fill: var(--s1); } .spot.edge { fill: var(--s2); }
.lost { stroke: var(--bad); stroke-dasharray: 2 3; } .q0 { stroke: var(--s0); stroke-width: 1.6; }
.q1 { stroke: color-mix(in oklab, var(--s0) 50%, var(--s3)); stroke-opacity: .8; } .q2 { stroke: var(--s3); stroke-opacity: .55; }
.q3 { stroke: color-mix(in oklab, var(--s1) 60%, var(--s3)); stroke-opacity: .5; } .q4 { stroke: var(--s6); stroke-opacity: .5; }
.dense .run:not(.best, .edge) { stroke-width: .7; stroke-opacity: .45; } .dense .run.q0, .dense .run.last { stroke-opacity: .7; }
.run:not(.best):hover { stroke: var(--text); stroke-width: 3; stroke-opacity: 1; }
.pan { overflow-x: auto; } .pan svg { display: block; margin: 0 auto; }
.pan .tick, .pan .name { font-size: 12px; paint-order: stroke; stroke: var(--card); stroke-width: 3px; } .pan .name { fill: var(--text); font-weight: 600; }
details { font-size: .85rem; } summary { cursor: pointer; color: var(--soft); min-height: 24px; }
.card { padding: .9rem; } .scroll + .scroll { margin-top: .8rem; }
.scroll { overflow-x: auto; max-height: 26rem; background: var(--card); border: 1px solid var(--line); border-radius: .5rem; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; overflow-wrap: normal; }
th, td { padding: .35rem .7rem; text-align: right; font-weight: 400; border-bottom: 1px solid var(--grid); vertical-align: top; white-space: nowrap; }
tbody tr:last-child > * { border-bottom: 0; } thead th { color: var(--soft); font-size: .82rem; position: sticky; top: 0; background: var(--card); }
th:first-child, .t2 :nth-child(2), .t3 :nth-child(-n+3) { text-align: left; } td.wrap { white-space: normal; min-width: 18rem; overflow-wrap: anywhere; text-align: left; }
.good { color: var(--good); } .bad { color: var(--bad); }
.bars { list-style: none; margin: 0; padding: 0; display: grid; gap: .7rem; } .bars .sub { margin-top: -.7rem; color: var(--soft); font-size: .85rem; }
.bars div { display: flex; justify-content: space-between; gap: 1rem; } .bars b { font-variant-numeric: tabular-nums; white-space: nowrap; } .sub b { font-weight: 400; }
.bars svg { display: block; width: 100%; height: 14px; } .bars .note { margin: 0; }
.rail { fill: var(--grid); } .total { fill: var(--s0); } .saved { fill: var(--good); } .more { fill: var(--bad); } .planned { fill: var(--plan); }
article { border-top: 1px solid var(--line); padding: .8rem 0; } .two { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 21rem), 1fr)); gap: 1rem; }
pre { margin: 0; overflow-x: auto; font: .85rem/1.5 ui-monospace, "DejaVu Sans Mono", monospace; }
.two pre { white-space: pre-wrap; overflow-wrap: anywhere; background: var(--card); border: 1px solid var(--line); padding: .5rem; border-radius: .4rem; margin: .3rem 0; } article small { color: var(--soft); font-weight: 400; }
footer { margin-top: 2.5rem; color: var(--soft); font-size: .85rem; border-top: 1px solid var(--line); }
@media (max-width: 30rem) { body { padding: 0 .6rem 2rem; } .chart { padding: .7rem .7rem .5rem; } }
@media print { .probe, .axes, .skip { display: none; } .chart { break-inside: avoid; } .scroll { max-height: none; } }
</style>
</head>
<body>
<a class="skip" href="#main">Skip to the content</a>
<header><p class="brand">frugal</p><h1></h1><p class="sub"></p></header>
<main id="main"><noscript><p>This page draws itself: its tables and charts need JavaScript.</p></noscript></main>
<footer><p>Written by frugal. One file: it loads nothing from elsewhere.</p></footer>
<script>
"use strict";
addEventListener("DOMContentLoaded", () => {
// Elements. Attributes that are undefined or false are left out, and so are children that are; texts become text nodes.
const build = (made, attributes, children) => {
  for (const [key, value] of Object.entries(attributes ?? {}))
    if (value !== undefined && value !== false) made.setAttribute(key, value === true ? "" : value);
  made.append(...children.flat(2).filter(each => each || each === 0));
  return made;
};
const h = (name, attributes, ...children) => build(document.createElement(name), attributes, children);
const s = (name, attributes, ...children) => build(document.createElementNS("http://www.w3.org/2000/svg", name), attributes, children);
const beginning = (text, most) => [...text].length > most ? [...text].slice(0, most).join("") + " \u2026" : text;
const measure = document.createElement("canvas").getContext("2d");
measure.font = "600 12px " + getComputedStyle(document.body).fontFamily;
const widthOf = text => measure.measureText(text).width;

// Numbers, as the tables have them: short_number, money_text and time_text (report/html/quantity.ipp).
const none = "\u2013", minus = "\u2212";
const general = (v, digits) => {
  const [lead, power] = v.toExponential(digits - 1).split("e");
  return +power >= -4 && +power < digits ? String(+v.toPrecision(digits)) : +lead + "e" + power[0] + power.slice(1).padStart(2, "0");
};
const short = v => {
  const size = Math.abs(v);
  if (size === 0) return "0";
  if (size < 9999.5) return general(v, size < 1e-3 ? 3 : 4);
  for (const [letter, unit] of [["k", 1e3], ["M", 1e6], ["G", 1e9], ["T", 1e12]])
    if (size < 999.95 * unit) return general(v / unit, 4) + letter;
  return general(v, 3);
};
const grouped = v => Math.round(v).toLocaleString("en-US");
const signed = write => v => (v < 0 ? minus : "") + write(Math.abs(v));
const two = (a, unitA, b, unitB) => a + unitA + (b ? (b < 10 ? " 0" : " ") + b + unitB : "");
const units = {
  plain: short,
  count: v => v >= 0 && v < 1e15 ? grouped(v) : short(v),
  percent: v => short(Math.round(1000 * v) / 10) + "%",
  dollars: signed(v => "$" + (v >= 1e15 ? short(v) : v >= 999.995 ? grouped(v) : v.toFixed(v >= 1 || v === 0 ? 2 : v >= 0.01 ? 3 : 5))),
  bytes: signed(v => {
    let i = 0;
    for (; v >= 1024 && i < 4; ++i) v /= 1024;
    return v.toFixed(i ? 1 : 0) + " " + ["B", "KiB", "MiB", "GiB", "TiB"][i];
  }),
  seconds: signed(v => {
    const whole = Math.round(v);
    if (v === 0) return "0 s";
    if (v < 0.9995) return short(1e3 * v) + " ms";
    if (v < 59.95 || v > 1e12) return short(v > 1e12 ? v : Math.round(10 * v) / 10) + " s";
    if (whole < 3600) return two(Math.floor(whole / 60), " min", whole % 60, " s");
    if (whole < 86400) return two(Math.floor(whole / 3600), " h", Math.floor(whole % 3600 / 60), " min");
    return two(Math.floor(whole / 86400), " d", Math.floor(whole % 86400 / 3600), " h");
  })
};
const written = (v, unit) => v === null || v === undefined ? none : units[unit](v);

// A step between ticks that people can read: 1, 2 or 5 times a power of ten; for bytes powers of two; for times also
// 15 s, 30 min, 6 h and their like.
const niceStep = (rough, unit) => {
  if (!(rough > 0) || !isFinite(rough)) return 1;
  if (unit === "bytes" && rough > 1) return 2 ** Math.ceil(Math.log2(rough));
  if (unit === "count" && rough < 1) return 1;
  if (unit === "seconds" && rough > 5) {
    const found = [10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400, 172800, 432e3, 864e3].find(each => each >= rough);
    if (found) return found;
  }
  const power = 10 ** Math.floor(Math.log10(rough));
  return power * ([1, 2, 5].find(each => rough / power <= each * 1.0001) ?? 10);
};
// An axis: where a value is, from 0 to 1, and its ticks. A loose one ends at ticks, as a vertical axis does.
const scaleOf = (low, high, unit, { loose, log, wanted = 4 }) => {
  if (!(low <= high)) [low, high] = [0, 1];
  log = log && low > 0;
  const ticks = [];
  let step = 1;
  if (log) {
    const first = Math.floor(Math.log10(low) + 1e-9), last = Math.max(Math.ceil(Math.log10(high) - 1e-9), first + 1);
    [low, high] = [10 ** first, 10 ** last];
    for (let i = first; i <= last; i += Math.max(1, Math.ceil((last - first) / 5))) ticks.push(10 ** i);
  } else {
    // One value, or many that are the same but for rounding.
    if (high - low <= Math.max(Math.abs(low), Math.abs(high)) * 1e-9) {
      const room = low === 0 ? 1 : Math.abs(low) * 0.1;
      if (loose && low !== 0) low -= room;
      high += room;
    }
    step = niceStep((high - low) / wanted, unit);
    const first = loose ? Math.floor(low / step + 1e-9) : Math.ceil(low / step - 1e-9);
    const last = loose ? Math.ceil(high / step - 1e-9) : Math.floor(high / step + 1e-9);
    for (let i = first; i <= last && ticks.length < 16; ++i) ticks.push(i * step);
    if (loose) [low, high] = [first * step, last * step];
    if (!(high > low)) high = low + step;
  }
  const place = log ? v => Math.log(Math.max(v, low) / low) / Math.log(high / low) : v => (v - low) / (high - low);
  return { low, high, log, ticks: ticks.map(v => [v, labelOf(v, unit, log, low, high, step)]), at: v => Math.min(Math.max(place(v), 0), 1) };
};
// Neighbouring ticks differ in their labels.
const labelOf = (tick, unit, log, low, high, step) => {
  if (unit === "bytes") return units.bytes(tick).replace(".0 ", " ");
  if (log || unit === "seconds") return units[unit](tick);
  const factor = unit === "percent" ? 100 : 1;
  let size = Math.max(Math.abs(low), Math.abs(high)) * factor, value = Math.abs(tick) * factor, suffix = unit === "percent" ? "%" : "";
  step *= factor;
  if (tick === 0) return (unit === "dollars" ? "$" : "") + "0" + suffix;
  if (size > 1e15 || step < 1e-6) return units[unit](tick);
  for (const each of "kMGT") {
    if (size < 10000 && !(size >= 1000 && step >= 1000)) break;
    size /= 1000; step /= 1000; value /= 1000;
    suffix = each;
  }
  const digits = Math.min(Math.max(-Math.floor(Math.log10(step) + 1e-9), 0), 9);
  return (tick < 0 ? minus : "") + (unit === "dollars" ? "$" : "") + value.toFixed(digits) + suffix;
};
// Differences of values beyond 1e200 cannot be drawn: they lie at the end of their axis.
const rangeOf = (values, zero) => {
  let [low, high] = [Infinity, -Infinity];
  for (const v of values) if (v !== null && Math.abs(v) <= 1e200) [low, high] = [Math.min(low, v), Math.max(high, v)];
  return zero && low <= high ? [Math.min(low, 0), Math.max(high, 0)] : [low, high];
};
// Of values whose axis may be logarithmic: it is if they span more than a factor of 30.
const looseScale = (values, unit, { zero, log, wanted }) => {
  const [low, high] = rangeOf(values, zero);
  return scaleOf(low, high, unit, { loose: true, log: log && high / low > 30, wanted });
};

// Parts of a page.
const scrolled = (label, made) => h("div", { class: "scroll", role: "region", tabindex: 0, "aria-label": label }, made);
const cell = (name, value, attributes = {}) => typeof value === "string" ? h(name, attributes, value)
  : h(name, { ...attributes, class: value.wrap && "wrap" }, value.text, value.mark && " ", value.mark && h("b", {}, value.mark));
const folded = (summary, ...made) => h("details", {}, h("summary", {}, summary), ...made);
const table = of => {
  const made = scrolled(of.title, h("table", { class: "t" + (of.texts ?? 1) },
    h("thead", {}, h("tr", {}, of.head.map(each => h("th", { scope: "col" }, each)))),
    h("tbody", {}, of.rows.map(row => h("tr", {}, row.map((each, i) => i ? cell("td", each) : cell("th", each, { scope: "row" })))))));
  return of.folded ? folded(of.folded, made) : made;
};
const bar = ({ from = 0, to, kind = "total" }) => {
  const at = v => Math.min(Math.max(100 * v, 0), 100).toFixed(2) + "%", low = Math.min(from, to);
  return s("svg", { "aria-hidden": "true", focusable: "false" }, s("rect", { class: "rail", width: "100%", height: 14, rx: 2 }),
    s("rect", { class: kind, x: at(low), width: at(Math.max(Math.abs(to - from), 0.003)), height: 14, rx: 2 }));
};
const note = text => h("p", { class: "note" }, text);
const parts = {
  text: of => h("p", { class: of.note && "note" }, of.text),
  list: of => h("ul", {}, of.items.map(each => h("li", {}, each))),
  figures: of => h("dl", { class: "figures" }, of.items.map(each =>
    h("div", {}, h("dt", {}, each.name), h("dd", {}, each.value, each.small && " ", each.small && h("small", {}, each.small))))),
  table,
  code: of => h("div", { class: "card" }, h("pre", { role: "region", tabindex: 0, "aria-label": of.title }, of.text)),
  bars: of => h("div", { class: "card" }, h("ol", { class: "bars" }, of.items.map(each => h("li", { class: each.kind === "planned" && "sub" },
    h("div", {}, h("span", {}, each.name), h("b", { class: each.kind === "saved" ? "good" : each.kind === "more" && "bad" }, each.value)),
    bar(each), each.note && note(each.note)))), of.note && note(of.note)),
  twins: of => h("div", {}, of.items.map(each => h("article", {},
    h("h3", {}, each.removed, " ", h("small", {}, each.how), " ", each.kept, each.through && [" ", h("small", {}, "through"), " ", each.through]),
    each.texts && h("div", { class: "two" }, ["removed", "kept"].map((name, i) => h("div", {}, h("small", {}, name), h("pre", {}, each.texts[i]))))))),
  chart: of => chart(of),
  parallel: of => parallel(of),
  section: of => h("section", { id: of.id, "aria-labelledby": of.id + "-h" }, h("h2", { id: of.id + "-h" }, of.title), choiceOf(of.parts), all(of.parts))
};
// Neighbouring charts share a grid.
const all = list => {
  const made = [];
  list.forEach((each, i) => {
    if (each.kind !== "chart") return made.push(parts[each.kind](each));
    if (list[i - 1]?.kind !== "chart") made.push(h("div", { class: "charts" }));
    made.at(-1).append(parts.chart(each));
    if (each.legend) made.at(-1).classList.add("pair");
  });
  return made;
};

// The horizontal axis of all charts that have it.
let axisNow = "step";
const choiceOf = list => {
  const axes = list.find(each => each.kind === "chart" && each.axes.length > 1)?.axes;
  if (!axes) return undefined;
  const made = h("fieldset", { class: "axes" }, h("legend", {}, "Horizontal axis"), axes.map(each =>
    h("label", {}, h("input", { type: "radio", name: "x", id: "x-" + each.id, value: each.id, checked: each.id === axisNow }), " " + each.name)));
  made.addEventListener("change", event => {
    axisNow = event.target.value;
    for (const redraw of redraws) redraw();
  });
  return made;
};

let figures = 0;
const coordinate = v => String(Math.round(10 * v) / 10);
const lineClass = of => of.kind !== undefined ? "run " + of.kind : `line s${of.color % 8} d${(of.color + Math.floor(of.color / 8)) % 4}`;
const dotClass = of => of.kind !== undefined ? "spot " + of.kind : "dot s" + of.color % 8;
const key = (of, spot) => s("svg", { class: "key", viewBox: "0 0 22 6", "aria-hidden": "true" },
  spot ? s("circle", { cx: 11, cy: 3, r: 3, class: dotClass(of) }) : s("path", { d: "M0 3H22", class: lineClass(of) }));
const legendOf = of => {
  const last = line => written(line.value.at(-1), of.unit);
  if (of.legend) return h("ul", { class: "legend" }, of.legend.map(each => h("li", {}, key(each, each.spot), each.name)));
  if (of.lines.length > 1) return h("ul", { class: "legend" }, of.lines.map(line => h("li", {}, key(line), line.name, " ", h("b", {}, last(line)))));
  return of.lines[0]?.value.length ? h("p", { class: "legend" }, "last ", h("b", {}, last(of.lines[0]))) : undefined;
};
const figure = (of, ...made) => h("figure", { class: "chart", id: of.id },
  h("figcaption", {}, h("h3", {}, of.title), h("span", { class: "note" }, of.note ?? "")), legendOf(of), ...made,
  (of.notes ?? []).map(note), of.table && table(of.table));
const picture = (title, text, attributes, ...made) => {
  const id = "p" + ++figures;
  return s("svg", { role: "img", "aria-labelledby": `${id}-t ${id}-d`, ...attributes }, s("title", { id: id + "-t" }, title), s("desc", { id: id + "-d" }, text), ...made);
};
const isDense = of => of.lines.reduce((sum, line) => sum + (line.titles?.length ?? 1), 0) > 200;
// Draws when the page is there, when another axis is chosen, and when the width is another one.
const redraws = [];
const keepDrawn = (holder, draw) => {
  let width = 0;
  const redraw = () => {
    width = holder.clientWidth;
    draw();
  };
  redraws.push(redraw);
  new ResizeObserver(() => { if (holder.clientWidth !== width) redraw(); }).observe(holder);
};

// What a screen reader hears of a chart with values to read.
const aboutOf = of => of.lines.filter(line => line.value.length).map(line => {
  const [low, high] = rangeOf(line.value), say = v => written(v, of.unit);
  return `${line.name}: from ${say(line.value[0])} to ${say(line.value.at(-1))}; lowest ${say(low)}, highest ${say(high)}. `;
}).join("") + "The slider and the table below have the values.";
// At most 24 rows for each line, spread evenly, with its last point. Points of all lines that are at one place of the
// first axis share a row.
const valuesOf = of => {
  const rows = new Map(), first = of.axes[0].id;
  of.lines.forEach((line, column) => {
    const count = line.value.length, shown = Math.min(count, 24);
    for (let i = 0; i < shown; ++i) {
      const at = shown === 1 ? 0 : Math.floor(i * (count - 1) / (shown - 1));
      if (!rows.has(line[first][at])) rows.set(line[first][at], { line, at, values: [] });
      rows.get(line[first][at]).values[column] = line.value[at];
    }
  });
  const columns = [...of.axes, ...(of.columns ?? [])];
  return table({ title: "Values: " + of.title, folded: "Values", texts: 1, head: [...columns.map(each => each.name), ...of.lines.map(line => line.name)],
    rows: [...rows].sort((a, b) => a[0] - b[0]).map(([, row]) => [...columns.map(each => written(row.line[each.id][row.at], each.unit)),
      ...of.lines.map((line, i) => written(row.values[i], of.unit))]) });
};

const chart = of => {
  const holder = h("div"), reads = !of.legend;
  const y = looseScale(of.lines.flatMap(line => line.value), of.unit, of);
  const axisOf = () => of.axes.find(each => each.id === axisNow) ?? of.axes[0];
  const slider = h("input", { type: "range", min: 0, max: 0, value: 0, "aria-label": of.title + ": point to read" });
  // All outputs change with the axis: as live regions, which they are by default, each would be read out.
  const out = h("output", { "aria-live": "off" });
  let axis, x, atX, atY, floor, top = 10, left, end, plot;
  const draw = () => {
    const width = holder.clientWidth || 400, height = Math.round(Math.min(Math.max(0.55 * width, 200), 300));
    axis = axisOf();
    const named = reads && width > 330 && of.lines.length > 1 && of.lines.length <= 4;
    left = Math.max(...y.ticks.map(([, label]) => widthOf(label)), 20) + 12;
    end = width - (named ? Math.max(...of.lines.map(line => widthOf(beginning(line.name, 11)))) + 10 : 16);
    floor = height - 43;
    let [low, high] = rangeOf(of.lines.flatMap(line => line[axis.id]));
    if (axis.ticks) {  // given ones are a factor apart, and so are their logarithms; 0 has none
      const at = v => Math.log1p(v), [a, b] = [at(axis.ticks[0][0]), at(axis.ticks.at(-1)[0])];
      x = { low: axis.ticks[0][0], high: axis.ticks.at(-1)[0], ticks: axis.ticks, at: v => (at(v) - a) / (b - a) };
    } else if (axis.loose) {
      x = looseScale(of.lines.flatMap(line => line[axis.id]), axis.unit, { log: true });
    } else {
      x = scaleOf(Math.min(low, 0), high, axis.unit, {});  // a run begins at 0
    }
    atX = v => left + x.at(v) * (end - left);
    atY = v => floor - y.at(v) * (floor - top);
    const made = [];
    for (const [tick, label] of y.ticks)
      made.push(s("path", { class: "grid", d: `M${coordinate(left)} ${coordinate(atY(tick))}H${coordinate(end)}` }),
        s("text", { class: "tick", x: coordinate(left - 6), y: coordinate(atY(tick) + 4), "text-anchor": "end" }, label));
    made.push(s("path", { class: "axis", d: `M${coordinate(left)} ${floor}H${coordinate(end)}` }));
    let free = -Infinity;
    for (const [tick, label] of x.ticks) {  // those that fit
      const room = widthOf(label) / 2, middle = Math.min(atX(tick), width - room - 1);
      if (middle - room < free) continue;
      free = middle + room + 8;
      made.push(s("text", { class: "tick", x: coordinate(middle), y: floor + 17, "text-anchor": "middle" }, label));
    }
    made.push(s("text", { class: "tick unit", x: coordinate((left + end) / 2), y: height - 7, "text-anchor": "middle" }, axis.name));
    for (const each of of.marks ?? [])
      if (each[axis.id] !== null && each[axis.id] <= x.high) made.push(s("path", { class: "mark", d: `M${coordinate(atX(each[axis.id]))} ${top}V${floor}` }));
    for (const line of of.lines) {
      let d = "", before = "";
      const dots = [], r = line.dot ?? (reads && line.value.length <= 24 ? 2.5 : 0);
      line.value.forEach((value, i) => {
        if (value === null || line[axis.id][i] === null) return;
        const [px, py] = [coordinate(atX(line[axis.id][i])), coordinate(atY(value))], place = px + " " + py;
        if (place === before && line.path !== false) return;
        d += (d ? "L" : "M") + place;
        before = place;
        const title = line.titles?.[i] ?? line.titles?.[0];
        if (r) dots.push(s("circle", { class: dotClass(line), cx: px, cy: py, r }, title && s("title", {}, title)));
      });
      if (d && line.path !== false) made.push(s("path", { class: lineClass(line), d }, line.titles && s("title", {}, line.titles[0])));
      made.push(...dots);
    }
    if (named) made.push(...namesOf());
    const title = of.title + (reads ? " over " + axis.name : "");
    plot = picture(title, of.about ?? aboutOf(of), { class: "plot" + (isDense(of) ? " dense" : ""), viewBox: `0 0 ${width} ${height}`, "data-axis": axis.id }, ...made);
    holder.replaceChildren(plot);
  };
  // Each line's name at its end; names that would overlap move apart.
  const namesOf = () => {
    const apart = 14, places = of.lines.filter(line => line.value.length).map(line => [atY(line.value.at(-1)) + 4, line]).sort((a, b) => a[0] - b[0]);
    for (let i = 1; i < places.length; ++i) places[i][0] = Math.max(places[i][0], places[i - 1][0] + apart);
    for (let i = places.length, limit = floor + 2; i-- > 0; limit = places[i][0] - apart) places[i][0] = Math.min(places[i][0], limit);
    return places.map(([where, line]) => s("text", { class: "label f" + line.color % 8, x: coordinate(end + 6), y: coordinate(where) }, beginning(line.name, 11)));
  };
  // The places that the slider reads: those of the line that has most of them.
  const known = () => of.lines.map(line => line[axis.id].filter(v => v !== null)).reduce((a, b) => b.length > a.length ? b : a, []);
  const show = drawn => {
    const places = known(), at = places[slider.value];
    for (const old of plot.querySelectorAll(".reading")) old.remove();
    if (at === undefined) {
      out.textContent = "nothing known here";
      return;
    }
    const group = s("g", { class: "reading" }, s("path", { class: "cross", d: `M${coordinate(atX(at))} ${top}V${floor}` })), said = [];
    for (const line of of.lines) {
      let best = -1;
      line[axis.id].forEach((v, i) => { if (v !== null && (best < 0 || Math.abs(v - at) <= Math.abs(line[axis.id][best] - at))) best = i; });
      if (best < 0) continue;
      said.push((of.lines.length > 1 ? line.name + " " : "") + written(line.value[best], of.unit));
      group.append(s("circle", { class: "dot s" + line.color % 8, r: 3.5, cx: coordinate(atX(line[axis.id][best])), cy: coordinate(atY(line.value[best])) }));
    }
    if (drawn) plot.append(group);
    const where = { count: axis.name + " ", seconds: "after " }[axis.unit] ?? "at ";
    out.textContent = where + written(at, axis.unit) + ": " + said.join(", ");
    slider.setAttribute("aria-valuetext", out.textContent);
  };
  // Another axis may know fewer places: the slider keeps its share of the way.
  const again = () => {
    draw();
    if (!reads) return;
    const last = Math.max(known().length - 1, 0), share = +slider.max ? slider.value / slider.max : 1;
    slider.max = last;
    slider.value = Math.round(share * last);
    show(false);
  };
  const move = event => {
    const box = plot.getBoundingClientRect(), where = (event.clientX - box.left) / box.width * plot.viewBox.baseVal.width, places = known();
    let best = -1;
    places.forEach((v, i) => { if (best < 0 || Math.abs(atX(v) - where) < Math.abs(atX(places[best]) - where)) best = i; });
    if (best < 0) return;
    slider.value = best;
    show(true);
  };
  const many = of.lines.some(line => line.value.length > 1);
  if (reads && many) {
    slider.addEventListener("input", () => show(true));
    slider.addEventListener("focus", () => show(true));
    holder.addEventListener("pointermove", move);
    holder.addEventListener("pointerdown", move);
  }
  keepDrawn(holder, again);
  const notes = [of.note, y.log && "logarithmic"].filter(each => each).join(", ");
  return figure({ ...of, note: notes }, holder, reads && many && h("div", { class: "probe" }, slider, out), reads && valuesOf(of));
};

// Parallel coordinates: a line for each of many, from axis to axis. A line skips the axes on which it has no value.
const parallel = of => {
  const scales = of.axes.map((axis, i) => {
    const values = of.lines.map(line => line.values[i]);
    if (axis.names) {
      // Lines through a name are spread over a band, or else they would lie on each other; by the golden ratio any few
      // of them are spread evenly.
      const count = axis.names.length, place = v => (v + 0.5) / count;
      const spread = number => 0.6 / count * ((0.61803398874989485 * number) % 1 - 0.5);
      const every = Math.floor(count / 16) + 1;
      return { at: (v, number) => place(v) + spread(number), ticks: axis.names.map((name, v) => [place(v), beginning(name, 15)]).filter((_, v) => v % every === 0) };
    }
    if (axis.low === undefined) {
      const scale = looseScale(values, "plain", { log: true });
      return { at: scale.at, ticks: scale.ticks.map(([v, label]) => [scale.at(v), label]) };
    }
    const { low, high } = axis, [f, g] = axis.log ? [Math.log(low), Math.log(high)] : [low, high];
    const at = v => low === high ? 0.5 : Math.min(Math.max(((axis.log ? Math.log(v) : v) - f) / (g - f), 0), 1);
    if (low === high) return { at, ticks: [[0.5, short(low)]] };
    // The ends have their labels.
    const between = scaleOf(low, high, axis.unit, { log: axis.log }).ticks.filter(([v]) => v > low && v < high && at(v) > 0.09 && at(v) < 0.91);
    return { at, ticks: [[0, short(low)], ...between.map(([v, label]) => [at(v), label]), [1, short(high)]] };
  });
  const holder = h("div", { class: "pan", role: "region", tabindex: 0, "aria-label": of.label });
  const draw = () => {
    const left = 14, right = 96, top = 34, apart = Math.min(Math.max((holder.clientWidth - left - right) / (of.axes.length - 1), 130), 175);
    const width = left + apart * (of.axes.length - 1) + right, height = 300 * apart / 130, bottom = height - 14;
    const atX = i => coordinate(left + apart * i), atY = share => coordinate(bottom - share * (bottom - top)), made = [];
    for (const line of of.lines) {
      let d = "";
      line.values.forEach((v, i) => { if (v !== null) d += (d ? "L" : "M") + atX(i) + " " + atY(scales[i].at(v, line.number)); });
      made.push(s("path", { class: "run " + line.kind, d }, s("title", {}, line.title)));
    }
    of.axes.forEach((axis, i) => {
      made.push(s("path", { class: "axis", d: `M${atX(i)} ${top}V${coordinate(bottom)}` }),
        s("text", { class: "name", x: coordinate(+atX(i) - (i ? 0 : 6)), y: 14, "text-anchor": i ? "middle" : "start" }, beginning(axis.name, 16)));
      for (const [at, label] of scales[i].ticks) made.push(s("text", { class: "tick", x: coordinate(+atX(i) + 5), y: coordinate(+atY(at) + 4) }, label));
    });
    holder.replaceChildren(picture(of.label, of.about, { class: isDense(of) && "dense", viewBox: `0 0 ${width} ${height}`, width, height }, ...made));
  };
  keepDrawn(holder, draw);
  return figure(of, holder);
};

const data = JSON.parse(document.getElementById("data").textContent);
document.title = document.querySelector("h1").textContent = data.title;
document.querySelector(".sub").textContent = data.subtitle;
document.getElementById("main").append(...all(data.parts));
for (const redraw of redraws) redraw();  // now they have a width
if (location.hash.length > 1) document.getElementById(decodeURIComponent(location.hash.slice(1)))?.scrollIntoView();
});
</script>
<script type="application/json" id="data">)html";

}  // namespace frugal::html
