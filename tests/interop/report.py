#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Opens the pages in Debian's Chromium: report.py PROGRAM

PROGRAM is interop_report, built from report.cpp in this folder. The pages are opened in light and dark and
on a phone 360 pixels wide. Nothing may be reported on the console, fetched, or wider than the screen. Keys are
pressed as a keyboard does. Needs the package chromium, and nothing else but Python.
"""

import base64
import hashlib
import html.parser
import json
import math
import os
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent / "support"))

from chromium import Tab

program = ""
EVIL = "</script><script>document.title='run'</script>\"'<img src=x onerror=document.title='run'>"

# Appended to a copy of the page, without its content policy: writes what the test asks for to the title.
PROBE = """<script>
addEventListener("DOMContentLoaded", () => {
const problems = [];
const wide = document.documentElement.scrollWidth - document.documentElement.clientWidth;
if (wide > 0) problems.push("wider than the screen by " + wide);
if (performance.getEntriesByType("resource").some(each => !each.name.startsWith("data:"))) problems.push("fetched something");
const levels = [...document.querySelectorAll("h1,h2,h3,h4")].map(each => +each.tagName[1]);
levels.forEach((level, i) => { if (level > (i ? levels[i - 1] : 0) + 1) problems.push("a heading skips a level"); });
for (const svg of document.querySelectorAll("svg:not([aria-hidden])"))
  if (!svg.querySelector("title") || !svg.querySelector("desc")) problems.push("a picture without a title or description");
for (const slider of document.querySelectorAll(".probe:not([hidden]) input")) {
  const out = slider.parentNode.querySelector("output"), before = out.textContent;
  slider.focus();
  if (document.activeElement !== slider) problems.push("a slider takes no focus");
  slider.value = 0;
  slider.dispatchEvent(new Event("input"));
  if (out.textContent === before || !out.textContent) problems.push("a slider reads nothing");
  if (!slider.getAttribute("aria-valuetext")) problems.push("a slider says nothing");
}
const ids = [...document.querySelectorAll("[id]")].map(each => each.id);
if (new Set(ids).size !== ids.length) problems.push("an id twice");
for (const axis of ["seconds", "dollars", "step"]) {
  const choice = document.getElementById("x-" + axis);
  if (!choice) continue;
  choice.click();
  for (const figure of document.querySelectorAll("#curves figure.chart")) {
    const seen = [...figure.querySelectorAll(".plot")].filter(each => each.getBoundingClientRect().height > 0);
    if (seen.length !== 1 || seen[0].dataset.axis !== axis) problems.push("the axis " + axis + " does not show");
  }
}
const found = {problems, charts: document.querySelectorAll("figure.chart").length,
  sliders: document.querySelectorAll(".probe:not([hidden])").length, title: document.title,
  background: getComputedStyle(document.body).backgroundColor, main: document.querySelectorAll("main").length,
  sections: [...document.querySelectorAll("section")].map(each => each.id)};
document.documentElement.innerHTML = "<body><pre id=found></pre>";
document.getElementById("found").textContent = JSON.stringify(found);
});
</script>"""


# What is wrong with the texts of the charts that are shown, and how many there are.
TEXTS = """(() => {
const problems = [];
let texts = 0;
for (const plot of document.querySelectorAll(".plot")) {
  const box = plot.getBoundingClientRect();
  if (box.height === 0) continue;
  const card = plot.closest("figure").getBoundingClientRect();
  const shown = [...plot.querySelectorAll("text")].map(text => [text, text.getBoundingClientRect()]).filter(([, at]) => at.height > 0);
  texts += shown.length;
  shown.forEach(([text, at], i) => {
    const size = parseFloat(getComputedStyle(text).fontSize) * box.width / plot.viewBox.baseVal.width;
    const where = plot.id + " " + plot.querySelector("title").textContent + ": " + text.textContent;
    if (size < 11) problems.push(where + " is " + size + " px");
    if (at.left < box.left - .5 || at.right > box.right + .5 || at.top < box.top - 1 || at.bottom > box.bottom + .5) problems.push(where + " leaves the picture");
    if (at.left < card.left || at.right > card.right) problems.push(where + " leaves the card");
    // A line is higher than its digits by a third.
    for (const [other, b] of shown.slice(i + 1))
      if (Math.min(at.right, b.right) - Math.max(at.left, b.left) > .5 &&
          Math.min(at.bottom, b.bottom) - Math.max(at.top, b.top) > at.height / 3)
        problems.push(where + " overlaps " + other.textContent);
  });
}
return {problems, texts};
})()"""
ACTIVE = "[+document.activeElement.value, document.activeElement.getAttribute('aria-valuetext')]"


def chromium(page: Path, *flags: str) -> tuple[str, list[str]]:
    """The page's DOM after its scripts, and the lines of its console."""
    with tempfile.TemporaryDirectory() as profile:
        done = subprocess.run(
            ["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking",
             "--enable-logging=stderr", "--v=0", f"--user-data-dir={profile}", *flags, "--dump-dom", page.as_uri()],
            capture_output=True, timeout=120, env={**os.environ, "LC_ALL": "C.UTF-8"})
    console = [line for line in done.stderr.decode(errors="replace").splitlines() if "CONSOLE" in line]
    return done.stdout.decode(errors="replace"), console


class Text(html.parser.HTMLParser):
    """The text of the element with the id `found`."""
    def __init__(self) -> None:
        super().__init__()
        self.text, self.inside = "", False

    def handle_starttag(self, tag, attributes):
        self.inside = self.inside or dict(attributes).get("id") == "found"

    def handle_endtag(self, tag):
        self.inside = self.inside and tag != "pre"

    def handle_data(self, data):
        self.text += data if self.inside else ""


def lines(scale: float = 1.0, name: str = "") -> str:
    def line(event: str, step: int, **more) -> dict:
        return {"event": event, "step": step, "epoch": step // 100, "samples": 32 * step, "seconds": step / 3, **more}
    out = [line("begin", 0, parameters=27, seed=3),
           line("price", 0, currency="USD", per_hour=2.0, per="device", devices=1, source="given"),
           line("recipe", 0, recipe="Optimize<AdamW>", device="cpu")]
    for step in range(1, 400):
        if step == 20:
            out.append(line("plan", step, steps_planned=500, hours_planned=0.05, dollars_planned=0.1))
        out.append(line("step", step, loss=scale * 2.3 * math.exp(-step / 60) + 0.1, lr_factor=1 - step / 400,
                        dollars=step / 5400, memory_bytes=4e8 + 1e6 * step, **({name: step} if name else {})))
        if step % 50 == 0:
            out.append(line("validation", step, loss=scale * 2.3 * math.exp(-step / 60) + 0.2, accuracy=step / 400))
    out.append(line("resume", 200, **{"from": "step-200", "steps_repeated": 12, "seconds_lost": 4.5}))
    out.append(line("cost", 399, hours=0.04, dollars=0.08, lost_seconds=4.5, lost_dollars=0.0025))
    out.append(line("end", 399, stopped_by=""))
    return "".join(json.dumps(each) + "\n" for each in out)


class Reports(unittest.TestCase):
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        root = Path(cls.folder.name)
        for name, scale in (("first", 1.0), ("second", 0.7)):
            (root / name / "profile").mkdir(parents=True)
            (root / name / "metrics.jsonl").write_text(lines(scale))
        (root / "first" / "levers.json").write_text(json.dumps({
            "version": 1, "currency": "USD", "title": "Savings", "unit": "USD",
            "steps": [{"name": "baseline", "value": 9.0}, {"name": "+ BF16", "value": 5.0}]}))
        (root / "first" / "profile" / "hot_spots.json").write_text(json.dumps({"version": 1, "windows": [{
            "step": 20, "seconds": 1.5, "step_seconds": 0.3, "device_idle": 0.02, "bound": "compute", "advice": "BF16",
            "overhead_seconds": 0.1, "trace": "step-20.trace.json",
            "hot_spots": [{"name": "aten::mm", "share": 0.6, "calls": 40, "microseconds": 9e5}],
            "memory": [{"seconds": i / 50, "bytes": 1e8 + i * 1e6} for i in range(60)]}]}))
        subprocess.run([program, "duplicates", root / "first" / "duplicates.jsonl"], check=True)
        evil = root / "<img src=x>"
        evil.mkdir()
        (evil / "metrics.jsonl").write_text(lines(1.0, EVIL))
        cls.pages = {"run": root / "run.html", "evil": root / "evil.html", "compare": root / "compare.html"}
        cls.search, cls.curation = root / "search.html", root / "curation.html"
        subprocess.run([program, "search", cls.search], check=True)
        subprocess.run([program, "curation", cls.curation], check=True)
        for words in (["run", root / "first", cls.pages["run"]], ["run", evil, cls.pages["evil"]],
                      ["compare", cls.pages["compare"], root / "first", root / "second"]):
            subprocess.run([program, *map(str, words)], check=True)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def found(self, name: str, *flags: str) -> dict:
        page = self.pages[name]
        copy = page.with_suffix(".probed.html")
        # The policy forbids the probe, as it forbids every other script.
        text = re.sub(r"<meta http-equiv=\"Content-Security-Policy\"[^>]*>", "", page.read_text())
        copy.write_text(text.replace("</body>", PROBE + "</body>"))
        dom, console = chromium(copy, *flags)
        self.assertEqual(console, [])
        parser = Text()
        parser.feed(dom)
        return json.loads(parser.text)

    def test_pages_open_without_a_word_on_the_console(self):
        for name, page in self.pages.items():
            with self.subTest(name):
                dom, console = chromium(page)
                self.assertEqual(console, [])
                # Its script has run under the page's own policy: the sliders are shown.
                self.assertIn('<div class="probe">', dom)

    def test_elements_are_there_in_light_dark_and_on_a_phone(self):
        backgrounds = {}
        for look, flags in (("light", ["--window-size=1200,900"]),
                            ("dark", ["--window-size=1200,900", "--blink-settings=preferredColorScheme=0"])):
            for name in self.pages:
                with self.subTest(f"{name}, {look}"):
                    found = self.found(name, *flags)
                    self.assertEqual(found["problems"], [])
                    self.assertEqual(found["main"], 1)
                    self.assertGreaterEqual(found["charts"], 5)
                    self.assertEqual(found["sliders"], found["charts"])
                    self.assertNotEqual(found["title"], "run")
                    backgrounds[look] = found["background"]
        self.assertNotEqual(backgrounds["light"], backgrounds["dark"])
        self.assertEqual(self.found("run")["sections"],
                         ["curves", "plan", "savings", "interruptions", "hot-spots", "duplicates", "facts", "events"])
        self.assertEqual(self.found("compare")["sections"],
                         ["all", "savings", "curves", "plan", "interruptions", "hot-spots", "duplicates"])

    def test_a_page_fits_on_a_phone_and_its_charts_can_be_read_there(self):
        for name, page in self.pages.items():
            for width in (360, 412):
                with self.subTest(f"{name}, {width}"), Tab(page) as tab:
                    tab.call("Emulation.setDeviceMetricsOverride", width=width, height=740, deviceScaleFactor=3, mobile=True)
                    self.assertEqual(tab.value("[innerWidth, document.documentElement.scrollWidth]"), [width, width])
                    self.check_charts(tab)

    def test_texts_of_charts_do_not_overlap_in_any_width(self):
        for name, page in self.pages.items():
            with self.subTest(name), Tab(page) as tab:
                for width in (620, 760, 1000, 1280, 1900):
                    tab.call("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=False)
                    self.check_charts(tab)

    def check_charts(self, tab: Tab) -> None:
        """On each axis: texts are at least 11 pixels high, apart from each other, and within the picture and its card."""
        for axis in ("seconds", "dollars", "step"):
            tab.value(f"document.getElementById('x-{axis}').click()")
            found = tab.value(TEXTS)
            self.assertGreater(found["texts"], 20)
            self.assertEqual(found["problems"], [], axis)

    def test_tab_and_arrow_keys_read_each_chart(self):
        for name, page in self.pages.items():
            with self.subTest(name), Tab(page) as tab:
                sliders = tab.value("document.querySelectorAll('.probe:not([hidden]) input').length")
                self.assertGreaterEqual(sliders, 5)
                read = []
                for _ in range(200):
                    tab.press("Tab", 9)
                    if tab.value("document.activeElement.type") != "range":
                        if tab.value("document.activeElement === document.body"):
                            break
                        continue
                    before, text = tab.value(ACTIVE)
                    tab.press("ArrowLeft", 37)
                    after, says = tab.value(ACTIVE)
                    self.assertEqual(after, before - 1)
                    self.assertNotEqual(says, text)
                    tab.press("Home", 36)
                    self.assertEqual(tab.value(ACTIVE)[0], 0)
                    read.append(tab.value("document.activeElement.getAttribute('aria-label')"))
                self.assertEqual(len(read), sliders)
                self.assertEqual(tab.console, [])

    def test_a_screen_reader_finds_names_of_charts_and_sliders(self):
        for name, page in self.pages.items():
            with self.subTest(name), Tab(page) as tab:
                names = tab.names()
                titles = tab.value("[...document.querySelectorAll('figure.chart h3')].map(each => each.textContent)")
                self.assertGreaterEqual(len(titles), 5)
                self.assertEqual(names["slider"], [title + ": point to read" for title in titles])
                # With the axis shown, and the first, last, lowest and highest value.
                for title, picture in zip(titles, names["image"], strict=True):
                    self.assertRegex(picture, re.escape(title) + " over (step|training time) .*from .* to .*lowest .*highest ")
                self.assertIn("Horizontal axis", names["group"])

    def test_the_drawn_page_has_the_titles_the_rows_and_the_points_of_its_data(self):
        dom, console = chromium(self.pages["run"], "--window-size=1200,900")
        self.assertEqual(console, [])
        self.assertIn("<title>first</title>", dom)
        for text in ("Plan and outcome", "399", "1 resume repeated 4.5 s of training", "aten::mm", "Optimize&lt;AdamW&gt;"):
            self.assertIn(text, dom)
        with Tab(self.pages["run"], "--window-size=1200,900") as tab:
            self.assertEqual(tab.value("[...document.querySelectorAll('#interruptions tbody tr > *')].map(each => each.textContent)"),
                             ["resume", "200", "1 min 07 s", "12", "4.5 s", "$0.00250", "step-200"])
            self.assertEqual(tab.value("[...document.querySelectorAll('#savings li')].map(each => each.textContent)"),
                             ["baseline$9.00", "+ BF16\u2212$4.00 (\u221244%)", "Result$5.00, 1/1.8"])
            # Seven validations are seven points, each as far right and as high as its step and its value.
            shape = tab.value("""(() => {
                const figure = [...document.querySelectorAll('figure')].find(each => each.querySelector('h3').textContent === 'Accuracy');
                return {dots: [...figure.querySelectorAll('.plot circle')].map(each => [+each.getAttribute('cx'), +each.getAttribute('cy')]),
                  rows: [...figure.querySelectorAll('tbody tr')].map(each => [...each.children].map(cell => cell.textContent)),
                  marks: figure.querySelectorAll('.mark').length};
            })()""")
            dots = shape["dots"]
            self.assertEqual(len(dots), 7)
            for a, b, c in zip(dots, dots[1:], dots[2:]):
                self.assertAlmostEqual(b[0] - a[0], c[0] - b[0], delta=0.25)
                self.assertAlmostEqual(a[1] - b[1], b[1] - c[1], delta=0.25)
            # The mouse reads the point below it.
            box = tab.value("""(() => {
                const plot = [...document.querySelectorAll('.plot')].find(each => each.querySelector('title').textContent === 'Accuracy over step');
                plot.scrollIntoView();
                const {left, top, width, height} = plot.getBoundingClientRect();
                return {left, top, width, height};
            })()""")
            tab.call("Input.dispatchMouseEvent", type="mouseMoved", x=box["left"] + dots[2][0] + 3, y=box["top"] + box["height"] / 2)
            self.assertIn("step 150: 0.375", tab.value("[...document.querySelectorAll('output')].map(each => each.textContent)"))
            self.assertEqual(tab.value("document.querySelectorAll('.reading circle').length"), 1)
            self.assertEqual(shape["rows"][0], ["50", "16.7 s", "$0.00926", "0.125"])
            self.assertEqual(len(shape["rows"]), 7)
            self.assertEqual(shape["marks"], 1)

    def test_a_search_is_drawn_with_a_line_for_each_trial(self):
        with Tab(self.search, "--window-size=1200,900") as tab:
            self.assertEqual(tab.console, [])
            count = lambda what: tab.value(f"document.querySelectorAll({what!r}).length")
            self.assertEqual(count("#parallel path.run"), 64 + 7)  # and the legend
            self.assertEqual(count("#parallel .name"), 6)
            self.assertEqual(count("#by-rung .plot path.run"), 16)
            self.assertEqual(count("#by-rung .plot path.best"), 1)
            self.assertEqual(count("#by-rung .plot circle.best"), 3)
            self.assertEqual(count("#by-rung .plot circle"), 41 + 3)
            self.assertRegex(tab.value("document.querySelector('#by-rung .plot path.best title').textContent"), r"^trial 39: .*, accuracy 0\.")
            ticks = tab.value("[...document.querySelectorAll('#by-rung .plot text')].map(each => each.textContent)")
            self.assertLessEqual({"250", "1000", "4000", "budget of the rung, steps"}, set(ticks))
            self.assertEqual(count("#trials tbody tr"), 64)
            lr = tab.value("[...document.querySelectorAll('#parallel .tick')].map(each => each.textContent)")
            self.assertLessEqual({"0.0001", "0.001", "0.01", "0.1", "16", "256", "AdamW + BF16", "rms"}, set(lr))
            # Rungs a factor apart are at equal distances.
            x = tab.value("[...document.querySelectorAll('#by-rung .plot circle.best')].map(each => +each.getAttribute('cx'))")
            self.assertAlmostEqual(x[1] - x[0], x[2] - x[1], delta=1)
            self.assertEqual(tab.value("document.documentElement.scrollWidth - document.documentElement.clientWidth"), 0)

    def test_a_curation_shows_removed_samples_next_to_their_twins(self):
        with Tab(self.curation, "--window-size=1200,900") as tab:
            self.assertEqual(tab.console, [])
            self.assertEqual(tab.value("document.title"), "Curation of <b>set</b>")
            self.assertEqual(tab.value("[...document.querySelectorAll('article h3')].map(each => each.textContent)"),
                             ["doc 1 copy of doc 0", "doc 2 similarity 0.900 with doc 0 through doc 1 (0.950)"])
            self.assertEqual(tab.value("[...document.querySelectorAll('article pre')].map(each => each.textContent)")[:2],
                             [f"{EVIL} 1", f"{EVIL} 0"])

    def labels(self, charts: list[dict]) -> list[dict]:
        """The ticks of charts, and the last value as their legend has it."""
        page = self.pages["run"].with_suffix(".made.html")
        head, tail = re.split(r'(?<=id="data">).*(?=</script>)', self.pages["run"].read_text(), flags=re.S)
        page.write_text(head + json.dumps({"title": "t", "subtitle": "s", "parts": charts}) + tail)
        with Tab(page, "--window-size=1200,900") as tab:
            self.assertEqual(tab.console, [])
            self.assertNotRegex(tab.value("document.body.innerHTML.replace(/<script.*/s, '')"), "NaN|Infinity|undefined")
            return tab.value("""[...document.querySelectorAll('figure')].map(each => ({
                y: [...each.querySelectorAll('.tick[text-anchor=end]')].map(tick => tick.textContent),
                x: [...each.querySelectorAll('.tick[text-anchor=middle]:not(.unit)')].map(tick => tick.textContent),
                last: each.querySelector('.legend b').textContent}))""")

    @staticmethod
    def chart(x: list, y: list, unit: str = "plain", over: str = "count", **more) -> dict:
        return {"kind": "chart", "title": "t", "unit": unit, "axes": [{"id": "step", "name": "step", "unit": over}],
                "lines": [{"name": "a", "color": 0, "step": x, "value": y}], **more}

    def test_ticks_are_labelled_as_people_write_numbers(self):
        cases = [(0, 1, "plain", {}, "0 0.5 1.0"), (0.31, 2.3, "plain", {}, "0 0.5 1.0 1.5 2.0 2.5"), (0, 0.93, "percent", {}, "0% 50% 100%"),
                 (0, 37748, "dollars", {}, "$0 $10k $20k $30k $40k"), (0, 3e9, "bytes", {}, "0 B|1 GiB|2 GiB|3 GiB"),
                 (0.001, 40, "plain", {"log": True}, "0.001 0.01 0.1 1 10 100"), (-5, 5, "plain", {}, "\u22125 0 5")]
        drawn = self.labels([self.chart([0, 1], [low, high], unit, **more) for low, high, unit, more, _ in cases])
        for (*case, wanted), found in zip(cases, drawn, strict=True):
            self.assertEqual(found["y"], wanted.split("|" if "|" in wanted else " "), case)
        drawn = self.labels([self.chart([0, 9370], [0, 1]), self.chart([0, 5400], [0, 1], over="seconds")])
        self.assertEqual([each["x"] for each in drawn], [["0", "5k"], ["0 s", "30 min", "1 h", "1 h 30 min"]])

    def test_every_range_has_a_few_ticks_with_labels_of_their_own(self):
        made = [self.chart([0, 1], [low, low + size], unit) for low in (-1e200, -5, 0, 1e-300, 0.1, 3, 1e16, 1e199)
                for size in (0, 1e-12, 1e-3, 1, 17, 1e5, 1e199) for unit in ("plain", "count", "percent", "bytes", "dollars", "seconds")]
        for chart, found in zip(made, self.labels(made), strict=True):
            self.assertLessEqual(1, len(found["y"]), chart)
            self.assertLessEqual(len(found["y"]), 16, chart)
            self.assertNotIn("", found["y"], chart)

    def test_numbers_read_as_they_do_in_the_tables(self):
        """As tests/report/html/quantity.cpp has them."""
        cases = [(0.0123456, "plain", "0.01235"), (999950, "plain", "1M"), (12345, "plain", "12.35k"), (0.0001234, "plain", "0.000123"),
                 (1.5e-7, "plain", "1.5e-07"), (1e16, "plain", "1e+16"), (-2.5e9, "plain", "-2.5G"), (1234567, "count", "1,234,567"),
                 (37748, "dollars", "$37,748"), (999.999, "dollars", "$1,000"), (0.00123, "dollars", "$0.00123"), (-2, "dollars", "\u2212$2.00"),
                 (0.0032, "seconds", "3.2 ms"), (59.96, "seconds", "1 min"), (3899, "seconds", "1 h 04 min"), (259200, "seconds", "3 d"),
                 (-90, "seconds", "\u22121 min 30 s"), (2**31, "bytes", "2.0 GiB"), (-2**31, "bytes", "\u22122.0 GiB"), (0.125, "percent", "12.5%")]
        drawn = self.labels([self.chart([0], [value], unit) for value, unit, _ in cases])
        self.assertEqual([each["last"] for each in drawn], [text for *_, text in cases])

    def test_the_policy_names_the_script_by_its_hash(self):
        page = self.pages["run"].read_text()
        script = re.findall(r"<script>(.*?)</script>", page, re.S)[-1]
        digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
        self.assertIn(f"script-src 'sha256-{digest}'", page)

    def test_colors_have_the_contrast_of_wcag_aa(self):
        def luminance(color: str) -> float:
            parts = [int(color[i:i + 2], 16) / 255 for i in (1, 3, 5)]
            parts = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
            return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2]

        def contrast(a: str, b: str) -> float:
            high, low = sorted((luminance(a), luminance(b)), reverse=True)
            return (high + 0.05) / (low + 0.05)

        page = self.pages["run"].read_text()
        looks = [dict(re.findall(r"--([\w]+): (#[0-9a-f]{6})", block))
                 for block in re.findall(r":root \{[^}]*\}", page)]
        self.assertEqual(len(looks), 2)
        for look in looks:
            for name in ("text", "soft", "good", "bad", *(f"s{i}" for i in range(8))):
                for behind in ("card", "page"):
                    self.assertGreaterEqual(contrast(look[name], look[behind]), 4.5, f"{name} on {behind}")
            for name in ("axis", "mark"):
                self.assertGreaterEqual(contrast(look[name], look["card"]), 3, name)
            for name in ("plan", "s0", "good", "bad"):  # bars, which lie on a rail
                self.assertGreaterEqual(contrast(look[name], look["grid"]), 3, name)


if __name__ == "__main__":
    program = os.path.abspath(sys.argv.pop(1))
    unittest.main()
