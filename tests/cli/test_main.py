import subprocess
import sys

import pytest

from i2l.cli import main


def run(monkeypatch, *arguments):
    """Give the exit status."""
    monkeypatch.setattr("sys.argv", ["i2l", *map(str, arguments)])
    with pytest.raises(SystemExit) as stopped:
        main()
    return stopped.value.code


def test_an_error_is_printed_as_it_is(monkeypatch, capsys):
    """Brackets in a name are no markup."""
    assert run(monkeypatch, "read", "[draft]/[red]x*.png") == 1
    assert capsys.readouterr().err == "error: No file matches [draft]/[red]x*.png.\n"


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("a.txt/report", "a.txt: File exists"),
        ("a.txt/b/report", "a.txt/b: Not a directory"),
        ("folder", "folder: Is a directory"),
        ("/proc/report", "/proc/report: No such file or directory"),
    ],
)
def test_a_file_that_cannot_be_written_is_named(monkeypatch, capsys, tmp_path, path, said):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.txt").write_text("x\n")
    (tmp_path / "folder").mkdir()
    assert run(monkeypatch, "normalize", "a.txt", "--quiet", "--report", path) == 1
    assert capsys.readouterr().err == f"error: {said}.\n"


def test_a_bug_keeps_its_traceback(monkeypatch):
    def fail():
        raise OSError("of no file")

    monkeypatch.setattr("i2l.cli.app", fail)
    with pytest.raises(OSError, match="of no file"):
        main()


def test_nobody_who_reads_on_is_no_fault(tmp_path):
    """As in `i2l normalize | head -1`: nothing is said, and the status is that of a broken pipe."""
    formulas = tmp_path / "formulas.txt"
    formulas.write_text("x + y\n" * 50_000)
    command = [sys.executable, "-m", "i2l", "normalize", str(formulas)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout.readline() == b"x + y\n"
        process.stdout.close()
        said = process.stderr.read()
        assert (process.wait(60), said) == (141, b"")
