"""`i2l normalize` as a user types it."""

import json
import lzma
import subprocess
import sys

import pytest

HOSTILE = [
    b"{" * 100_000,
    b"x" * 1_000_000,
    b"a\x00b",
    b"\xff\xfe broken",
    rb"\left( \begin{array} }",
    rb"\def\x{\x\x}\x{",
    b"\r",
    rb"\hat" * 10_000,
]


def run(*arguments, stdin=b""):
    command = [sys.executable, "-m", "i2l", "normalize", *arguments]
    return subprocess.run(command, input=stdin, capture_output=True, check=False)


def test_one_line_out_for_one_line_in(tmp_path):
    report = tmp_path / "report.jsonl"
    done = run("--report", str(report), stdin=b"{a \\over b}\n\\frac{\n\nx^2_\\alpha")
    assert done.returncode == 0
    assert done.stdout == b"{ \\frac { a } { b } }\n\n\nx _ { \\alpha } ^ { 2 }\n"
    assert b"2 of 4 formulas normalised, 2 rejected" in done.stderr
    entries = [json.loads(line) for line in report.read_text().splitlines()]
    assert [(entry["line"], entry["reason"], entry["position"]) for entry in entries] == [
        (2, "unmatched brace", 5),
        (3, "empty", 0),
    ]


def test_hostile_lines_get_a_reason_each():
    done = run("--strict", stdin=b"\n".join([*HOSTILE, b"x", b""]))
    assert done.returncode == 1
    assert done.stdout == b"\n" * len(HOSTILE) + b"x\n"
    assert f"{len(HOSTILE)} rejected".encode() in done.stderr
    assert b"Traceback" not in done.stderr


def test_packed_files_macros_and_pretty_print(tmp_path):
    packed = tmp_path / "formulas.txt.xz"
    packed.write_bytes(lzma.compress(b"\\half x'\n"))
    macros = tmp_path / "macros.tex"
    macros.write_text(r"\newcommand{\half}{\frac{1}{2}}")
    done = run("--pretty", "--quiet", "--macros", str(macros), str(packed))
    assert (done.stdout, done.stderr) == (b"\\frac{1}{2}x'\n", b"")


@pytest.mark.parametrize("content", [None, b"not xz"])
def test_a_file_that_cannot_be_read_is_an_error(tmp_path, content):
    path = tmp_path / "formulas.txt.xz"
    if content:
        path.write_bytes(content)
    done = run(str(path))
    assert done.returncode == 1
    assert b"formulas.txt.xz" in done.stderr
    assert b"Traceback" not in done.stderr
