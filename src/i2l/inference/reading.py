"""What a reader found: LaTeX, how sure it is, where each token was read, and what else it might be.

`ReadingAssembly` makes a `Reading` of what a search found. Hypotheses that draw the same are put together,
the most probable is printed, and it gets its confidence, the boxes of its tokens, and what else might stand
in the place of each. What makes no sense is refused: a model writes something about any picture, also about
one of no formula.
"""

import base64
import html
import io
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from i2l.formats.convert import TextFormat, formula_file, write_formula
from i2l.formulas.commands import SILENT, SWITCHES, look_of, picture_of
from i2l.formulas.lexer import FormulaError
from i2l.formulas.normalize import normalize_formula
from i2l.formulas.pretty import readable_formula, stretch_fences
from i2l.formulas.vocabulary import Vocabulary
from i2l.images.prepare import MIN_DENSE_PX, WHITE, Box, NotAFormulaError, PreparedImage
from i2l.inference.boxes import UNREAD_LIMIT, CanvasInk, InkMatch
from i2l.inference.confidence import Evidence, TokenLooks, gather_evidence
from i2l.inference.decoding import Hypothesis
from i2l.inference.grammar import MAX_DEPTH, START, State, advance, may_end
from i2l.inference.model_folder import LoadedModel
from i2l.inference.policy import Attempt, most_probable_first, unread_share

NOTEBOOK_MARGIN_PX: Final = 8  # around the ink in a notebook
SHOWN_CHARACTERS: Final = 80  # of the LaTeX on a terminal

DOUBTFUL_CONFIDENCE: Final = 0.5  # below it a person should look

_SETTLING_VOTES: Final = 3  # of five readings of one image

# What is no formula; what these limits rest on is in docs/LOG.md.
_JUDGED_TOKENS: Final = 6  # of fewer tokens, the doubt may be about one odd symbol
_MIN_MEAN_LOG_PROB: Final = -0.6  # of a token; in long readings of formulas, even misread ones, above -.5
_RUNAWAY_TOKENS: Final = 60  # shorter readings may well say the same thing again
_MIN_VARIETY: Final = 0.2  # distinct runs of four tokens among all of them; formulas have .3 and more ...
_DOUBTFUL_CONFIDENCE: Final = 0.01  # ... or, as a matrix of zeros, are read with a greater confidence
_DENSE_INK_SHARE: Final = 0.42  # bold capitals have .4 ...
_SURE_PROBABILITY: Final = 0.5  # ... and are read with a greater probability

# Below this probability of another token lies what label smoothing spreads over all tokens, and each costs a
# look at the formula.
MIN_PROBABILITY: Final = 0.005
_NOT_ALONE: Final = SILENT | {"}"}  # space and braces: in their place something would come in, or go

TokenAlternatives = tuple[tuple[str, float], ...]


@dataclass(frozen=True)
class Alternative:
    """Another reading of the same image."""

    latex: str
    tokens: tuple[str, ...]
    confidence: float


@dataclass(frozen=True, eq=False, repr=False)
class Reading:
    """One image, read. In a notebook it shows itself."""

    latex: str  # as a person would write it
    tokens: tuple[str, ...]  # canonical
    confidence: float  # that all of it is right; calibrated if the model is
    log_prob: float  # that the model gives it, in all the ways to write it that the search found
    token_probabilities: NDArray[np.float32]  # of each token, given those before it
    attention: NDArray[np.float32]  # tokens x rows x columns of the model's grid
    boxes: tuple[Box | None, ...]  # of each token in pixels of the picture; None if it draws nothing
    alternatives: tuple[Alternative, ...]  # best first
    finished: bool  # False if it was cut at the limit of tokens
    unread: float  # share of the ink that no token looked at
    left_over: int  # pieces of ink, but for dots, that no token was read from; 0 if there are few tokens
    seconds: float  # that it took, in its batch
    prepared: PreparedImage  # what the model saw
    # For each token the likeliest others that could stand in its place, each with its probability.
    token_alternatives: tuple[TokenAlternatives, ...]
    evidence: Evidence  # what the confidence was found from
    model: str  # the name of the model that read it
    note: str | None = None  # what to know of it: it looks handwritten, and this model was taught print

    def __repr__(self) -> str:
        latex = self.latex if len(self.latex) <= SHOWN_CHARACTERS else f"{self.latex[:SHOWN_CHARACTERS]}..."
        return f"Reading({latex!r}, confidence={self.confidence:.2f}, {len(self.tokens)} tokens)"

    @property
    def formula(self) -> str:
        """The canonical tokens joined by spaces."""
        return " ".join(self.tokens)

    def to(self, output: TextFormat) -> str:
        """Write the formula in a format of text, by its name in `i2l read --format`.

        Raises:
            FormatError: if the format cannot say it; the message names the command or construct.
        """
        return self.formula if output == "tokens" else write_formula(self.latex, output)

    @property
    def mathml(self) -> str:
        """The formula in MathML, as one `<math>` element."""
        return self.to("mathml")

    @property
    def omml(self) -> str:
        """The formula as Word has it, as one `<m:oMath>` element."""
        return self.to("omml")

    @property
    def typst(self) -> str:
        """The formula in Typst, without the dollars."""
        return self.to("typst")

    @property
    def asciimath(self) -> str:
        """The formula in AsciiMath."""
        return self.to("asciimath")

    @property
    def unicode(self) -> str:
        """The formula as one line of plain text."""
        return self.to("unicode")

    def docx(self) -> bytes:
        """Make a Word document that holds the formula."""
        return formula_file(self.latex, "docx")

    def png(self, *, dpi: int = 300) -> bytes:
        """Draw the formula typeset, as a picture on white.

        Raises:
            MissingDependencyError: if Typst is not installed.
            FormatError: if Typst cannot say it; the message names the command or construct.
        """
        return formula_file(self.latex, "png", dpi=dpi)

    def svg(self) -> str:
        """Draw the formula typeset, as outlines that scale.

        Raises:
            MissingDependencyError: if Typst is not installed.
            FormatError: if Typst cannot say it; the message names the command or construct.
        """
        return formula_file(self.latex, "svg").decode()

    def to_dict(self) -> dict[str, Any]:
        """Return the reading as JSON values, without attention."""
        return {
            "latex": self.latex,
            "confidence": round(self.confidence, 4),
            "tokens": [
                {
                    "text": token,
                    "probability": round(float(probability), 4),
                    "box": None if box is None else [round(value, 1) for value in box],
                    "alternatives": [
                        {"text": text, "probability": round(chance, 4)} for text, chance in others
                    ],
                }
                for token, probability, box, others in zip(
                    self.tokens,
                    self.token_probabilities,
                    self.boxes,
                    self.token_alternatives,
                    strict=True,
                )
            ],
            "alternatives": [
                {"latex": other.latex, "confidence": round(other.confidence, 4)}
                for other in self.alternatives
            ],
            "finished": self.finished,
            "unread": round(self.unread, 4),
            "size": list(self.prepared.file_size_px),
            "scale": round(self.prepared.scale, 4),
            "seconds": round(self.seconds, 4),
            "model": self.model,
            "note": self.note,
        }

    def _repr_html_(self) -> str:
        """Show the image with the boxes, and the formula typeset by the notebook."""
        height, width = self.prepared.pixels.shape
        margin = NOTEBOOK_MARGIN_PX
        file = io.BytesIO()
        Image.fromarray(self.prepared.pixels).save(file, "PNG")
        picture = base64.b64encode(file.getvalue()).decode()
        shapes = []
        for token, probability, box in zip(self.tokens, self.token_probabilities, self.boxes, strict=True):
            if box is None:
                continue
            left, top, right, bottom = self.prepared.from_file(box)
            shapes.append(
                f'<rect x="{left:.1f}" y="{top:.1f}" width="{right - left:.1f}" height="{bottom - top:.1f}" '
                f'fill="#06c" fill-opacity="0.06" stroke="#06c" stroke-opacity="0.5" stroke-width="0.7">'
                f"<title>{html.escape(token)}  {probability:.0%}</title></rect>"
            )
        return (
            f'<div><svg viewBox="{-margin} {-margin} {width + 2 * margin} {height + 2 * margin}" '
            f'width="{width + 2 * margin}" style="background:#fff;max-width:100%">'
            f'<image href="data:image/png;base64,{picture}" width="{width}" height="{height}"/>'
            f"{''.join(shapes)}</svg><p>$${html.escape(self.latex)}$$</p>"
            f"<code>{html.escape(self.latex)}</code> <small>{self.confidence:.0%}</small></div>"
        )


class Candidate(NamedTuple):
    """A reading as a person would write it, the likeliest hypothesis that draws it, and what all have."""

    latex: str
    tokens: tuple[str, ...]
    hypothesis: Hypothesis
    log_prob: float  # of all hypotheses that draw it
    unread: float
    picture: tuple[str, ...]  # as `picture_of` returns it

    @property
    def rank(self) -> tuple[bool, bool, float]:
        """What comes first: readings that came to their end, leave nothing out, and are probable."""
        return self.hypothesis.finished, self.unread < UNREAD_LIMIT, self.log_prob


class Weighed(NamedTuple):
    """An attempt, what was read there, best first, and the ink that the best of it was read from."""

    attempt: Attempt
    candidates: Sequence[Candidate]
    match: InkMatch

    @property
    def best(self) -> Candidate:
        """What was read."""
        return self.candidates[0]

    @property
    def left_over(self) -> int:
        """How much ink is left over, where that says something: of a sign alone any part may be."""
        return self.match.left_over if len(self.best.tokens) >= _JUDGED_TOKENS else 0


class ReadingAssembly:
    """Makes readings of what searches found, for one model. Safe to share between threads."""

    def __init__(self, model: LoadedModel) -> None:
        self._name = model.name
        self._vocabulary = model.vocabulary
        self._calibration = model.calibration
        self._box_share = model.box_share
        self._looks = TokenLooks(model.vocabulary)
        self._written = bool(model.handwriting)  # in ink brackets are as tall as they need be

    def assemble(self, attempts: Sequence[Attempt], *, check: bool) -> list[Reading | NotAFormulaError]:
        """Make the reading of each attempt; with a check, one that makes no sense is an error.

        Only a model that was calibrated is judged, as the doubt of one that cannot read yet says nothing
        about the picture.
        """
        readings = [self._reading(attempt) for attempt in attempts]
        if not check or self._calibration is None:
            return [*readings]
        return [find_nonsense(reading) or reading for reading in readings]

    def _reading(self, attempt: Attempt) -> Reading:
        """Make the reading of one image."""
        weighed = self.weigh(attempt)
        best, *others = weighed.candidates
        evidence = self.evidence(best, others, attempt)
        confidence = self.confidence(evidence)
        tokens = best.tokens
        length = len(tokens)
        hypothesis = best.hypothesis
        assert hypothesis.attention is not None
        return Reading(
            latex=best.latex,
            tokens=tokens,
            confidence=confidence,
            log_prob=best.log_prob,
            token_probabilities=np.exp(hypothesis.token_log_probs[:length]),
            attention=hypothesis.attention[:length],
            boxes=tuple(weighed.match.boxes),
            alternatives=share_rest(confidence, best, others),
            finished=hypothesis.finished,
            unread=best.unread,
            left_over=weighed.left_over,
            seconds=attempt.seconds,
            prepared=attempt.ink.image,
            token_alternatives=token_alternatives(hypothesis, self._vocabulary),
            evidence=evidence,
            model=self._name,
        )

    def candidates(self, found: Sequence[Hypothesis], ink: CanvasInk) -> list[Candidate]:
        """Put together hypotheses that draw the same, and order these by their probability.

        The length penalty leads the search, which would else end too early. Of what it found the most
        probable is printed: with the penalty a letter came in an array, and alternatives could be surer.
        What leaves out a part of the picture comes after all that does not.
        """
        candidates: dict[tuple[str, ...], Candidate] = {}
        for hypothesis in most_probable_first(found):
            tokens = tuple(self._vocabulary.decode(hypothesis.token_ids))
            latex = self._readable(tokens)
            picture = picture_of(latex)
            first = candidates.get(picture)
            if first is None:
                unread = unread_share(hypothesis, ink, self._vocabulary)
                candidates[picture] = Candidate(
                    latex, tokens, hypothesis, hypothesis.log_prob, unread, picture
                )
            elif hypothesis.finished == first.hypothesis.finished:
                log_prob = min(float(np.logaddexp(first.log_prob, hypothesis.log_prob)), 0.0)
                candidates[picture] = first._replace(log_prob=log_prob)
        return sorted(candidates.values(), key=lambda one: one.rank, reverse=True)

    def weigh(self, attempt: Attempt) -> Weighed:
        """Say what was read at an attempt, and from which ink."""
        candidates = self.candidates(attempt.found, attempt.ink)
        best = candidates[0]
        assert best.hypothesis.attention is not None
        attention = best.hypothesis.attention[: len(best.tokens)]
        return Weighed(attempt, candidates, attempt.ink.match(best.tokens, attention, share=self._box_share))

    def _readable(self, tokens: Sequence[str]) -> str:
        return readable_tokens(stretch_fences(tokens) if self._written else tokens)

    def evidence(self, candidate: Candidate, others: Sequence[Candidate], attempt: Attempt) -> Evidence:
        """Gather what speaks for the best reading of an image."""
        return gather_evidence(
            self._looks.certainty(candidate.hypothesis),
            log_prob=candidate.log_prob,
            others=[other.log_prob for other in others],
            agreement=self._agreement(candidate, attempt.elsewhere),
            unread=candidate.unread,
            finished=candidate.hypothesis.finished,
        )

    def _agreement(self, candidate: Candidate, elsewhere: Sequence[Hypothesis]) -> float:
        """Return the share of other scales at which the same was read; 1 if there was no need of any."""
        same = [
            picture_of(self._readable(self._vocabulary.decode(other.token_ids))) == candidate.picture
            for other in elsewhere
        ]
        return sum(same) / len(same) if same else 1.0

    def confidence(self, evidence: Evidence) -> float:
        """Return the probability that a reading is right: calibrated, or else the model's own."""
        if self._calibration:
            return self._calibration.confidence(evidence)
        return math.exp(evidence.log_prob) if evidence.whole > -UNREAD_LIMIT else 0.0


def readable_tokens(tokens: Sequence[str]) -> str:
    """Write tokens as a person would; without a guard they may be no formula, and stay as they are."""
    formula = " ".join(tokens)
    try:
        return readable_formula(formula)
    except FormulaError:
        return formula


def share_rest(confidence: float, best: Candidate, others: Sequence[Candidate]) -> tuple[Alternative, ...]:
    """Share what the confidence in a reading leaves as the model shares what its probability leaves.

    So all together are at most 1; and no other reading is surer than the one that is printed.
    """
    left = (1 - confidence) / max(-math.expm1(best.log_prob), 1e-9)
    return tuple(
        Alternative(other.latex, other.tokens, min(confidence, left * math.exp(other.log_prob)))
        for other in others
    )


def find_nonsense(reading: Reading) -> NotAFormulaError | None:
    """Return an error for a reading of something that is no formula, as far as that can be told."""
    if not reading.tokens:
        return NotAFormulaError("This does not look like a formula: nothing can be read in it.")
    probabilities = np.maximum(reading.token_probabilities, 1e-9)
    if len(reading.tokens) >= _JUDGED_TOKENS and np.log(probabilities).mean() < _MIN_MEAN_LOG_PROB:
        return NotAFormulaError("This does not look like a formula: what can be read in it makes no sense.")
    if reading.confidence < _DOUBTFUL_CONFIDENCE and _repeats_itself(reading.tokens):
        return NotAFormulaError("This does not look like a formula: the same is read in it over and over.")
    pixels = reading.prepared.pixels
    large = min(pixels.shape) / reading.prepared.scale >= MIN_DENSE_PX
    unsure = np.exp(reading.log_prob) < _SURE_PROBABILITY
    if large and unsure and 1 - pixels.mean() / WHITE > _DENSE_INK_SHARE:
        return NotAFormulaError("This does not look like a formula: nearly half of it is ink.")
    return None


def choose(weighed: Sequence[Weighed]) -> tuple[Attempt, bool]:
    """Return the best of several attempts at one image, and whether more of them could not change that.

    The readings vote: at each scale a network errs in its own way, and is right in one. But first come those
    that leave the least ink over: a reading that lost its place is as sure as any other.

    Args:
        weighed: the attempt at the scale that was found for the image, which decides where all else is equal;
            and then greedy ones at other scales.
    """
    pictures = [one.best.picture for one in weighed]

    def merit(place: int) -> tuple[object, ...]:
        one, picture = weighed[place], pictures[place]
        votes = pictures.count(picture), picture == pictures[0]
        return *one.best.rank[:2], -one.left_over, *votes, place == 0, one.best.log_prob

    best = max(range(len(weighed)), key=merit)
    attempts = [one.attempt for one in weighed]
    others = (most_probable_first(attempt.found)[0] for attempt in attempts[:best] + attempts[best + 1 :])
    chosen = attempts[best]._replace(
        elsewhere=(*attempts[0].elsewhere, *others), seconds=sum(attempt.seconds for attempt in attempts)
    )
    return chosen, weighed[best].left_over == 0 and pictures.count(pictures[best]) >= _SETTLING_VOTES


def find_doubt(reading: Reading) -> str | None:
    """Say what a person should know before using a reading; None if there is nothing."""
    if not reading.finished:
        return "cut at the limit of tokens; is it one formula?"
    if reading.unread >= UNREAD_LIMIT:
        return f"{reading.unread:.0%} of the ink was not read; is it one formula?"
    if reading.confidence < DOUBTFUL_CONFIDENCE:
        return f"confidence {reading.confidence:.2f}; compare it with the image."
    return None


def _repeats_itself(tokens: Sequence[str]) -> bool:
    """Tell whether a long reading says little else than the same few things, as a model does that is lost."""
    runs = list(zip(tokens, tokens[1:], tokens[2:], tokens[3:], strict=False))
    return len(tokens) >= _RUNAWAY_TOKENS and len(set(runs)) < _MIN_VARIETY * len(runs)


def token_alternatives(hypothesis: Hypothesis, vocabulary: Vocabulary) -> tuple[TokenAlternatives, ...]:
    """Return for each token the likeliest others that could stand in its place, each with its probability.

    Only those are kept that leave a formula, and another picture.
    """
    tokens = vocabulary.decode(hypothesis.token_ids)
    found: list[list[tuple[str, float]]] = [[] for _ in tokens]
    states: list[State] = []  # before each token, as far as they were needed
    for place, other, probability in _candidates(hypothesis, tokens, vocabulary):
        _follow(states, tokens[:place])
        if len(states) <= place:
            break  # without a guard what was read may be no formula
        if _is_formula(states[place], [other, *tokens[place + 1 :]]) and _is_another_picture(
            tokens, place, other
        ):
            found[place].append((other, probability))
    return tuple(map(tuple, found))


def is_formula(tokens: Sequence[str]) -> bool:
    """Tell whether the guard would let tokens through, from the first to the end."""
    return _is_formula(START, tokens)


def _candidates(
    hypothesis: Hypothesis, tokens: Sequence[str], vocabulary: Vocabulary
) -> Iterator[tuple[int, str, float]]:
    """Yield places, other tokens there that draw something else, and how probable these are."""
    assert hypothesis.likeliest is not None
    assert hypothesis.likeliest_log_probs is not None
    probabilities = np.exp(hypothesis.likeliest_log_probs[: len(tokens)])
    places, ranks = np.nonzero(probabilities >= MIN_PROBABILITY)
    for place, rank in zip(places.tolist(), ranks.tolist(), strict=True):
        token, other_id = tokens[place], int(hypothesis.likeliest[place, rank])
        other = vocabulary.tokens[other_id]
        if other_id == Vocabulary.eos_id or token in _NOT_ALONE or other in _NOT_ALONE:
            continue
        # of font and style a switch is another choice, of a sign it is not
        if look_of(other) != look_of(token) and (other in SWITCHES) == (token in SWITCHES):
            yield place, other, float(probabilities[place, rank])


def _follow(states: list[State], tokens: Sequence[str]) -> None:
    """Add the states before tokens, up to the one behind these or to where they are no formula."""
    if not states:
        states.append(START)
    for token in tokens[len(states) - 1 :]:
        state = advance(states[-1], token)
        if state is None:
            return
        states.append(state)


def _is_formula(state: State, tokens: Sequence[str]) -> bool:
    for token in tokens:
        after = advance(state, token)
        if after is None or (state.depth >= MAX_DEPTH and after.depth > state.depth):
            return False
        state = after
    return may_end(state)


def _is_another_picture(tokens: Sequence[str], place: int, other: str) -> bool:
    """Tell whether the formula with another token is one for the normaliser, and another picture."""
    try:
        changed = normalize_formula(" ".join([*tokens[:place], other, *tokens[place + 1 :]])).tokens
    except FormulaError:
        return False
    return [look for token in changed if (look := look_of(token.text))] != [
        look for token in tokens if (look := look_of(token))
    ]
