"""The command line and the Python names as one surface: the same words everywhere, listed in docs/api.md."""

import inspect
import json
import re
from importlib.metadata import PackageNotFoundError
from pathlib import Path

import pytest
from typer.main import get_command
from typer.testing import CliRunner

import i2l
from i2l import errors
from i2l.cli import RENAMED, app
from tests.kept import assert_text_kept

API = (Path(__file__).parents[2] / "docs" / "api.md").read_text()
COMMANDS = get_command(app).commands


def options_of(command):
    return {name for parameter in command.params for name in (*parameter.opts, *parameter.secondary_opts)}


def help_of(*arguments):
    done = CliRunner().invoke(app, [*arguments], env={"COLUMNS": "200", "TERM": "dumb"})
    assert done.exit_code == 0
    return done.output


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_short_help(name):
    assert "Usage" in help_of(name, "-h")


def test_readers_come_first_in_the_help():
    assert list(COMMANDS)[:3] == ["read", "explain", "serve"]
    text = help_of("-h")
    places = [re.search(rf"^\W*{name} ", text, re.M).start() for name in COMMANDS]
    assert places == sorted(places)
    assert "--install-completion" in text


def test_one_word_for_one_thing():
    everywhere = {name: options_of(command) for name, command in COMMANDS.items()}
    for name in ("read", "explain", "evaluate", "train"):
        assert "--beam-width" in everywhere[name]
    for name in ("read", "evaluate", "calibrate", "render", "build"):
        assert "--jobs" in everywhere[name]
    for name in ("read", "explain", "evaluate"):
        assert {"--guard", "--no-guard"} <= everywhere[name]
        (guard,) = [parameter for parameter in COMMANDS[name].params if parameter.name == "guard"]
        assert guard.default is True
    for options in everywhere.values():
        assert not options & set(RENAMED)


@pytest.mark.parametrize("argument", [["--beam", "0"], ["--beam=0"]])
def test_old_names_are_taken_and_not_shown(argument):
    done = CliRunner().invoke(app, ["read", "x.png", *argument])
    assert done.exit_code == 2
    assert "--beam-width" in done.output
    assert "--beam " not in help_of("read", "-h")


def test_python_names():
    assert set(dir(i2l)) == set(i2l.__all__)
    for name in i2l.__all__:
        assert getattr(i2l, name) is not None
        assert f"`{name}`" in API
    assert issubclass(i2l.NotAFormulaError, i2l.ImageError)
    assert issubclass(i2l.ImageError, i2l.I2LError)


def test_the_list_of_what_is_stable_is_whole():
    for name in ("read", "explain", "serve", "page", "evaluate", "render", "normalize"):
        assert f"`i2l {name}`" in API
    for name in ("read", "explain"):
        for option in {word for word in options_of(COMMANDS[name]) if word.startswith("-")} - {
            "--help",
            "-h",
        }:
            assert f"`{option}`" in API, f"{name} {option}"
    for method in ("read", "read_many", "with_options"):
        assert f"`Reader.{method}`" in API
    for field in i2l.Reading.__dataclass_fields__:
        assert f"`{field}`" in API


def given(option):
    """What counts where an option is not given."""
    return option.default() if callable(option.default) else option.default


def said(option):
    """An option as docs/api.md writes it, with what counts where it is not given, and its range."""
    value, low, high = given(option), getattr(option.type, "min", None), getattr(option.type, "max", None)
    words = [f"`{option.opts[0]}`"]
    if value not in (None, "") and not isinstance(value, bool):
        words.append(f"{value:g}" if isinstance(value, float) else f"{value}")
    if low is not None:
        words.append(f"({low:g} or more)" if high is None else f"({low:g} to {high:g})")
    return " ".join(words)


@pytest.mark.parametrize("name", sorted(set(COMMANDS) - {"models", "normalize"}))
def test_what_counts_where_nothing_is_given_is_written_down(name):
    """Who leaves an option out relies on it too, so it changes with the document alone."""
    options = [
        option
        for option in COMMANDS[name].params
        # As many processes as there are cores is another number everywhere.
        if option.opts[0] not in ("--jobs", "--help")
        and (given(option) not in (None, "", False, ()) or getattr(option.type, "min", None) is not None)
    ]
    assert f"| `{name}` | {', '.join(map(said, options))} |" in API


def test_python_counts_on_what_the_command_line_counts_on():
    from i2l.desktop.snip import SnipOptions
    from i2l.web.routes import ServeOptions

    def defaults(name):
        return {option.name: given(option) for option in COMMANDS[name].params}

    serve, served = defaults("serve"), ServeOptions()
    for name in ("model", "workers", "threads", "max_batch", "token"):
        assert serve[name] == getattr(served, name), name
    assert (serve["queue"], serve["timeout"]) == (served.queue_size, served.timeout_s)
    assert serve["max_upload"] * 1e6 == served.max_upload_bytes
    assert serve["max_pixels"] * 1e6 == served.max_pixels
    snip, snipped = defaults("snip"), SnipOptions()
    for name in ("output", "model", "region", "resident", "window"):
        assert snip[name] == getattr(snipped, name), name
    assert (snip["delay"], snip["to_stdout"]) == (snipped.delay_s, not snipped.copy)
    read, options = defaults("read"), inspect.signature(i2l.Reader).parameters
    for name in ("model", "beam_width", "n_best", "guard", "check", "threads"):
        assert read[name] == options[name].default, name


class Installed:
    requires = (
        "numpy>=1.26",
        'fastapi>=0.115; extra == "serve"',
        'i2l[pages]; extra == "serve"',
        'jinja2>=3; extra == "pages"',
    )

    def __init__(self, origin):
        self.origin = origin

    def read_text(self, name):
        assert name == "direct_url.json"
        return json.dumps(self.origin) if self.origin else None


@pytest.fixture
def installed(monkeypatch):
    monkeypatch.setattr("shutil.which", lambda name: None)
    monkeypatch.setattr("sys.executable", "/venv/bin/python")

    def command(origin):
        monkeypatch.setattr("importlib.metadata.distribution", lambda name: Installed(origin))
        return errors.install_command("serve").removeprefix("/venv/bin/python -m pip install ")

    return command


def test_what_to_install_is_said_for_how_it_was_installed(installed, tmp_path, monkeypatch):
    wheel = tmp_path / "i2l-0.1.0-py3-none-any.whl"
    wheel.touch()
    folder = {"url": tmp_path.as_uri(), "dir_info": {}}
    assert installed(folder) == f"'{tmp_path}[serve]'"
    assert installed(folder | {"dir_info": {"editable": True}}) == f"-e '{tmp_path}[serve]'"
    assert installed({"url": wheel.as_uri(), "archive_info": {}}) == f"'{wheel}[serve]'"
    packages = "'fastapi>=0.115' 'jinja2>=3'"
    assert installed({"url": (tmp_path / "gone.whl").as_uri(), "archive_info": {}}) == packages
    assert installed(None) == packages
    git = {"url": "https://example.org/i2l.git", "vcs_info": {"vcs": "git", "commit_id": "1"}}
    assert installed(git) == "'i2l[serve] @ git+https://example.org/i2l.git'"
    monkeypatch.setattr("shutil.which", lambda name: "/venv/bin/pip")
    assert errors.install_command("serve") == "pip install 'i2l[serve] @ git+https://example.org/i2l.git'"

    def missing(name):
        raise PackageNotFoundError(name)

    monkeypatch.setattr("importlib.metadata.distribution", missing)
    assert errors.install_command("serve") == f"pip install '{Path(__file__).parents[2]}[serve]'"


def test_a_missing_package_is_said_with_the_command():
    with pytest.raises(errors.MissingDependencyError, match=r"pip install .*\[serve\]|fastapi"):
        errors.require_extra("no_such_package", "serve")


def defaults_of(command, path):
    """What can be given to a command and those below it, with defaults and limits."""
    for parameter in command.params:
        limits = [getattr(parameter.type, name, None) for name in ("min", "max")]
        default = parameter.default if isinstance(parameter.default, str | int | float) else None
        said = [default, *limits, getattr(parameter, "is_flag", False), parameter.required]
        yield f"{path} {'/'.join([*parameter.opts, *parameter.secondary_opts])}: {' '.join(map(str, said))}"
    for name, inner in getattr(command, "commands", {}).items():
        yield from defaults_of(inner, f"{path} {name}")


def test_options_have_the_defaults_and_limits_that_they_had():
    """Scripts are written by them; whoever changes one says so in the changelog."""
    assert_text_kept("options", list(defaults_of(get_command(app), "i2l")))
