#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks the documentation against the sources.

    check.py check ROOT               reports what is wrong with the pages
    check.py fill ROOT                updates the marked blocks from their sources
    check.py extract ROOT OUT.cpp...  writes the pages' complete blocks as test cases
    check.py extract-page ROOT PAGE OUT.cpp
                                      the same for one page
    check.py runs ROOT                names the pages that have a program to run

A ```cpp block of a page is one of three:

* complete: it begins with an #include; it is compiled unchanged, and run if it has `int main() {`
  (which returns nothing);
* marked: the line before it reads <!-- from: examples/x.cpp#name -->; it is the text between
  `// [begin name]` and `// [end name]` of that file (the whole file without #name);
* a fragment: the line before it reads <!-- fragment -->; it is not checked.

Every sentence that a page quotes from the compiler ("static assertion failed: ...") must be in the
sources. Every policy header has a page, every relative link a target and the heading that it names,
and every page a link in each list that requires it. members.py checks tables of options against the
headers, and features.py fills the blocks that begin with <!-- features: VIEW --> from
docs/features.toml.
"""

import re
import shutil
import subprocess
import sys
import textwrap
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
import features  # noqa: E402
import members  # noqa: E402
import options  # noqa: E402
import page_script  # noqa: E402

# policy/*.hpp and report/*.hpp that are not policies
NO_PAGE = {"accessors", "finite_state", "formats", "kinds", "options", "recipe_name", "run_folder", "skipped_windows",
           "step_pace", "watched", "explain", "explain_plan", "find_learning_rate", "plan_inputs", "plan_memory", "plan_ranks",
           "rate_curve"}
NEED_CODE = ("README.md", "docs/policy/", "docs/report/", "docs/checkpoint/", "docs/cluster/", "docs/writing_a_policy.md",
             "docs/writing_a_sink.md", "docs/loop.md", "docs/data.md")

# Each list of pages, and the folder whose pages it must name.
LISTS = {"docs/README.md": ("docs/",), "docs/levers.md": ("docs/policy/", "docs/report/")}


@dataclass
class Block:
    page: str
    line: int  # of the first line inside the fence
    language: str
    mark: str
    text: str

    @property
    def place(self) -> str:
        return f"{self.page}:{self.line}"

    @property
    def complete(self) -> bool:
        return self.language == "cpp" and not self.mark and self.text.startswith("#include")

    @property
    def runs(self) -> bool:
        return self.complete and "int main() {" in self.text


def pages_of(root: Path) -> list[str]:
    found = [root / "README.md", root / "CONTRIBUTING.md", root / "CHANGELOG.md", root / "packaging/README.md",
             *sorted((root / "docs").rglob("*.md"))]
    return [str(page.relative_to(root)) for page in found if page.exists()]


def blocks_of(root: Path, page: str) -> list[Block]:
    blocks, mark, open_at = [], "", None
    lines = (root / page).read_text(encoding="utf-8").splitlines()
    for number, line in enumerate(lines, 1):
        if open_at is None and line.startswith("```"):
            open_at, language = number, line[3:].strip()
        elif open_at is not None and line.startswith("```"):
            text = "".join(line + "\n" for line in lines[open_at : number - 1])
            blocks.append(Block(page, open_at + 1, language, mark, text))
            open_at, mark = None, ""
        elif open_at is None:
            found = re.fullmatch(r"<!-- (from: .*|fragment) -->", line.strip())
            mark = found[1] if found else ""
    return blocks


def region(root: Path, mark: str) -> str:
    """The text that a mark names; raises ValueError with the reason if there is none."""
    path, _, name = mark.removeprefix("from: ").strip().partition("#")
    file = root / path
    if not file.is_file():
        raise ValueError(f"{path} is not there")
    lines = file.read_text(encoding="utf-8").splitlines()
    if name:
        ends = [f"// [begin {name}]", f"// [end {name}]"]
        at = [[i for i, line in enumerate(lines) if line.strip() == end] for end in ends]
        if [len(found) for found in at] != [1, 1] or at[0] > at[1]:
            raise ValueError(f"{path} has no '{ends[0]}' with one '{ends[1]}' behind it")
        lines = lines[at[0][0] + 1 : at[1][0]]
    inner = [line for line in lines if not re.match(r"\s*// \[(begin|end) ", line)]
    return textwrap.dedent("\n".join(inner)).strip("\n") + "\n"


def faults_of_block(root: Path, block: Block) -> list[str]:
    if block.mark.startswith("from: "):
        try:
            expected = region(root, block.mark)
        except ValueError as error:
            return [f"{block.place}: {error}"]
        if block.text.strip("\n") + "\n" != expected:
            return [f"{block.place}: differs from {block.mark[6:]}, which reads:\n{expected}"]
    elif block.language == "cpp" and not block.mark and not block.complete:
        return [f"{block.place}: no #include at its head, no <!-- from: --> and no <!-- fragment -->"]
    return []


def expanded(root: Path, header: Path) -> str:
    """The header as a compiler sees it: its sentences are made by macros."""
    compiler = shutil.which("c++") or shutil.which("clang++-19")
    if compiler is None:
        raise SystemExit("check: there is no C++ compiler to expand the macros of state_of.hpp with.")
    command = [compiler, "-std=c++20", "-E", "-P", "-I", str(root / "include"), str(header)]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def fill(root: Path) -> None:
    options.fill(root, pages_of(root))
    page_script.fill(root)
    for page in pages_of(root):
        lines = (root / page).read_text(encoding="utf-8").splitlines(keepends=True)
        # From the last to the first, so that earlier line numbers stay valid.
        for block in reversed(blocks_of(root, page)):
            if block.mark.startswith("from: "):
                end = block.line - 1 + len(block.text.splitlines())
                lines[block.line - 1 : end] = [region(root, block.mark)]
        (root / page).write_text(features.filled(root, page, "".join(lines)), encoding="utf-8")


def literals_of(root: Path) -> set[str]:
    """Every string literal of the headers and examples, and the expanded sentences of the hooks."""
    texts = [p.read_text(encoding="utf-8") for p in sorted((root / "include").rglob("*.?pp"))]
    texts += [p.read_text(encoding="utf-8") for p in sorted((root / "examples").glob("*.cpp"))]
    # It includes hooks.hpp.
    hooks = root / "include/frugal/core/compose/state_of.hpp"
    if hooks.exists():
        texts.append(expanded(root, hooks))
    joined = (re.sub(r'"\s+"', "", text) for text in texts)
    return {match for text in joined for match in re.findall(r'"((?:[^"\\\n]|\\.)*)"', text)}


def faults_of_sentences(root: Path, blocks: list[Block]) -> list[str]:
    known, faults = literals_of(root), []
    for block in blocks:
        for line in block.text.splitlines():
            quoted = re.search(r"static assertion failed(?: due to [^:]*)?: (frugal: .*)$", line)
            if quoted and quoted[1].replace('"', '\\"') not in known:
                faults.append(f"{block.place}: no header says: {quoted[1]}")
    return faults


def links_of(root: Path, page: str) -> list[str]:
    text = re.sub(r"^```.*?^```", "", (root / page).read_text(encoding="utf-8"), flags=re.M | re.S)
    return re.findall(r"\]\(([^)\s]+)\)", re.sub(r"`[^`\n]*`", "", text))


def target_of(root: Path, page: str, link: str) -> Path | None:
    """The target file of a relative link."""
    path = link.partition("#")[0]
    return ((root / page).parent / path).resolve() if path and "://" not in path else None


def anchors_of(text: str) -> set[str]:
    """The fragments that GitHub gives the headings of a page, and the ids that it names itself."""
    text = re.sub(r"^```.*?^```", "", text, flags=re.M | re.S)
    anchors, seen = set(re.findall(r"""<a (?:id|name)=["']([^"']+)["']""", text)), {}
    for heading in re.findall(r"^#{1,6} +(.*?)(?: +#+)? *$", text, flags=re.M):
        heading = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading)
        # What is code keeps its angle brackets until here; elsewhere they are HTML, which is not shown.
        pieces = re.split(r"(`[^`]*`)", heading)
        shown = "".join(each if each.startswith("`") else re.sub(r"<[^>]*>", "", each) for each in pieces)
        slug = re.sub(r"[^\w\- ]", "", shown.strip().lower()).replace(" ", "-")
        number = seen.get(slug, 0)
        seen[slug] = number + 1
        anchors.add(f"{slug}-{number}" if number else slug)
    return anchors


def faults_of_links(root: Path, page: str) -> list[str]:
    faults = []
    for link in dict.fromkeys(links_of(root, page)):
        target = target_of(root, page, link) or ((root / page) if link.startswith("#") else None)
        if target is None:
            continue
        if not target.exists():
            faults.append(f"{page}: links to {link}, which is not there")
            continue
        fragment = link.partition("#")[2]
        if fragment and target.suffix == ".md" and fragment not in anchors_of(target.read_text(encoding="utf-8")):
            faults.append(f"{page}: links to {link}, and {target.name} has no such heading")
    return faults


def faults_of_lists(root: Path, pages: list[str]) -> list[str]:
    faults = []
    for page, folders in LISTS.items():
        named = {target_of(root, page, link) for link in links_of(root, page)}
        faults += [f"{page}: has no link to {each}" for each in pages
                   if each.startswith(folders) and each != page and (root / each).resolve() not in named]
    return faults


def check(root: Path) -> list[str]:
    faults = []
    pages = pages_of(root)
    for page in pages:
        blocks = blocks_of(root, page)
        for block in blocks:
            faults += faults_of_block(root, block)
        faults += faults_of_sentences(root, blocks)
        faults += faults_of_links(root, page)
        tried = any(b.complete or b.mark.startswith("from: ") for b in blocks)
        if page.startswith(NEED_CODE) and not tried:
            faults.append(f"{page}: has no code that is compiled")
    faults += faults_of_lists(root, pages)
    faults += members.faults_of_members(root, pages)
    faults += options.fault(root, pages)
    faults += page_script.faults(root)
    faults += features.faults_of_features(root, pages)
    for folder in ("policy", "report"):
        policies = {p.stem for p in (root / "include/frugal" / folder).glob("*.hpp")} - NO_PAGE
        described = {Path(p).stem for p in pages if p.startswith(f"docs/{folder}/")}
        faults += [f"{folder}/{name}.hpp has no page docs/{folder}/{name}.md" for name in sorted(policies - described)]
        faults += [f"docs/{folder}/{name}.md has no {folder}/{name}.hpp" for name in sorted(described - policies)]
    return faults


PRELUDE = """\
// Made by tests/docs/check.py from the pages of the documentation.
#include <doctest/doctest.h>

{includes}

#include <unistd.h>

namespace {{

// Examples write to runs/: each gets an empty folder to do so in.
struct EmptyFolder {{
  EmptyFolder() {{
    std::filesystem::remove_all(here);
    std::filesystem::create_directories(here);
    std::filesystem::current_path(here);
  }}
  ~EmptyFolder() {{
    std::filesystem::current_path(here.parent_path());
    std::filesystem::remove_all(here);
  }}
  std::filesystem::path here =
      std::filesystem::temp_directory_path() / ("frugal-docs-" + std::to_string(::getpid()));
}};

}}  // namespace
"""

UNIT = """
namespace {space} {{
#line {line} "{page}"
{text}}}  // namespace {space}
"""

CASE = """
TEST_CASE("{page}: the program at line {line} runs") {{
  EmptyFolder const folder;
  {call};
}}
"""


def extract(root: Path, pages: list[str], outputs: list[Path]) -> None:
    complete = [b for page in pages for b in blocks_of(root, page) if b.complete]
    for turn, output in enumerate(outputs):
        includes, cases = ["#include <filesystem>", "#include <string>"], []
        for number in range(turn, len(complete), len(outputs)):
            block, body = complete[number], []
            # A main whose last line returns a value, such as an exit code: it must be 0.
            returns = re.search(r"^  return .*;.*\n}\s*\Z", block.text, re.MULTILINE) is not None
            main = "int main_of_page() {" if returns else "void main_of_page() {"
            for line in block.text.splitlines(keepends=True):
                include = re.match(r"\s*#\s*include\b.*", line)
                if include and include[0] not in includes:
                    includes.append(include[0])
                # An empty line instead keeps the compiler's line numbers those of the page.
                body.append("\n" if include else line.replace("int main() {", main))
            space = f"frugal_docs_{number}"
            call = f"{space}::main_of_page()"
            names = {"space": space, "line": block.line, "page": block.page,
                     "call": f"CHECK({call} == 0)" if returns else call}  # fmt: skip
            cases.append(UNIT.format(**names, text="".join(body)))
            if block.runs:
                cases.append(CASE.format(**names))
        text = PRELUDE.format(includes="\n".join(includes)) + "".join(cases)
        if not output.exists() or output.read_text(encoding="utf-8") != text:
            output.parent.mkdir(exist_ok=True)
            output.write_text(text, encoding="utf-8")


def main(arguments: list[str]) -> int:
    if len(arguments) == 2 and arguments[0] == "check":
        faults = check(Path(arguments[1]).resolve())
        print("\n".join(faults) or "the pages hold")
        return 1 if faults else 0
    if len(arguments) == 2 and arguments[0] == "fill":
        fill(Path(arguments[1]).resolve())
        return 0
    if len(arguments) >= 3 and arguments[0] == "extract":
        root = Path(arguments[1]).resolve()
        extract(root, pages_of(root), [Path(name) for name in arguments[2:]])
        return 0
    if len(arguments) == 4 and arguments[0] == "extract-page":
        extract(Path(arguments[1]).resolve(), [arguments[2]], [Path(arguments[3])])
        return 0
    if len(arguments) == 2 and arguments[0] == "runs":
        root = Path(arguments[1]).resolve()
        print("\n".join(p for p in pages_of(root) if any(b.runs for b in blocks_of(root, p))))
        return 0
    print(__doc__, file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
