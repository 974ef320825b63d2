import pytest

from i2l.cli import main


def test_an_error_is_printed_as_it_is(monkeypatch, capsys):
    """Brackets in a name are no markup."""
    monkeypatch.setattr("sys.argv", ["i2l", "read", "[draft]/[red]x*.png"])
    with pytest.raises(SystemExit) as stopped:
        main()
    assert stopped.value.code == 1
    assert capsys.readouterr().err == "error: No file matches [draft]/[red]x*.png.\n"
