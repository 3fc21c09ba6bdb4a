#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""cmake/declarations.py leaves out the bodies that it is to leave out, and no other text."""

import contextlib
import io
import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "cmake"))
import declarations  # noqa: E402


class Declarations(unittest.TestCase):
    def declares(self, text: str, expected: str):
        found = declarations.declarations(text)
        self.assertEqual(found.rstrip(), expected)
        self.assertEqual(found.count("\n"), text.count("\n"), "lines keep their numbers")

    def refuses(self, text: str, why: str, line: int):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        include, out = Path(folder.name) / "include", Path(folder.name) / "out"
        include.mkdir()
        (include / "a.hpp").write_text(text)
        said = io.StringIO()
        with contextlib.redirect_stderr(said):
            self.assertEqual(declarations.main(include, out), 1)
        self.assertIn(f"a.hpp:{line}: error: ", said.getvalue())
        self.assertIn(why, said.getvalue())
        self.assertFalse((out / "a.hpp").exists())

    def test_a_body_becomes_a_semicolon_and_the_rest_stays(self):
        self.declares("int a();\nFRUGAL_INLINE int f(int x) {\n  return x;\n}\n// FRUGAL_INLINE\nint b();\n",
                      "int a();\nint f(int x);\n\n\n// FRUGAL_INLINE\nint b();")  # fmt: skip

    def test_other_functions_keep_their_bodies(self):
        text = "inline int f() { return 1; }\ntemplate <class T> T g(T t) { return t; }"
        self.declares(text, text)

    def test_a_declaration_only_loses_the_mark(self):
        self.declares("class C { FRUGAL_INLINE void f(); };", "class C { void f(); };")

    def test_braces_in_strings_characters_and_comments_are_no_braces(self):
        for body in ('"}"', r'"\"}"', "'}'", r"'\''", "1'000 + '}'", 'R"(")})"', 'R"x()"})x"', "u8R\"(})\"",
                     "1  // }\n", "1 /* } ' \" \n */"):  # fmt: skip
            with self.subTest(body):
                self.declares(f"FRUGAL_INLINE auto f() -> T {{ return {body}; }}\nint b() {{}}",
                              "auto f() -> T;" + "\n" * body.count("\n") + "\nint b() {}")  # fmt: skip

    def test_initialisers_go_with_the_body_of_their_constructor(self):
        for initialisers in ("a_(1)", "a_{1}", "a_(1), b_{{2}, f({3})}", "Base<int, A{}>{1}, n::B(2)", "Ts(ts)..."):
            with self.subTest(initialisers):
                self.declares(f"  FRUGAL_INLINE explicit C(int a)\n      : {initialisers} {{}}\n  int b_{{}};",
                              "  explicit C(int a);\n\n  int b_{};")  # fmt: skip

    def test_a_definition_outside_of_its_class_is_left_out_whole(self):
        for head in ("int C::f(int a) const", "C::C(int a) : a_{a}", "C::~C()", "[[noreturn]] void n::f()",
                     "bool C::operator==(C const&) const", "std::map<int, A<(1 > 0)>> C::f()"):  # fmt: skip
            with self.subTest(head):
                marked = head.replace("] ", "] FRUGAL_INLINE ") if head[0] == "[" else f"FRUGAL_INLINE {head}"
                self.declares(f"int a;\n{marked} {{ return {{}}; }}\nint b;", "int a;\n\nint b;")

    def test_what_belongs_to_the_declaration_stays(self):
        for head in ("[[nodiscard]] M static int f() noexcept", "M bool operator()(int a) const", "M operator bool() const",
                     "M C& operator=(C const&) &", "M bool operator<(C const&) const", "M void operator<<(int)",
                     "M void f(A a = {}, B b = B{1, {2}}, std::string const& = \"{\")", "M auto f() const -> decltype(A{}.b)",
                     "M void f(std::function<void(int)> g) noexcept(noexcept(A{}))", "M ~C()", "M n::T f(n::T t)",
                     "M std::function<void(int)> f()", "friend M bool operator==(C const&, C const&)",
                     "[[noreturn]] M void f([[maybe_unused]] int a)", "M decltype(A{}) f()", "M A f(auto (*g)() -> int)"):  # fmt: skip
            with self.subTest(head):
                self.declares("class C {\n public:\n  " + head.replace("M", "FRUGAL_INLINE") + "\n  { if (a) { } }\n  int b() {}\n};",
                              "class C {\n public:\n  " + head.replace("M ", "") + ";\n\n  int b() {}\n};")  # fmt: skip

    def test_a_whole_if_of_the_preprocessor_goes_with_its_body(self):
        self.declares("FRUGAL_INLINE void f() {\n  #ifdef A\n  a();\n#else\n  b();\n#endif\n}\nint b;", "void f();" + "\n" * 7 + "int b;")

    def test_what_cannot_be_declared_alone_is_refused_with_file_and_line(self):
        self.refuses("\nFRUGAL_INLINE auto f() { return 1; }", "has a deduced return type", 2)
        self.refuses("\nFRUGAL_INLINE auto f() const { return 1; }", "has a deduced return type", 2)
        self.refuses("FRUGAL_INLINE decltype(auto) f() { return 1; }", "has a deduced return type", 1)
        self.refuses("template <class T>\nFRUGAL_INLINE T f(T t) { return t; }", "is a template", 2)
        self.refuses("struct S { FRUGAL_INLINE virtual void f() {} };", "is virtual", 1)
        self.refuses("struct S : B { FRUGAL_INLINE void f() override {} };", "has 'override'", 1)
        self.refuses("FRUGAL_INLINE constexpr int f() { return 1; }", "is constexpr", 1)
        self.refuses("struct S { FRUGAL_INLINE S() = default; };", "has '='", 1)
        self.refuses("struct S { FRUGAL_INLINE S() try : a() {} catch (...) {} };", "has 'try'", 1)
        self.refuses("FRUGAL_INLINE int x = 3;", "is no function", 1)

    def test_broken_text_is_refused(self):
        self.refuses("\n\nFRUGAL_INLINE void f() {\n  if (a) {\n}\n", "does not end", 3)
        self.refuses("FRUGAL_INLINE void f() {\n  a(];\n}", "']' that closes nothing", 2)
        self.refuses("FRUGAL_INLINE void f() {\n#if A\n}\n#endif", "contains half of an #if", 1)
        self.refuses("FRUGAL_INLINE void f() {\n#define A\n}", "contains #define", 1)

    def test_only_what_has_changed_is_written_and_what_is_gone_is_removed(self):
        with tempfile.TemporaryDirectory() as folder:
            include, out = Path(folder) / "include", Path(folder) / "out"
            (include / "frugal").mkdir(parents=True)
            for name in ("a", "b", "c", "src"):
                (include / "frugal" / f"{name}.hpp").write_text("FRUGAL_INLINE void f() { a(); }\n")
            self.assertEqual(declarations.main(include, out), 0)
            written = {path.name: path.stat().st_mtime_ns for path in (out / "frugal").iterdir()}
            self.assertEqual(sorted(written), ["a.hpp", "b.hpp", "c.hpp"])
            (include / "frugal" / "a.hpp").write_text("FRUGAL_INLINE void f() { b(); }\n")
            (include / "frugal" / "b.hpp").write_text("FRUGAL_INLINE void g() { a(); }\n")
            (include / "frugal" / "c.hpp").unlink()
            self.assertEqual(declarations.main(include, out), 0)
            self.assertEqual((out / "frugal" / "a.hpp").stat().st_mtime_ns, written["a.hpp"])
            self.assertEqual((out / "frugal" / "b.hpp").read_text(), "void g();\n")
            self.assertFalse((out / "frugal" / "c.hpp").exists())

    def test_the_headers_of_frugal_can_be_read(self):
        with tempfile.TemporaryDirectory() as folder:
            self.assertEqual(declarations.main(Path(__file__).parents[2] / "include", Path(folder)), 0)
            for path in Path(folder).rglob("*.hpp"):
                if path.name != "inline.hpp":
                    self.assertNotIn("FRUGAL_INLINE", path.read_text(), path)

    def test_a_folder_without_headers_is_an_error(self):
        with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stderr(io.StringIO()) as said:
            self.assertEqual(declarations.main(Path(folder), Path(folder) / "out"), 1)
        self.assertIn("has no headers", said.getvalue())


if __name__ == "__main__":
    unittest.main()
