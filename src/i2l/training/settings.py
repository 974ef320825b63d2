"""From preset, file and flags to one configuration; the flags win over the file, the file over the preset.

A file has the sections model, objective and training, and may name a preset:

    preset: strips
    training:
      batch_size: 128
      learning_rate: 3e-4
"""

import dataclasses
import difflib
import tomllib
import typing
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import NoneType
from typing import Any

from i2l.config import ObjectiveConfig, TrainConfig
from i2l.errors import require_extra
from i2l.files import ConfigError, JsonConfig, atomic_write
from i2l.model.config import (
    NETWORKS,
    ModelConfig,
    model_preset,
    network_class,
    read_model_config,
    upgrade_model_fields,
)

SECTIONS = ("model", "objective", "training")
DEFAULT_PRESET = "nopool"
Settings = dict[str, dict[str, Any]]  # section -> field -> value


@dataclass(frozen=True)
class RunConfig:
    """All that decides a run."""

    model: ModelConfig
    objective: ObjectiveConfig
    training: TrainConfig

    def to_dict(self) -> Settings:
        """Return the sections as JSON values."""
        return {name: getattr(self, name).to_dict() for name in SECTIONS}

    def save(self, path: Path) -> None:
        """Write the file that gives this configuration again."""
        yaml = require_extra("yaml", "train")
        content = {
            section: {name: list(v) if isinstance(v, tuple) else v for name, v in fields.items()}
            for section, fields in self.to_dict().items()
        }
        with atomic_write(path) as file:
            file.write(yaml.safe_dump(content, sort_keys=False))


def read_section(section: str, fields: Mapping[str, Any]) -> JsonConfig:
    """Read one section of a saved configuration, also as versions before wrote it.

    Raises:
        ConfigError: for a field that does not exist, or a value that is refused.
    """
    if section == "model":
        return read_model_config(fields)
    return ObjectiveConfig.from_dict(fields) if section == "objective" else TrainConfig.from_dict(fields)


def resolve_config(
    *, preset: str | None = None, file: Path | None = None, changes: Settings | None = None
) -> RunConfig:
    """Join preset, file and changes, the later ones over the earlier ones.

    A setting ``model.network`` chooses another network than the preset's; then its defaults take the place
    of the preset.

    Raises:
        ConfigError: for an unreadable file; for unknown or ill-typed fields, naming all of them.
    """
    settings = read_settings(file) if file else {}
    base = model_preset(preset or settings.pop("preset", None) or DEFAULT_PRESET)
    settings.pop("preset", None)
    joined: Settings = {name: {} for name in SECTIONS}
    unknown = []
    for layer in (settings, changes or {}):
        for section, fields in layer.items():
            if section not in SECTIONS or not isinstance(fields, Mapping):
                unknown.append(section)
            else:
                joined[section] |= upgrade_model_fields(fields) if section == "model" else fields
    network = joined["model"].pop("network", base.network)
    if network not in NETWORKS:
        raise ConfigError(f"model.network is one of {', '.join(NETWORKS)}, not {network!r}.")
    classes = {"model": network_class(network), "objective": ObjectiveConfig, "training": TrainConfig}
    converted, ill_typed = _convert_all(joined, classes, unknown)
    if unknown or ill_typed:
        raise ConfigError(_complaint(unknown, ill_typed, classes))
    model = converted["model"]
    return RunConfig(
        model=dataclasses.replace(base, **model) if network == base.network else classes["model"](**model),
        objective=ObjectiveConfig(**converted["objective"]),
        training=TrainConfig(**converted["training"]),
    )


def _convert_all(
    joined: Settings, classes: Mapping[str, type[Any]], unknown: list[str]
) -> tuple[Settings, list[str]]:
    """Check all settings against the types of their fields; add the names of those that there are not.

    Returns:
        The settings that are right, and those of the wrong type, as text.
    """
    converted: Settings = {name: {} for name in SECTIONS}
    ill_typed = []
    for section, fields in joined.items():
        kinds = _field_types(classes[section])
        for name, value in fields.items():
            if name not in kinds:
                unknown.append(f"{section}.{name}")
                continue
            try:
                converted[section][name] = _convert(value, kinds[name])
            except (TypeError, ValueError):
                ill_typed.append(f"{section}.{name} = {value!r}")
    return converted, ill_typed


def _field_types(config: type[Any]) -> dict[str, Any]:
    hints = typing.get_type_hints(config)
    return {field.name: hints[field.name] for field in dataclasses.fields(config)}


def parse_changes(assignments: Sequence[str]) -> Settings:
    """Read ``section.field=value`` assignments; values are written as in TOML, words without quotes.

    Raises:
        ConfigError: for one that is not of this form.
    """
    changes: Settings = {}
    for assignment in assignments:
        path, equals, text = assignment.partition("=")
        section, dot, name = path.strip().partition(".")
        if not (equals and dot):
            raise ConfigError(f"{assignment!r} is not of the form section.field=value.")
        try:
            value = tomllib.loads(f"value = {text}")["value"]
        except tomllib.TOMLDecodeError:
            value = text.strip()
        changes.setdefault(section, {})[name] = value
    return changes


def read_settings(path: Path) -> dict[str, Any]:
    """Read a YAML or TOML file.

    Raises:
        ConfigError: if it cannot be read, or is not made of sections.
    """
    try:
        text = path.read_text(encoding="utf-8")
        if path.suffix == ".toml":
            content = tomllib.loads(text)
        elif path.suffix in (".yaml", ".yml"):
            yaml = require_extra("yaml", "train")
            try:
                content = yaml.safe_load(text)
            except yaml.YAMLError as error:
                raise ValueError(error) from error
        else:
            raise ConfigError(f"{path}: a config file ends in .yaml, .yml or .toml.")
    except (OSError, ValueError) as error:
        raise ConfigError(f"Cannot read the config file {path}: {error}") from error
    if not isinstance(content, dict):
        raise ConfigError(f"{path} holds no sections; it has {', '.join(SECTIONS)}.")
    return content


def _convert(value: object, kind: Any) -> Any:  # noqa: ANN401 - any annotation, any field's value
    """Check a value against a field's type, and take 1e-4 for a number where YAML reads it as text.

    Raises:
        TypeError: if the value is of another type.
        ValueError: if a text is not the number it stands for.
    """
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin is tuple and isinstance(value, list | tuple):
        return tuple(_convert(item, arguments[0]) for item in value)
    if NoneType in arguments:
        return None if value in (None, "none") else _convert(value, arguments[0])
    if origin is typing.Literal and value in arguments:
        return value
    if kind is float and isinstance(value, int | float | str) and not isinstance(value, bool):
        return float(value)
    if kind is int and isinstance(value, int) and not isinstance(value, bool):
        return value
    if kind in (bool, str) and isinstance(value, kind):
        return value
    raise TypeError(kind)


def _complaint(unknown: Sequence[str], ill_typed: Sequence[str], classes: Mapping[str, type[Any]]) -> str:
    fields = [f"{section}.{name}" for section, kind in classes.items() for name in _field_types(kind)]
    texts = []
    if unknown:
        texts.append(f"Unknown settings: {', '.join(unknown)}.")
        for name in unknown:
            close = difflib.get_close_matches(name, fields, n=1)
            texts += [f"Did you mean {close[0]}?"] if close else []
    if ill_typed:
        texts.append(f"Settings of the wrong type: {', '.join(ill_typed)}.")
    return " ".join(texts)
