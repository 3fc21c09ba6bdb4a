# SPDX-License-Identifier: Apache-2.0
"""Compares the tables of options on the pages with the members in the headers.

Every table with a column "default" has a comment in the line before it:

    <!-- members: policy/rollback.hpp Rollback -->
    <!-- members: data/a.hpp A; data/b.hpp B; rule = data/c.hpp Ema; not: with, out -->
    <!-- no members -->                 a table of flags, functions or types alone

Each member of the structs is in the table unless the comment names it after `not:`, each row of a
member is one of them, and where the header has a value the page has the same. A table with a column
"where" has members in the rows whose `where` begins with "member" or the name of a struct; in one
without, every row whose first cell is code of a plain name is of a member: `Type::name` names its
struct, `a.b` is a member of a member, and `.b` after `a.x` is `a.b`. If one member of a member has a
row, all have; `rule = ...` says where its struct is if its type is an alias. Bases, functions,
statics, private members and what fit sets (Outcome<...>) are no members. Instead of "default" a
table may have a column for each struct, `AdamW` for `Optimize<AdamW>`.
"""

import re
from dataclasses import dataclass, field
from pathlib import Path

UNITS = {"kib": 2**10, "mib": 2**20, "gib": 2**30, "kb": 1e3, "mb": 1e6, "gb": 1e9, "s": 1, "seconds": 1, "second": 1,
         "ms": 1e-3, "milliseconds": 1e-3, "min": 60, "minutes": 60, "h": 3600, "hours": 3600, "days": 86400}
HIDDEN = {ord(letter): chr(0xE000 + ord(letter)) for letter in "{}();,<>="}  # while they are in a string
SHOWN = {ord(hidden): chr(letter) for letter, hidden in HIDDEN.items()}
NOTHING = {"", "none", "empty", "nothing", "required", "no"}


def code_of(text: str) -> str:
    """The header without comments, with what could be taken for code in its strings hidden."""
    pattern = r'//[^\n]*|/\*.*?\*/|"(?:[^"\\\n]|\\.)*"|\'(?:[^\'\\\n]|\\.)\''

    def without(found: re.Match[str]) -> str:
        piece = found[0]
        if piece.startswith("/"):
            return " "
        return piece.translate(HIDDEN)

    text = re.sub(r"\d'(?=\d)", lambda found: found[0][0], text)  # 5'000: no character literal
    text = re.sub(pattern, without, text, flags=re.S)
    return re.sub(r"^\s*#.*?(?<!\\)$", "", text, flags=re.M)


def body_of(code: str, name: str) -> str | None:
    """The text between the braces of the struct's primary template, or of its first definition."""
    opening = rf"\b(?:struct|class)\s+(?:\[\[[^\]]*\]\]\s*)?{re.escape(name)}(?![\w<])[^;{{()]*{{"
    for found in re.finditer(opening, code):
        depth, at = 1, found.end()
        while at < len(code) and depth:
            depth += {"{": 1, "}": -1}.get(code[at], 0)
            at += 1
        return code[found.end() : at - 1]
    return None


def statements_of(body: str) -> list[str]:
    """The statements at the body's own depth; what is in inner braces is kept as {...}."""
    found, depth, brackets, current = [], 0, 0, ""
    for at, letter in enumerate(body):
        depth += letter == "{"
        brackets += {"(": 1, ")": -1}.get(letter, 0)
        current += letter
        if letter == "}":
            depth -= 1
            # The end of a function's or a type's body ends a statement, that of an initialiser does not.
            value = re.search(r"[^=!<>]=[^=]", re.sub(r"\([^()]*\)|operator\W+", "", current))
            if depth == 0 and brackets == 0 and not value and not re.match(r"\s*[;,]", body[at + 1 :]):
                found.append(current.strip())
                current = ""
        elif letter == ";" and depth == 0 and brackets == 0:
            found.append(current[:-1].strip())
            current = ""
    return found


def without_angles(text: str) -> str:
    """Text with everything in <...> blanked, so that commas and brackets in types do not count."""
    text, out, depth = re.sub(r"<<|<=|>=", "  ", text), "", 0
    for at, letter in enumerate(text):
        if letter == "<":
            depth += 1
        out += " " if depth else letter
        if letter == ">" and depth and text[at - 1] != "-":
            depth -= 1
    return out


@dataclass
class Member:
    name: str
    type: str
    value: str | None  # the initialiser, None without one


def members_of(body: str) -> dict[str, Member]:
    members: dict[str, Member] = {}
    hidden = False
    for statement in statements_of(body):
        while label := re.match(r"(public|private|protected)\s*:\s*", statement):
            hidden = label[1] != "public"
            statement = statement[label.end() :]
        statement = re.sub(r"\[\[[^\]]*\]\]\s*", "", statement)
        if hidden or not statement or re.match(
            r"(using|static|static_assert|template|struct|class|enum|union|friend|typedef|constexpr|explicit|virtual|"
            r"FRUGAL_\w+|operator|~)\b|~", statement):  # fmt: skip
            continue
        plain = without_angles(statement)
        head = re.split(r"[={]", plain)[0]
        if "(" in head or re.search(r"\boperator\b", head):
            continue  # a function
        type_ = None
        # `double a = 1, b = 2` has several; commas within (...) and {...} belong to one.
        for piece_at, piece in enumerate(split(statement, plain)):
            declared = re.match(r"(?s)([^={]*?)\s*(?:=\s*(.*)|{(.*)})$", piece)
            left, value = (declared[1], (declared[2] or declared[3] or "").strip()) if declared else (piece, None)
            found = re.search(r"(\w+)\s*$", left)
            if not found:
                continue
            type_ = left[: found.start()].strip() if piece_at == 0 else type_
            members[found[1]] = Member(found[1], type_ or "", value)
    return members


def split(text: str, plain: str) -> list[str]:
    pieces, depth, start = [], 0, 0
    for at, letter in enumerate(plain):
        depth += {"(": 1, "{": 1, "[": 1, ")": -1, "}": -1, "]": -1}.get(letter, 0)
        if letter == "," and depth == 0:
            pieces.append(text[start:at].strip())
            start = at + 1
    return [*pieces, text[start:].strip()]


@dataclass
class Headers:
    root: Path
    known: dict[Path, str] = field(default_factory=dict)

    def code(self, path: Path) -> str:
        if path not in self.known:
            self.known[path] = code_of(path.read_text(encoding="utf-8"))
        return self.known[path]

    def struct(self, path: str, name: str) -> dict[str, Member] | None:
        file = self.root / "include/frugal" / path
        body = body_of(self.code(file), name) if file.is_file() else None
        return None if body is None else members_of(body)

    def anywhere(self, type_: str) -> dict[str, Member]:
        """The members of the struct that a member's type names; empty where no header has it."""
        name = re.sub(r"<.*", "", type_.removeprefix("std::optional<")).rstrip(">").strip().split("::")[-1]
        for file in sorted((self.root / "include").rglob("*.hpp")):
            if re.search(rf"\b(?:struct|class)\s+{re.escape(name)}\b", self.code(file)):
                body = body_of(self.code(file), name)
                if body is not None:
                    return members_of(body)
        return {}


def number(text: str) -> float | None:
    """A number with a unit, as a page or a header writes it: `1 GiB`, 4'000, std::chrono::hours(2), 30s."""
    text = text.strip().replace("'", "")
    duration = re.fullmatch(r"(?:std::chrono::)?(\w+)[({](.+)[)}]", text)
    if duration and duration[1] in UNITS:
        inner = number(duration[2])
        return None if inner is None else inner * UNITS[duration[1]]
    shift = re.fullmatch(r"[a-zA-Z_:]*[({]?(\d+)[a-zA-Z]*[)}]?\s*<<\s*(\d+)", text)
    if shift:
        return float(int(shift[1]) << int(shift[2]))
    factors = [each.strip() for each in text.split("*")]
    if len(factors) > 1:
        values = [number(each) for each in factors]
        result = 1.0
        for value in values:
            if value is None:
                return None
            result *= value
        return result
    found = re.fullmatch(r"(-?[\d,]*\.?\d+(?:e[-+]?\d+)?)\s*([a-zA-Z]*)", text)
    if not found:
        return None
    unit = found[2].lower()
    if unit not in ("", "u", "ul", "ull", "f") and unit not in UNITS:
        return None
    return float(found[1].replace(",", "")) * UNITS.get(unit, 1)


def same(member: Member, page: str) -> bool:
    """Whether a page's default says what the header's initialiser is."""
    value = (member.value or "").translate(SHOWN).strip()
    unit = re.fullmatch(r"(?:std::chrono::)(milliseconds|seconds|minutes|hours)", member.type)
    if unit and number(value) is not None and re.fullmatch(r"[\d.]+", value):
        value = f"std::chrono::{unit[1]}({value})"
    page = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", page).replace("`", "").strip()
    first = re.split(r"[;(]|, ", page, maxsplit=1)[0].strip()
    if value in ("true", "false"):
        wanted = {"true": {"true", "yes", "on"}, "false": {"false", "no", "off"}}[value]
        return first in wanted
    wanted = number(value)
    if wanted is not None:
        count, _, unit = first.partition(" ")  # "100 code points"
        shown = [number(page), number(first), None if unit.split(" ")[0].lower() in UNITS else number(count)]
        # A -1 or a number without end that stands for "none" is said in words.
        return wanted in shown or (wanted < 0 and first in NOTHING)
    if value in ("", "{}", "nullptr", "std::nullopt", '""'):
        if member.type.startswith("std::optional"):
            return first not in ("true", "false")  # what counts without one
        return number(first) in (None, 0) and first not in ("true", "false")
    quoted = re.fullmatch(r'"(.*)"', value)
    if quoted:
        return first.strip('"') == quoted[1] or page.strip('"') == quoted[1]
    name = re.fullmatch(r"(?:\w+::)*(\w+)", value)
    if name and value[0].isalpha():
        # An enumerator or a constant: the page has its name, or says where it comes from.
        last = re.split(r"::", first)[-1]
        return last == name[1] or (number(first) is None and "::" not in first and first not in ("true", "false")
                                   and not re.fullmatch(r"\w+", first))  # fmt: skip
    return True  # an expression: the page says it in words


def cells_of(line: str) -> list[str]:
    return [cell.strip() for cell in re.split(r"(?<!\\)\|", line.strip().strip("|"))]


@dataclass
class Table:
    line: int
    mark: str
    head: list[str]
    rows: list[list[str]]


def tables_of(text: str) -> list[Table]:
    """Tables with a column "default" or with a mark."""
    lines, tables, fenced = text.splitlines(), [], False
    for at, line in enumerate(lines):
        fenced ^= line.startswith("```")
        if fenced or not line.startswith("|") or at + 1 == len(lines) or not re.match(r"\|[\s:|-]+$", lines[at + 1]):
            continue
        head = cells_of(line)
        mark = re.fullmatch(r"<!-- ((?:no )?members.*) -->", lines[at - 1].strip()) if at else None
        if "default" not in head and not mark:
            continue
        end = at + 2
        while end < len(lines) and lines[end].startswith("|"):
            end += 1
        tables.append(Table(at + 1, mark[1] if mark else "", head, [cells_of(row) for row in lines[at + 2 : end]]))
    return tables


def named(cell: str) -> list[str]:
    """The members that a first cell names: of `a.x`, `.y` the second is a.y."""
    names, prefix = [], ""
    for piece in re.findall(r"`([^`]+)`", cell):
        if not re.fullmatch(r"[\w.]*(?:::)?[\w.]+", piece):
            return names
        if piece.startswith("."):
            piece = prefix + piece
        names.append(piece)
        prefix = piece.rpartition(".")[0]
    return names


def faults_of_table(headers: Headers, page: str, table: Table) -> list[str]:
    place = f"{page}:{table.line}"
    if not table.mark:
        return [f"{place}: a table of defaults without <!-- members: HEADER Struct --> or <!-- no members -->"]
    if table.mark == "no members":
        return []
    structs: dict[str, dict[str, Member]] = {}
    inner_structs: dict[str, dict[str, Member]] = {}
    left_out: set[str] = set()
    for each in table.mark.removeprefix("members: ").split(";"):
        if each.strip().startswith("not:"):
            left_out = {name.strip() for name in each.partition(":")[2].split(",")}
            continue
        of_member, _, rest = each.rpartition(" = ")
        path, _, name = rest.strip().partition(" ")
        found = headers.struct(path, name)
        if found is None:
            return [f"{place}: {path} has no struct {name}"]
        (inner_structs if of_member else structs)[of_member.strip() or name] = found
    where = next((i for i, cell in enumerate(table.head) if cell == "where"), None)
    columns = {}
    for name in structs:
        inner = re.sub(r".*<(.*)>", r"\1", name)
        column = next((each for each in (name, inner, "default") if each in table.head), None)
        if column is None:
            return [f"{place}: has no column default, and none {inner}"]
        columns[name] = table.head.index(column)
    faults, shown, seen = [], set(), set()
    nested: dict[str, dict[str, Member]] = {}
    for row in table.rows:
        if where is not None and not row[where].replace("`", "").startswith(("member", *structs)):
            continue
        names = named(row[0])
        if where is not None and not names:
            faults.append(f"{place}: a row of a member that names none: {row[0]}")
        for turn, written in enumerate(names):
            owner, _, path = written.rpartition("::")
            top, _, rest = path.partition(".")
            owners = [name for name in structs if (not owner or owner == name) and top in structs[name]]
            if not owners:
                faults.append(f"{place}: `{written}` is no member of {', '.join(structs)}")
            for name in owners:
                shown.add((name, top))
                texts = re.split(r", ?(?![^(]*\))", row[columns[name]]) if len(names) > 1 else [row[columns[name]]]
                text = texts[turn] if len(texts) == len(names) else row[columns[name]]
                member, outer = structs[name][top], top
                while member and rest:
                    step, _, rest = rest.partition(".")
                    inside = inner_structs.get(outer) or headers.anywhere(member.type)
                    nested.setdefault(outer, inside)
                    seen.add(f"{outer}.{step}")
                    member, outer = inside.get(step), f"{outer}.{step}"
                if member is None:
                    faults.append(f"{place}: `{written}` is no member of {name}")
                elif not same(member, text):
                    faults.append(f"{place}: the default of `{written}` is {member.value or 'none'}, not: {text}")
    missing = [f"{struct}::{name}" if len(structs) > 1 else name for struct, members in structs.items()
               for name, member in members.items() if (struct, name) not in shown and name not in left_out
               and not member.type.startswith("Outcome<")]  # fmt: skip
    missing += [f"{outer}.{name}" for outer, members in nested.items() for name in members
                if not {f"{outer}.{name}"} & (seen | left_out)]  # fmt: skip
    faults += [f"{place}: has no row for the member `{name}`" for name in missing]
    unknown = left_out - {name for members in structs.values() for name in members}
    unknown -= {f"{outer}.{name}" for outer, members in nested.items() for name in members}
    return faults + [f"{place}: leaves out {name}, which is no member" for name in sorted(unknown)]


def faults_of_members(root: Path, pages: list[str]) -> list[str]:
    headers = Headers(root)
    return [fault for page in pages for table in tables_of((root / page).read_text(encoding="utf-8"))
            for fault in faults_of_table(headers, page, table)]  # fmt: skip
