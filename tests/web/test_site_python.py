"""Pyodide's WebAssembly as the site has it: in the loop that interprets Python nothing is left to guess."""

import subprocess

import pytest

from recipes.site import PYODIDE
from recipes.site_python import CALL, CALL_INDIRECT, Module, instructions, prevent_guesses, read_number
from tests.web.site import node

MAX_COPIED_BYTES = 500  # V8's --wasm-inlining-max-size


@pytest.fixture(scope="module")
def original():
    node()  # or skips
    return PYODIDE.read_bytes()


def calls_of(module):
    """The largest function: its indirect calls, and the sizes of the functions that it calls."""
    body = max(module.bodies, key=len)
    indirect, sizes = 0, []
    for what, start, _ in instructions(body):
        indirect += what == CALL_INDIRECT
        if what == CALL:
            place = read_number(body, start + 1)[0] - module.num_imported
            sizes += [len(module.bodies[place])] if place >= 0 else []
    return indirect, sizes


def test_module_is_written_as_it_was(original):
    assert Module(original).write() == original


def test_nothing_is_left_to_guess(original):
    indirect, sizes = calls_of(Module(original))
    assert indirect > 20
    assert min(sizes) <= MAX_COPIED_BYTES
    indirect, sizes = calls_of(Module(prevent_guesses(original)))
    assert indirect == 0
    assert min(sizes) > MAX_COPIED_BYTES


def test_changed_module_computes_the_same(tmp_path):
    """A module whose largest function calls another one directly, and by a table with two numbers to add."""
    number, two = bytes((0x60, 0, 1, 0x7F)), bytes((0x60, 2, 0x7F, 0x7F, 1, 0x7F))
    add = bytes((0, 0x20, 0, 0x20, 1, 0x6A, 0x0B))  # takes two numbers, gives their sum
    seven = bytes((0, 0x41, 7, 0x0B))
    # ((40 + 2) by the table) - seven(), after some that do nothing
    large = bytes((0, *[1] * 40, 0x41, 40, 0x41, 2, 0x41, 0, 0x11, 1, 0, 0x10, 1, 0x6B, 0x0B))

    def section(kind, *content):
        joined = b"".join(content)
        return bytes((kind, len(joined))) + joined

    module = b"".join(
        (
            b"\0asm\1\0\0\0",
            section(1, b"\2", number, two),
            section(2, b"\0"),
            section(3, bytes((3, 1, 0, 0))),
            section(4, bytes((1, 0x70, 0, 1))),
            section(7, b"\1", b"\1f", bytes((0, 2))),
            section(9, bytes((1, 0, 0x41, 0, 0x0B, 1, 0))),
            section(10, b"\3", *(bytes((len(body),)) + body for body in (add, seven, large))),
        )
    )
    changed = prevent_guesses(module)
    assert calls_of(Module(changed))[0] == 0
    for name, content in {"before": module, "after": changed}.items():
        (tmp_path / name).write_bytes(content)
    script = """for (const name of process.argv.slice(1)) {
      const module = new WebAssembly.Module(require("node:fs").readFileSync(name));
      console.log(new WebAssembly.Instance(module).exports.f());
    }"""
    command = [*node(), "-e", script, tmp_path / "before", tmp_path / "after"]
    assert subprocess.run(command, check=True, capture_output=True, text=True).stdout.split() == ["35", "35"]
