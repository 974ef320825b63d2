"""Files of formulas to pairs of target and prediction; whatever is wrong with a file is counted and said.

A file holds one formula a line, either alone or after a name and a tab (`17.png<TAB>\\frac { a } { b }`).
Named lines are matched by name, others by their place in the file.
"""

from dataclasses import dataclass, field
from pathlib import Path

from i2l.errors import I2LError


class PairsError(I2LError):
    """Files that cannot be paired."""


@dataclass(frozen=True)
class FormulaFile:
    """The lines of one file."""

    formulas: list[str]
    names: list[str] | None  # None if the lines carry no names
    malformed: dict[int, str]  # index of the line -> what is wrong; its formula is empty


@dataclass(frozen=True)
class Pairs:
    """Targets and predictions, in the order of the targets; a prediction that is not there is empty."""

    names: list[str]
    targets: list[str]
    predictions: list[str]
    faults: dict[str, list[str]] = field(default_factory=dict)  # kind of fault -> the places that have it

    def __len__(self) -> int:
        return len(self.targets)


def read_formula_file(path: Path) -> FormulaFile:
    """Read a file of formulas; it is one of named lines if its first line with content has a tab.

    Raises:
        PairsError: if there is no such file, or nothing in it.
    """
    try:
        content = path.read_bytes()
    except OSError as error:
        raise PairsError(f"Cannot read {path}: {error.strerror}") from error
    lines = content.removeprefix(b"\xef\xbb\xbf").split(b"\n")
    while lines and not lines[-1].strip():
        lines.pop()
    if not lines:
        raise PairsError(f"{path} is empty; it must hold one formula a line.")
    named = b"\t" in next(line for line in lines if line.strip())
    parsed = [_parse_line(line, named) for line in lines]
    return FormulaFile(
        formulas=[formula for _, formula, _ in parsed],
        names=[name for name, _, _ in parsed] if named else None,
        malformed={index: wrong for index, (_, _, wrong) in enumerate(parsed) if wrong},
    )


def _parse_line(line: bytes, named: bool) -> tuple[str, str, str]:
    """Name, formula, and what is wrong."""
    try:
        text = line.decode("utf-8")
    except UnicodeDecodeError:
        return "", "", "not UTF-8"
    if "\x00" in text:
        return "", "", "a zero byte"
    if not named:
        return "", text.strip(), ""
    name, tab, formula = text.partition("\t")
    if not tab or not name.strip():
        return "", "", "no name and tab before the formula"
    return name.strip(), formula.strip(), ""


def pair_files(targets: Path, predictions: Path) -> Pairs:
    """Pair the lines of two files.

    Raises:
        PairsError: if a file is missing or empty, targets are malformed, or only the predictions have names.
    """
    gold = read_targets(targets)
    found = read_formula_file(predictions)
    if found.names is not None and gold.names is None:
        raise PairsError(
            f"{predictions} names its lines and {targets} does not: add the names there, or remove them here."
        )
    if found.names is None or gold.names is None:
        return _pair_by_place(gold, found)
    return _pair_by_name(gold, found)


def read_targets(path: Path) -> FormulaFile:
    """Read a file of targets, in which every line must be right.

    Raises:
        PairsError: if it is missing, empty or malformed, or names a line twice.
    """
    gold = read_formula_file(path)
    for index, wrong in gold.malformed.items():
        raise PairsError(f"{path}, line {index + 1}: {wrong}. Targets must be whole; mend the file.")
    if gold.names is not None and len(set(gold.names)) < len(gold.names):
        twice = next(name for name in gold.names if gold.names.count(name) > 1)
        raise PairsError(f"{path} has the name {twice!r} twice.")
    return gold


def target_names(targets: FormulaFile) -> list[str]:
    """The names of the targets; the number of the line where they have none."""
    return targets.names or [str(number + 1) for number in range(len(targets.formulas))]


def _pair_by_place(gold: FormulaFile, found: FormulaFile) -> Pairs:
    names = target_names(gold)
    formulas = found.formulas[: len(names)]
    faults = {
        "missing": names[len(formulas) :],
        "empty": [
            names[index]
            for index, formula in enumerate(formulas)
            if not formula and index not in found.malformed
        ],
        "extra": [f"line {index + 1}" for index in range(len(names), len(found.formulas))],
        "malformed": [
            f"{names[index]}: {why}" for index, why in found.malformed.items() if index < len(names)
        ],
    }
    formulas += [""] * (len(names) - len(formulas))
    return Pairs(names, gold.formulas, formulas, _complete(faults, gold))


def _pair_by_name(gold: FormulaFile, found: FormulaFile) -> Pairs:
    names = target_names(gold)
    wanted = set(names)
    by_name: dict[str, str] = {}
    extra, duplicate = [], []
    for index, name in enumerate(found.names or []):
        if index in found.malformed:
            continue
        if name not in wanted:
            extra.append(name)
        elif name in by_name:
            duplicate.append(name)
        else:
            by_name[name] = found.formulas[index]
    faults = {
        "missing": [name for name in names if name not in by_name],
        "empty": [name for name in names if name in by_name and not by_name[name]],
        "extra": extra,
        "duplicate": duplicate,
        "malformed": [f"line {index + 1}: {why}" for index, why in found.malformed.items()],
    }
    return Pairs(names, gold.formulas, [by_name.get(name, "") for name in names], _complete(faults, gold))


def _complete(faults: dict[str, list[str]], gold: FormulaFile) -> dict[str, list[str]]:
    names = target_names(gold)
    faults["empty target"] = [name for name, formula in zip(names, gold.formulas, strict=True) if not formula]
    return {kind: places for kind, places in faults.items() if places}
