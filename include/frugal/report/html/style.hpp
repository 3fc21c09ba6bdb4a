// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace frugal::html {

/// The page's style. Text has a contrast of at least 4.5 with its background, and lines one of 3
/// (WCAG 2.2, 1.4.3 and 1.4.11), in light and in dark; tests/interop/report.py computes both.
inline constexpr std::string_view style = R"css(
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
.charts { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(100%, 21rem), 1fr)); gap: .9rem; align-items: start; }
.chart { margin: 0; padding: .8rem .9rem .6rem; min-width: 0; }
figcaption { display: flex; justify-content: space-between; gap: .5rem; align-items: baseline; }
.legend { list-style: none; margin: .2rem 0 .3rem; padding: 0; display: flex; flex-wrap: wrap; gap: .1rem .9rem; font-size: .85rem; color: var(--soft); }
p.legend { gap: .35rem; } .legend b { color: var(--text); font-variant-numeric: tabular-nums; }
.key { width: 22px; height: 6px; margin-right: .35rem; vertical-align: middle; }
.plot { display: block; width: 100%; height: auto; touch-action: pan-y; }
.by-seconds, .by-dollars { display: none; } .fixed .by-seconds { display: block; } .fixed { margin: .8rem 0; }
#curves:has(#x-seconds:checked) .by-step, #curves:has(#x-dollars:checked) .by-step { display: none; }
#curves:has(#x-seconds:checked) .by-seconds, #curves:has(#x-dollars:checked) .by-dollars { display: block; }
.grid { stroke: var(--grid); } .axis { stroke: var(--axis); } .mark { stroke: var(--mark); stroke-dasharray: 2 3; }
.tick { fill: var(--soft); font-size: 11.5px; } .label { font-size: 12px; font-weight: 600; }
/* A picture is 400 wide, whatever its card is: texts grow as it shrinks, and stay above 11 px on a screen of 360 px. There names at
   the ends of lines do not fit: the legend has them, and the picture is wider than the card by their margin. */
.chart { container-type: inline-size; overflow: hidden; }
@container (max-width: 25rem) { .tick { font-size: 13.2px; } .label { font-size: 13px; } }
@container (max-width: 21rem) { .tick { font-size: 14.5px; } .label, .other { display: none; }
  .labelled { width: 126.6%; } .labelled .tick { font-size: 11.6px; } }
.line { fill: none; stroke-width: 1.8; stroke-linejoin: round; } .d1 { stroke-dasharray: 5 3; } .d2 { stroke-dasharray: 1.5 3; } .d3 { stroke-dasharray: 8 3 1.5 3; }
.cross { stroke: var(--axis); } .probe { display: grid; gap: .15rem; font-size: .85rem; } .probe[hidden] { display: none; }
.probe input { width: 100%; margin: .2rem 0 0; accent-color: var(--s0); min-height: 24px; } output { font-variant-numeric: tabular-nums; min-height: 1.5em; }
.s0 { stroke: var(--s0); } .s1 { stroke: var(--s1); } .s2 { stroke: var(--s2); } .s3 { stroke: var(--s3); }
.s4 { stroke: var(--s4); } .s5 { stroke: var(--s5); } .s6 { stroke: var(--s6); } .s7 { stroke: var(--s7); }
.f0 { fill: var(--s0); } .f1 { fill: var(--s1); } .f2 { fill: var(--s2); } .f3 { fill: var(--s3); }
.f4 { fill: var(--s4); } .f5 { fill: var(--s5); } .f6 { fill: var(--s6); } .f7 { fill: var(--s7); }
.dot { fill: var(--card); stroke-width: 1.5; }
details { font-size: .85rem; } summary { cursor: pointer; color: var(--soft); min-height: 24px; }
.card { padding: .9rem; } .card + .card, .scroll + .scroll { margin-top: .8rem; }
.scroll { overflow-x: auto; max-height: 26rem; background: var(--card); border: 1px solid var(--line); border-radius: .5rem; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; overflow-wrap: normal; }
th, td { padding: .35rem .7rem; text-align: right; font-weight: 400; border-bottom: 1px solid var(--grid); vertical-align: top; }
tbody tr:last-child > * { border-bottom: 0; } thead th { color: var(--soft); font-size: .82rem; position: sticky; top: 0; background: var(--card); white-space: nowrap; }
tbody th, .t2 td:nth-child(2), .t2 th:nth-child(2), .t3 td:nth-child(-n+3), .t3 th:nth-child(-n+3) { text-align: left; } thead th:first-child { text-align: left; } td { white-space: nowrap; }
td.wrap, th.wrap { white-space: normal; min-width: 12rem; text-align: left; }
.good { color: var(--good); } .bad { color: var(--bad); }
.bars { list-style: none; margin: 0; padding: 0; display: grid; gap: .7rem; }
.bars .row { display: flex; justify-content: space-between; gap: 1rem; } .bars b { font-variant-numeric: tabular-nums; white-space: nowrap; }
.bars svg { display: block; width: 100%; height: 14px; } .bars .note { margin: 0; }
.rail { fill: var(--grid); } .total { fill: var(--s0); } .saved { fill: var(--good); } .more { fill: var(--bad); } .planned { fill: var(--plan); }
footer { margin-top: 2.5rem; color: var(--soft); font-size: .85rem; border-top: 1px solid var(--line); }
@media (max-width: 30rem) { body { padding: 0 .6rem 2rem; } .chart { padding: .7rem .7rem .5rem; } }
@media print { .probe, .axes, .skip { display: none; } .chart { break-inside: avoid; } }
)css";

}  // namespace frugal::html
