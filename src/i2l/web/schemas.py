"""What goes into the API and what comes out, as the OpenAPI page shows it."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator

from i2l.config import BEAM_WIDTH
from i2l.formats.convert import EVERY_FORMAT, TEXT_FORMATS, OutputFormat, TextFormat

MAX_BEAM = 20
MAX_IMAGES = 32  # in one request
Probability = Annotated[float, Field(ge=0, le=1)]
Source = Annotated[
    str,
    Field(
        min_length=1,
        description="The file in base64, with or without `data:image/png;base64,` before it. No addresses.",
        examples=["data:image/png;base64,iVBORw0KGgo="],
    ),
]


class ReadOptions(BaseModel):
    """As in `i2l read`."""

    model_config = ConfigDict(extra="forbid")

    model: str | None = Field(
        None,
        max_length=100,
        description="Name of a model, as `/api/models` lists them; null is what the server was started with.",
    )

    beam: int = Field(BEAM_WIDTH, ge=1, le=MAX_BEAM, description="Width of the beam; 1 is greedy.")
    n_best: int = Field(1, ge=1, le=MAX_BEAM, description="Readings that the search makes certain.")
    guard: bool = Field(True, description="Write only well-formed formulas, stop repetition.")
    scale: float | None = Field(
        None, ge=0.05, le=20, description="Enlarge the image by this instead of estimating it."
    )
    formats: list[TextFormat] = Field(
        [],
        max_length=len(TEXT_FORMATS),
        description="Give the formula in these too, in `data`; also `mathml,display`.",
    )

    @field_validator("formats", mode="before")
    @classmethod
    def _split_commas(cls, value: object) -> object:
        """In a form or an address a list may be one text."""
        texts = [value] if isinstance(value, str) else value
        if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
            return value
        return [part.strip() for text in texts for part in text.split(",")]


class ReadRequest(ReadOptions):
    """One image as JSON."""

    src: Source


class PageOptions(ReadOptions):
    """As in `i2l page`, one page at a time."""

    page: int = Field(1, ge=1, le=100_000, description="Which page of a PDF or of a TIFF, from 1.")
    read: bool = Field(True, description="Read the formulas too; else they are only found.")


class PageRequest(PageOptions):
    """The file of a page as JSON."""

    src: Source


class StrokesRequest(ReadOptions):
    """What was written by hand, as JSON; `scale` is not used, since strokes are drawn at the right one."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={"examples": [{"strokes": [[[10, 40], [60, 40]], [[35, 15], [35, 65]]]}]},
    )

    strokes: list[Any] | dict[str, Any] = Field(
        description="A list of strokes, each a list of points [x, y], y growing downwards; or as Mathpix, "
        '{"strokes": {"x": [[...]], "y": [[...]]}}.'
    )


class BatchRequest(ReadOptions):
    """Several images as JSON."""

    images: list[Source] = Field(min_length=1, max_length=MAX_IMAGES)


class OtherToken(BaseModel):
    """What else a token might be."""

    text: str
    probability: Probability


class TokenRead(BaseModel):
    """A canonical token, how sure the model was, and where it read it."""

    text: str
    probability: Probability
    box: list[float] | None = Field(
        description="Left, top, right, bottom in pixels; null if it draws nothing."
    )
    alternatives: list[OtherToken] = Field(description="The likeliest others in its place.")


class OtherReading(BaseModel):
    """Another reading of the image."""

    latex: str
    confidence: Probability


class FormattedFormula(BaseModel):
    """The formula in another format, named as in Mathpix's `data`."""

    type: TextFormat
    value: str | None
    error: str | None = None


class ReadingModel(BaseModel):
    """One image, read: as `i2l read --json`, and under the names that Mathpix uses."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "request_id": "6f1c…",
                    "latex": "x^{2}",
                    "latex_styled": "x^{2}",
                    "text": "\\( x^{2} \\)",
                    "confidence": 0.97,
                    "tokens": [
                        {
                            "text": "x",
                            "probability": 0.99,
                            "box": [12.0, 20.5, 31.0, 38.0],
                            "alternatives": [],
                        }
                    ],
                    "alternatives": [{"latex": "x^{z}", "confidence": 0.01}],
                    "finished": True,
                    "unread": 0.0,
                    "size": [120, 64],
                    "image_width": 120,
                    "image_height": 64,
                    "scale": 1.0,
                    "seconds": 0.21,
                    "model": "pinpoint",
                    "note": None,
                    "ink": [12.0, 9.0, 44.0, 38.0],
                    "data": [{"type": "inline", "value": "$x^{2}$"}],
                }
            ]
        }
    )

    request_id: str
    latex: str = Field(description="As a person would write it.")
    latex_styled: str = Field(description="The same.")
    text: str = Field(description="The same as inline mathematics in Markdown.")
    confidence: Probability = Field(description="That all of it is right; calibrated if the model is.")
    tokens: list[TokenRead]
    alternatives: list[OtherReading] = Field(description="Best first.")
    finished: bool = Field(description="False if it was cut at the limit of tokens.")
    unread: Probability = Field(description="Share of the ink that no token looked at.")
    size: list[int] = Field(description="Width and height of the image, the camera's rotation applied.")
    image_width: int
    image_height: int
    scale: float = Field(description="Pixels of the model for one of the image.")
    seconds: float = Field(description="That it took, in its batch.")
    model: str = Field(description="That read it; handwriting may have another than print.")
    note: str | None = Field(
        description="What to know of it: it is or looks handwritten, and the model was taught print alone."
    )
    ink: list[float] = Field(description="Left, top, right, bottom of what was read, in pixels.")
    data: list[FormattedFormula]


class StrokesReading(ReadingModel):
    """Strokes, read; boxes and sizes are in their units."""


class ProblemModel(BaseModel):
    """What went wrong and what to do (RFC 9457)."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "type": "/docs#not-a-formula",
                    "title": "No formula found",
                    "status": 422,
                    "detail": "The image is empty: there is no ink on it.",
                }
            ]
        }
    )

    type: str = Field(description="For programs: `/docs#` and the kind of problem, or `about:blank`.")
    title: str
    status: int
    detail: str = Field(description="For people: what happened to this request, and what to do.")
    errors: list[dict[str, Any]] | None = None


class BatchResult(BaseModel):
    """A reading or a problem for each image, in order."""

    readings: list[ReadingModel | ProblemModel]


class PageFormulaModel(BaseModel):
    """A formula of a page. Boxes are left, top, right, bottom in pixels of the page."""

    kind: Literal["displayed", "inline"]
    box: list[float]
    score: Probability = Field(description="How sure the detector is that it is a formula.")
    latex: str = Field(description="Empty if it was not, or could not be, read.")
    confidence: Probability = Field(description="That all of the LaTeX is right.")
    number: str | None = Field(description="The equation number of a display, as printed.")
    number_box: list[float] | None
    corners: list[list[float]] | None = Field(description="Of the box, where the page lay askew.")
    tokens: list[tuple[str, float, list[float] | None]] = Field(
        description="Each token, how sure the model was of it, and where it is."
    )
    error: str | None = Field(description="Why it could not be read.")


class PageModel(BaseModel):
    """One page: its formulas in reading order, as in `i2l page`. No formulas are an empty list."""

    request_id: str
    page: int
    num_pages: int = Field(description="Of the whole file.")
    width: int
    height: int
    dpi: float | None = Field(description="At which the page of a PDF was drawn.")
    method: Literal["picture", "picture and fonts"] = Field(description="How formulas were found.")
    straightened: bool
    formulas: list[PageFormulaModel]
    seconds: float
    picture: str | None = Field(description="The page of a PDF as it was drawn, as a data URL.")


class FormulaRequest(BaseModel):
    """Canonical tokens, as a reading has them."""

    model_config = ConfigDict(
        extra="forbid", json_schema_extra={"examples": [{"tokens": ["x", "^", "{", "2", "}"]}]}
    )

    tokens: list[Annotated[str, Field(min_length=1, max_length=200)]] = Field(min_length=1, max_length=1000)


class FormulaResult(BaseModel):
    """The same as a person would write it."""

    latex: str


class ConvertRequest(BaseModel):
    """LaTeX, as a person writes or edits it, and the formats that are wanted."""

    model_config = ConfigDict(
        extra="forbid", json_schema_extra={"examples": [{"latex": "x^{2}", "formats": ["typst", "mathml"]}]}
    )

    latex: str = Field(min_length=1, max_length=20_000)
    formats: list[OutputFormat] = Field(
        min_length=1,
        max_length=len(EVERY_FORMAT),
        description="`docx`, a Word document, and `png`, a picture, come in base64.",
    )


class ConvertedFormula(BaseModel):
    """The formula in one format, or why that format cannot say it."""

    type: OutputFormat
    value: str | None
    error: str | None = None


class ConvertResult(BaseModel):
    """The formula in each format, in the order in which they were asked for."""

    data: list[ConvertedFormula]


class FormatDescription(BaseModel):
    """A format that a formula can be written in."""

    name: str = Field(description="As `/api/convert` takes it.")
    text: bool = Field(description="Whether it is text; what is not comes in base64.")
    media_type: str
    extension: str = Field(description="Of a file in it, without a dot.")


class FormatList(BaseModel):
    """The formats that a formula can be written in."""

    formats: list[FormatDescription]


class ModelDescription(BaseModel):
    """A model."""

    name: str
    loaded: bool
    canvas: list[int] | None = Field(None, description="Width and height that it reads, in its own pixels.")
    vocabulary: int | None = Field(None, description="Number of tokens.")
    calibrated: bool | None = None
    handwriting: bool | None = Field(None, description="Whether it was taught handwriting.")


class ModelList(BaseModel):
    """The model that reads here if a request names none, and the others that it may name."""

    models: list[ModelDescription]


class Example(BaseModel):
    """A picture to try."""

    name: str
    url: str


class Status(BaseModel):
    """How the server is."""

    status: Literal["ok", "ready"]
    version: str
