#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Headers without the bodies of the functions that frugal::compiled has.

    declarations.py INCLUDE OUT    copies the headers of INCLUDE to OUT, where functions marked
                                   FRUGAL_INLINE are declared only

The body becomes `;`, with a constructor's initialisers; a definition outside of its class is left out.
Every line keeps its number. A file that would not change is not written, so that nothing that includes
it is compiled again. What the script cannot read is an error with file and line, and exit code 1.
"""

import re
import sys
from pathlib import Path

MARK = "FRUGAL_INLINE"
TOKEN = re.compile(
    r"""(?P<directive> ^[^\S\n]*\#(?:[^\n\\]|\\.)*)
      | (?P<space> [^\S\n]+ | \n | //[^\n]* | /\*.*?\*/)
      | (?P<text> (?:u8|[uUL])?R"(?P<fence>[^()\\\s]*)\(.*?\)(?P=fence)"
                | (?:u8|[uUL])?"(?:[^"\\\n]|\\.)*" | (?:u8|[uUL])?'(?:[^'\\\n]|\\.)+')
      | (?P<number> \.?\d(?:[eEpP][+-]|'?[\w.])*)
      | (?P<word> [A-Za-z_]\w*)
      | (?P<sign> :: | -> | <=> | .)""",
    re.VERBOSE | re.MULTILINE | re.DOTALL,
)
CLOSES = {"(": ")", "[": "]", "{": "}"}


class Unreadable(Exception):
    """One sentence for the reader, with the token where it happened."""

    def __init__(self, token, what):
        super().__init__(what)
        self.at = token.start()


class Marked:
    """The function behind one mark: tokens are matches of TOKEN, and positions are indices of tokens."""

    def __init__(self, tokens, mark):
        self.tokens, self.mark = tokens, mark
        self.first = mark  # of the declaration: [[noreturn]] and static may precede the mark
        while self.first > 0 and tokens[self.first - 1][0] not in (";", "{", "}", ":") \
                and tokens[self.first - 1].lastgroup != "directive":  # fmt: skip
            self.first -= 1
        if any(token[0] in ("template", "virtual", "constexpr") for token in tokens[self.first:mark]):
            raise self.refused("is a template, virtual or constexpr", "Write inline instead")
        parameters = self.parameters()
        self.outside = self.is_qualified(parameters)
        self.declared = self.declarator(self.closing(parameters) + 1)
        self.body = None  # positions of its braces
        if tokens[self.declared][0] != ";":
            opening = self.declared if tokens[self.declared][0] == "{" else self.initialisers()
            self.body = opening, self.closing(opening)

    def refused(self, why, advice, at=None):
        return Unreadable(self.tokens[self.mark if at is None else at],
                          f"a function marked {MARK} {why}. {advice}.")  # fmt: skip

    def at(self, position):
        if position >= len(self.tokens):
            raise self.refused("does not end", "Close its brackets")
        return self.tokens[position][0]

    def closing(self, opening):
        """The position of the bracket that closes this one."""
        open_brackets = []
        position = opening
        while True:
            token = self.at(position)
            if self.tokens[position].lastgroup == "sign" and token in CLOSES:
                open_brackets.append(CLOSES[token])
            elif open_brackets and token == open_brackets[-1]:
                open_brackets.pop()
                if not open_brackets:
                    return position
            elif token in CLOSES.values():
                raise self.refused(f"has a '{token}' that closes nothing", "Correct it", position)
            position += 1

    def behind_angles(self, position):
        """Behind the template arguments that begin here."""
        depth = 0
        while True:
            token = self.at(position)
            if token in CLOSES:
                position = self.closing(position)
            elif token in ("<", ">"):
                depth += 1 if token == "<" else -1
            if depth == 0:
                return position + 1
            position += 1

    def parameters(self):
        """The parenthesis that begins the parameters."""
        position, deduced = self.mark + 1, False
        while self.at(position) != "(":
            token = self.at(position)
            if token in ("template", "virtual", "constexpr", "consteval", "requires"):
                raise self.refused(f"is {token}", "Write inline instead")
            if token in (";", "{", "}", "="):
                raise self.refused("is no function", f"Remove {MARK}")
            if token == "operator":  # its name may be two parentheses, or contain angle brackets
                position += 3 if self.at(position + 1) == "(" else 2
                while self.at(position) != "(":
                    position += 1
                break
            deduced |= token == "auto"
            if token == "decltype":
                deduced |= self.at(position + 2) == "auto"
                position = self.closing(position + 1) + 1
            elif token == "[":
                position = self.closing(position) + 1
            else:
                position = self.behind_angles(position) if token == "<" else position + 1
        behind = self.closing(position) + 1
        while deduced and self.at(behind) not in (";", "{", "->"):
            behind += 1
        if deduced and self.at(behind) != "->":
            raise self.refused("has a deduced return type", "Name the type, or write inline instead")
        return position

    def is_qualified(self, parameters):
        name = parameters - 1
        for position in range(self.mark, parameters):
            if self.tokens[position][0] == "operator":
                name = position
        if self.tokens[name - 1][0] == "~":
            name -= 1
        return self.tokens[name - 1][0] == "::"

    def declarator(self, position):
        """The `;`, `{` or `:` that ends the declarator, behind noexcept, a return type and the like."""
        while self.at(position) not in (";", "{", ":"):
            token = self.at(position)
            if token in ("=", "try", "requires", "override", "final"):
                raise self.refused(f"has '{token}'", "Write inline instead", position)
            if token == "<":
                position = self.behind_angles(position)
            else:
                position = self.closing(position) + 1 if token in CLOSES else position + 1
        return position

    def initialisers(self):
        """The brace of the body behind a constructor's initialisers."""
        position = self.declared
        while True:
            position += 1  # ':' or ','
            while self.at(position) not in ("(", "{"):
                position = self.behind_angles(position) if self.at(position) == "<" else position + 1
            position = self.closing(position) + 1
            while self.at(position) == ".":  # of a pack
                position += 1
            if self.at(position) == "{":
                return position
            if self.at(position) != ",":
                raise self.refused("has initialisers that cannot be read", "Simplify them", position)


def check_directives(function, text, begin, end):
    depth = 0
    for token in TOKEN.finditer(text, begin, end):
        if token.lastgroup == "directive":
            word = re.match(r"\s*#\s*(\w*)", token[0])[1]
            depth += word.startswith("if") - (word == "endif")
            if word not in ("if", "ifdef", "ifndef", "elif", "else", "endif") or depth < 0:
                raise function.refused(f"contains #{word}", "Move it out of the function")
    if depth:
        raise function.refused("contains half of an #if", "Move all of it out of the function, or into it")


def declarations(text):
    """The text of the header with declarations alone; raises Unreadable."""
    tokens = [token for token in TOKEN.finditer(text) if token.lastgroup != "space"]
    kept, upto = [], 0
    for mark, token in enumerate(tokens):
        if token[0] != MARK or token.start() < upto:
            continue
        function = Marked(tokens, mark)
        begin, end, instead = token.start(), token.end(), ""
        if function.body is None:  # defined elsewhere
            kept += [text[upto:begin]]
            upto = end + len(re.match(" ?", text[end:])[0])
            continue
        if function.outside:
            begin = tokens[function.first].start()
        else:
            kept += [text[upto:begin]]
            upto = end + len(re.match(" ?", text[end:])[0])
            begin, instead = tokens[function.declared - 1].end(), ";"
        end = tokens[function.body[1]].end()
        check_directives(function, text, begin, end)
        kept += [text[upto:begin], instead, "\n" * text.count("\n", begin, end)]
        upto = end
    return "".join([*kept, text[upto:]])


def main(include: Path, out: Path) -> int:
    wanted = {path.relative_to(include): path for path in sorted(include.rglob("*.hpp"))}
    wanted.pop(Path("frugal/src.hpp"), None)  # the source of the library, which has the headers with bodies
    if not wanted:
        print(f"declarations: {include} has no headers. Name the folder that contains frugal/.", file=sys.stderr)
        return 1
    for old in out.rglob("*.hpp"):
        if old.relative_to(out) not in wanted:
            old.unlink()
    for name, path in wanted.items():
        text = path.read_text(encoding="utf-8")
        try:
            text = declarations(text)
        except Unreadable as error:
            line = text.count("\n", 0, error.at) + 1
            print(f"{path}:{line}: error: {error}", file=sys.stderr)
            return 1
        target = out / name
        if not target.exists() or target.read_text(encoding="utf-8") != text:
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    sys.exit(main(Path(sys.argv[1]), Path(sys.argv[2])))
