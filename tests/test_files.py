"""Checksums of folders."""

import subprocess

import pytest

from i2l.files import CHECKSUMS, find_damage, write_checksums


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "a.txt").write_text("one")
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "c.txt").write_text("two")
    write_checksums(tmp_path)
    return tmp_path


def test_the_list_is_that_of_sha256sum(folder):
    done = subprocess.run(["sha256sum", "-c", CHECKSUMS], cwd=folder, check=True, capture_output=True)
    assert done.stdout == b"a.txt: OK\nb/c.txt: OK\n"


def test_what_has_changed_is_named(folder):
    names = ["a.txt", "b/c.txt", "absent.txt"]
    assert find_damage(folder, names) is None
    (folder / "b" / "c.txt").write_text("twx")
    assert f"{folder / 'b/c.txt'} is damaged" in find_damage(folder, names)
    assert find_damage(folder, ["a.txt"]) is None, "what is not used is not looked at"
    (folder / "a.txt").unlink()
    assert f"{folder / 'a.txt'} is missing" in find_damage(folder, names)
    (folder / "new.txt").write_text("three")
    assert "lacks new.txt" in find_damage(folder, ["new.txt"])


@pytest.mark.parametrize("text", ["", "x", "\n", "0" * 63 + "  a.txt\n", "0" * 64 + " a.txt\n", "\xff"])
def test_a_damaged_list_is_named(folder, text):
    (folder / CHECKSUMS).write_bytes(text.encode("latin-1"))
    assert CHECKSUMS in find_damage(folder, ["a.txt"])


def test_only_what_was_written_again_gets_a_new_checksum(folder):
    (folder / "a.txt").write_text("new")
    (folder / "b" / "c.txt").write_text("damaged")
    write_checksums(folder, ["a.txt", "absent.txt"])
    assert find_damage(folder, ["a.txt", "absent.txt"]) is None
    assert "c.txt is damaged" in find_damage(folder, ["b/c.txt"])


def test_a_folder_without_a_list_is_not_checked(folder):
    (folder / CHECKSUMS).unlink()
    assert find_damage(folder, ["a.txt", "absent.txt"]) is None
    write_checksums(folder, ["a.txt"])
    assert not (folder / CHECKSUMS).exists(), "the other files may have been damaged since"
