"""What the desktop shows of a reading: texts, and how sure they are.

Only the process that reads needs numpy and the model; whoever shows an answer starts without them.
"""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from i2l.errors import I2LError

if TYPE_CHECKING:
    from i2l.inference.reader import Reader

Read = Callable[[bytes], "Answer"]  # reads a picture


@dataclass(frozen=True)
class Answer:
    """One picture, read."""

    latex: str
    tokens: tuple[str, ...]
    confidence: float  # that all of it is right
    doubt: str | None  # what a person should know before using it

    def text(self, output: str) -> str:
        """Write it in one of `output_formats()`.

        Raises:
            FormatError: if it cannot be expressed in that format.
        """
        if output == "latex":  # whoever asks for no more need not wait until all formats are loaded
            return self.latex
        if output == "tokens":
            return " ".join(self.tokens)
        from i2l.formats.convert import write_formula

        return write_formula(self.latex, output)  # type: ignore[arg-type] # it says so if unknown

    def to_dict(self) -> dict[str, Any]:
        """Return the answer as JSON values."""
        return asdict(self)

    @classmethod
    def from_dict(cls, content: dict[str, Any]) -> "Answer":
        """Make it of what `to_dict` gave."""
        return cls(**{**content, "tokens": tuple(content["tokens"])})


def output_formats() -> tuple[str, ...]:
    """Name the formats that a reading can be written in, LaTeX first."""
    from i2l.formats.convert import TEXT_FORMATS

    return TEXT_FORMATS


def check_format(output: str) -> str:
    """Return the name of a format, if there is such a format.

    Raises:
        I2LError: if there is not; the message names those that there are.
    """
    if output != "latex" and output not in output_formats():
        raise I2LError(f"There is no format {output!r}; choose one of {', '.join(output_formats())}.")
    return output


def read_picture(reader: "Reader", picture: bytes) -> Answer:
    """Read a picture.

    Raises:
        ImageError: if it cannot be read.
    """
    from i2l.inference.reading import find_doubt

    reading = reader.read(picture)
    return Answer(reading.latex, reading.tokens, reading.confidence, find_doubt(reading))


def load_in_background(model: str | None) -> Read:
    """Begin to load a model, and give what reads a picture with it as soon as it is there.

    A person takes longer to choose a region than a model to load.
    """

    def load() -> "Reader":
        from i2l.inference.reader import Reader

        return Reader(model)

    pool = ThreadPoolExecutor(1)
    loading = pool.submit(load)
    pool.shutdown(wait=False)
    return lambda picture: read_picture(loading.result(), picture)
