"""Images to LaTeX, in Python: prepare, encode, search, and say how sure and where.

reader = Reader()
reading = reader.read("formula.png")
print(reading.latex, reading.confidence)

Whether a reading makes sense: a model writes something about any picture, also about one of no formula.

Only a model that was calibrated is asked, as the doubt of one that cannot read yet says nothing about the
picture. What the limits rest on is in docs/LOG.md.

What a search in an image gave, before it becomes a reading.
"""

import copy
import math
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Final, Literal, NamedTuple, Protocol, TypeVar, overload

import numpy as np
from PIL import Image

from i2l.errors import I2LError
from i2l.formulas.lexer import FormulaError
from i2l.formulas.pretty import readable_formula
from i2l.formulas.spelling import picture_of
from i2l.images.canvas import WHITE, place_on_canvas
from i2l.images.open import ImageSource, ImageSources, list_sources
from i2l.images.prepare import MIN_DENSE_PX, NotAFormulaError, PreparedImage, prepare_image
from i2l.inference import BEAM_WIDTH
from i2l.inference.alternatives import OTHERS, token_alternatives
from i2l.inference.backends import LoadedModel, load_model
from i2l.inference.boxes import MUCH, PageInk
from i2l.inference.confidence import Evidence, TokenLooks, gather_evidence
from i2l.inference.decoding import BeamOptions, Hypothesis, beam_search
from i2l.inference.grammar import FormulaGuard, guards_of_few
from i2l.inference.reading import Alternative, Reading

DOUBTFUL: Final = 0.5  # confidence below which a person should look
_LONG: Final = 6  # tokens: of fewer, the doubt may be about one odd symbol
_MEAN_LOG_PROB: Final = -0.6  # of a token; in long readings of formulas, also misread ones, it is above -.5
_RUNAWAY: Final = 60  # tokens: shorter readings may well say the same thing again
_VARIETY: Final = 0.2  # distinct runs of four tokens among all of them; formulas have .3 and more ...
_DOUBTFUL: Final = 0.01  # ... or, as a matrix of zeros, are read with a greater confidence
_DENSE: Final = 0.42  # share of ink; bold capitals have .4 ...
_SURE: Final = 0.5  # ... and are read with a greater probability


def find_nonsense(reading: Reading) -> NotAFormulaError | None:
    """Give an error for a reading of something that is no formula, as far as that can be told."""
    if not reading.tokens:
        return NotAFormulaError("This does not look like a formula: nothing can be read in it.")
    probabilities = np.maximum(reading.token_probabilities, 1e-9)
    if len(reading.tokens) >= _LONG and np.log(probabilities).mean() < _MEAN_LOG_PROB:
        return NotAFormulaError("This does not look like a formula: what can be read in it makes no sense.")
    if reading.confidence < _DOUBTFUL and _repeats_itself(reading.tokens):
        return NotAFormulaError("This does not look like a formula: the same is read in it over and over.")
    pixels = reading.prepared.pixels
    large = min(pixels.shape) / reading.prepared.scale >= MIN_DENSE_PX
    if large and np.exp(reading.log_prob) < _SURE and 1 - pixels.mean() / WHITE > _DENSE:
        return NotAFormulaError("This does not look like a formula: nearly half of it is ink.")
    return None


def find_doubt(reading: Reading) -> str | None:
    """Say what a person should know before using a reading; None if there is nothing."""
    if not reading.finished:
        return "cut at the limit of tokens; is it one formula?"
    if reading.unread >= MUCH:
        return f"{reading.unread:.0%} of the ink was not read; is it one formula?"
    if reading.confidence < DOUBTFUL:
        return f"confidence {reading.confidence:.2f}; compare it with the image."
    return None


def _repeats_itself(tokens: Sequence[str]) -> bool:
    """Whether a long reading says little else than the same few things, as a model does that is lost."""
    runs = list(zip(tokens, tokens[1:], tokens[2:], tokens[3:], strict=False))
    return len(tokens) >= _RUNAWAY and len(set(runs)) < _VARIETY * len(runs)


class Candidate(NamedTuple):
    """A reading as a person would write it, the likeliest hypothesis that draws it, and what all have."""

    latex: str
    tokens: tuple[str, ...]
    hypothesis: Hypothesis
    log_prob: float
    unread: float
    picture: tuple[str, ...]  # as `picture_of` gives it


class Attempt(NamedTuple):
    """The ink of a form of an image, what was read there, and how long that took."""

    ink: PageInk
    found: list[Hypothesis]
    seconds: float
    elsewhere: tuple[Hypothesis, ...] = ()  # the best one of each other form that was read


def most_probable_first(found: Sequence[Hypothesis]) -> list[Hypothesis]:
    """Order what a search found."""
    return sorted(found, key=lambda one: (one.finished, one.log_prob), reverse=True)


def readable_tokens(tokens: Sequence[str]) -> str:
    """Give the LaTeX a person would write; without a guard tokens may be no formula, and stay as they are."""
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


T = TypeVar("T")
R = TypeVar("R")

SPARES = 4  # other readings that come for nothing
# A greedy reading stands if it is this sure of every token; the beam finds no other then (docs/LOG.md).
SURE = 0.6


class Reader:
    """Reads images of formulas. It keeps no state between calls: threads may share one."""

    def __init__(
        self,
        model: str | Path | None = None,
        *,
        beam_width: int = BEAM_WIDTH,
        n_best: int = 1,
        guard: bool = True,
        check: bool = True,
        max_tokens: int | None = None,
        threads: int | None = None,
        batch_size: int | None = None,
        device: str = "cpu",
    ) -> None:
        """Load a model.

        Args:
            model: the name of one in the box, a folder that `i2l export` wrote, or a checkpoint (which needs
                torch); the model in the box if None.
            beam_width: hypotheses that are followed at once; 1 is greedy.
            n_best: readings that the search makes certain; those written the same way are one.
            guard: write only what is a formula, and stop repetition.
            check: refuse a picture in which nothing looks like a formula.
            max_tokens: longest formula; as long as the model can write if None.
            threads: of one call; all processors if None. The result does not depend on it.
            batch_size: images that a thread of `read_many` reads together; what suits the model if None.
            device: of a checkpoint, as torch names it; an exported model runs on the CPU.

        Raises:
            ModelError: if there is no such model, or it is broken.
        """
        if min(beam_width, n_best, max_tokens or 1, batch_size or 1) < 1 or n_best > beam_width:
            raise I2LError(
                "beam_width, n_best, max_tokens and batch_size are at least 1, n_best at most the beam."
            )
        self.model: LoadedModel = load_model(model, threads=threads, device=device)
        limit = self.model.config.max_steps
        if max_tokens is not None and max_tokens >= limit:
            raise I2LError(f"This model writes at most {limit - 1} tokens; max_tokens is {max_tokens}.")
        self._options = BeamOptions(
            width=beam_width,
            n_best=n_best,
            spares=SPARES,
            max_steps=(max_tokens or limit - 1) + 1,
            others=OTHERS,
        )
        self._guard = FormulaGuard(self.model.vocabulary) if guard else None
        self._guards_of_few = guards_of_few(self.model.vocabulary)
        self._looks = TokenLooks(self.model.vocabulary)
        self._check = check
        self._batch_size = batch_size or self.model.backend.batch_size

    def with_options(
        self,
        *,
        beam_width: int | None = None,
        n_best: int | None = None,
        guard: bool | None = None,
        check: bool | None = None,
    ) -> "Reader":
        """Give a reader that shares the loaded model and searches another way; what is None stays as it is.

        Raises:
            I2LError: if there are more readings to make certain than hypotheses.
        """
        other = copy.copy(self)
        other._options = replace(
            self._options,
            width=self._options.width if beam_width is None else beam_width,
            n_best=self._options.n_best if n_best is None else n_best,
        )
        if not 1 <= other._options.n_best <= other._options.width:
            raise I2LError("beam_width and n_best are at least 1, n_best at most the beam.")
        if guard is not None:
            other._guard = (self._guard or FormulaGuard(self.model.vocabulary)) if guard else None
        other._check = self._check if check is None else check
        return other

    def prepare(self, source: ImageSource, *, scale: float | None = None) -> list[PreparedImage]:
        """Turn an image into what the model reads; several forms if the scale is in doubt.

        Raises:
            ImageError: if there is no formula in it.
        """
        return prepare_image(
            source,
            canvas_shape=self.model.config.canvas_shape,
            dpi=self.model.dpi,
            scale=scale,
            check=self._check,
        )

    def read(self, source: ImageSource, *, scale: float | None = None) -> Reading:
        """Read one image: a path, a file or its bytes, an array, or an open image.

        Args:
            source: the image.
            scale: pixels of the model for one of the image; estimated if None.

        Raises:
            ImageError: if it cannot be read; the message says why and what to do.
        """
        started = time.perf_counter()
        (reading,) = self._read_forms([self.prepare(source, scale=scale)])
        if isinstance(reading, I2LError):
            raise reading
        return replace(reading, seconds=time.perf_counter() - started)

    @overload
    def read_many(
        self, sources: ImageSources, *, scale: float | None = ..., errors: Literal["raise"] = ...
    ) -> list[Reading]: ...

    @overload
    def read_many(
        self, sources: ImageSources, *, scale: float | None = ..., errors: Literal["return"]
    ) -> list[Reading | I2LError]: ...

    def read_many(
        self,
        sources: ImageSources,
        *,
        scale: float | None = None,
        errors: Literal["raise", "return"] = "raise",
    ) -> list[Reading] | list[Reading | I2LError]:
        """Read many images, those of about one size together; the readings come in the order of the images.

        Args:
            sources: the images, each as in `read`; or the path of a folder, for all images in it.
            scale: as in `read`, for all of them.
            errors: "return" puts the error in the place of a reading, "raise" stops at the first one.

        Raises:
            ImageError: for the first image that cannot be read, unless errors are returned.
            I2LError: if errors is neither of the two, or the sources are one image.
        """
        if errors not in ("raise", "return"):
            raise I2LError(f'errors is "raise" or "return", not {errors!r}.')
        given = list_sources(sources)
        lanes = min(self.model.backend.num_lanes, math.ceil(len(given) / self._batch_size))
        if lanes <= 1:
            return self._read_batches(given, scale, errors, run=map)
        # Batches side by side with one thread each take less than one after the other with all threads.
        reader = copy.copy(self)
        reader.model = replace(self.model, backend=self.model.backend.lane())
        with ThreadPoolExecutor(lanes) as pool:
            return reader._read_batches(given, scale, errors, run=pool.map)

    def _read_batches(
        self, sources: Sequence[ImageSource], scale: float | None, errors: str, *, run: "_Map"
    ) -> list[Reading | I2LError]:
        """Prepare images and read them in batches of about one size, the same ones whoever runs them."""

        def try_to_prepare(source: ImageSource) -> list[PreparedImage] | I2LError:
            try:
                return self.prepare(source, scale=scale)
            except I2LError as error:
                return error

        results: list[Reading | I2LError | None] = []
        forms: dict[int, list[PreparedImage]] = {}
        # An open image is read from its file when it is first looked at, which two threads must not do.
        serial = any(isinstance(source, Image.Image) for source in sources)
        for index, prepared in enumerate((map if serial else run)(try_to_prepare, sources)):
            if isinstance(prepared, I2LError):
                if errors == "raise":
                    raise prepared
                results.append(prepared)
            else:
                forms[index] = prepared
                results.append(None)
        order = sorted(forms, key=lambda index: (forms[index][-1].pixels.shape[::-1], index), reverse=True)
        batches = [
            order[first : first + self._batch_size] for first in range(0, len(order), self._batch_size)
        ]
        found = run(self._read_forms, [[forms[index] for index in batch] for batch in batches])
        for batch, readings in zip(batches, found, strict=True):
            for index, reading in zip(batch, readings, strict=True):
                if errors == "raise" and isinstance(reading, I2LError):
                    raise reading
                results[index] = reading
        return results  # type: ignore[return-value] # every place is filled

    def _read_forms(self, forms: Sequence[list[PreparedImage]]) -> list[Reading | NotAFormulaError]:
        """Read images, each in one of its forms, the last of which is the most likely one.

        That one is read greedily. Where it leaves doubt, so are the others, and the best with the whole beam.
        A reading that makes no sense is an error.
        """
        greedy = replace(self._options, width=1, n_best=1)
        attempts = self._search([self._find_ink(images[-1]) for images in forms], greedy)
        unsure = [index for index, attempt in enumerate(attempts) if not self._is_sure(attempt)]
        owners = [index for index in unsure for _ in forms[index][:-1]]
        others = self._search(
            [self._find_ink(image) for index in unsure for image in forms[index][:-1]], greedy
        )
        for index, other in zip(owners, others, strict=True):
            first = attempts[index]
            best = max(
                (first, other),
                key=lambda one: (self._is_whole(one), one.found[0].score, -one.ink.image.scale),
            )
            loser = other if best is first else first
            attempts[index] = best._replace(
                seconds=first.seconds + other.seconds,
                elsewhere=(*first.elsewhere, most_probable_first(loser.found)[0]),
            )
        if self._options.width > 1:
            again = unsure if self._options.n_best == 1 else list(range(len(attempts)))
            wide = self._search([attempts[index].ink for index in again], self._options)
            for index, attempt in zip(again, wide, strict=True):
                first = attempts[index]
                best = max((attempt, first), key=self._is_whole)  # the wide one, unless it has lost a part
                attempts[index] = best._replace(
                    seconds=attempt.seconds + first.seconds, elsewhere=first.elsewhere
                )
        readings = [self._reading(attempt) for attempt in attempts]
        if not self._check or self.model.calibration is None:
            return [*readings]
        return [find_nonsense(reading) or reading for reading in readings]

    def _find_ink(self, image: PreparedImage) -> PageInk:
        return PageInk.find(image, self.model.config)

    def _search(self, inks: Sequence[PageInk], options: BeamOptions) -> list[Attempt]:
        """Search in the images of a batch, in those with as few symbols together."""
        groups: dict[int, list[int]] = {}
        for place, ink in enumerate(inks):
            few = ink.num_symbols if ink.num_symbols in self._guards_of_few else 0
            groups.setdefault(few, []).append(place)
        found: dict[int, Attempt] = {}
        for few, places in groups.items():
            guard = self._guards_of_few[few] if self._guard is not None and few else self._guard
            attempts = self._search_together([inks[place] for place in places], options, guard)
            found |= zip(places, attempts, strict=True)
        return [found[place] for place in range(len(inks))]

    def _search_together(
        self, inks: Sequence[PageInk], options: BeamOptions, guard: FormulaGuard | None
    ) -> list[Attempt]:
        """Search in several images at once."""
        started = time.perf_counter()
        backend = self.model.backend
        canvases = place_on_canvas(
            [ink.image.pixels for ink in inks], canvas_shape=self.model.config.canvas_shape
        )
        found = beam_search(
            backend, backend.encode(canvases), arrays=backend.arrays, options=options, guard=guard
        )
        seconds = (time.perf_counter() - started) / len(inks)
        return [Attempt(ink, hypotheses, seconds) for ink, hypotheses in zip(inks, found, strict=True)]

    def _reading(self, attempt: Attempt) -> Reading:
        """Make the reading of one image."""
        best, *others = self._alike(attempt.found, attempt.ink)
        evidence = self._evidence(best, others, attempt)
        confidence = self._confidence(evidence)
        tokens = best.tokens
        length = len(tokens)
        hypothesis = best.hypothesis
        assert hypothesis.attention is not None
        attention = hypothesis.attention[:length]
        return Reading(
            latex=best.latex,
            tokens=tokens,
            confidence=confidence,
            log_prob=best.log_prob,
            token_probabilities=np.exp(hypothesis.token_log_probs[:length]),
            attention=attention,
            boxes=attempt.ink.boxes(tokens, attention, share=self.model.box_share),
            alternatives=share_rest(confidence, best, others),
            finished=hypothesis.finished,
            unread=best.unread,
            seconds=attempt.seconds,
            prepared=attempt.ink.image,
            token_alternatives=token_alternatives(hypothesis, self.model.vocabulary),
            evidence=evidence,
        )

    def _alike(self, found: Sequence[Hypothesis], ink: PageInk) -> list[Candidate]:
        """Put together what draws the same, and order that by its probability.

        The length penalty leads the search, which would else end too early. Of what it found the most
        probable is printed: with the penalty a letter came in an array, and alternatives could be surer.
        What leaves out a part of the picture comes after all that does not.
        """
        candidates: dict[tuple[str, ...], Candidate] = {}
        for hypothesis in most_probable_first(found):
            tokens = tuple(self.model.vocabulary.decode(hypothesis.token_ids))
            latex = readable_tokens(tokens)
            picture = picture_of(latex)
            first = candidates.get(picture)
            if first is None:
                unread = self._unread(hypothesis, ink)
                candidates[picture] = Candidate(
                    latex, tokens, hypothesis, hypothesis.log_prob, unread, picture
                )
            elif hypothesis.finished == first.hypothesis.finished:
                log_prob = min(float(np.logaddexp(first.log_prob, hypothesis.log_prob)), 0.0)
                candidates[picture] = first._replace(log_prob=log_prob)
        return sorted(
            candidates.values(),
            key=lambda one: (one.hypothesis.finished, one.unread < MUCH, one.log_prob),
            reverse=True,
        )

    def _unread(self, hypothesis: Hypothesis, ink: PageInk) -> float:
        """Give the share of ink that a hypothesis leaves out."""
        assert hypothesis.attention is not None
        tokens = self.model.vocabulary.decode(hypothesis.token_ids)
        return ink.unread(tokens, hypothesis.attention[: len(tokens)])

    def _is_whole(self, attempt: Attempt) -> bool:
        """Tell whether some hypothesis leaves nothing out."""
        return any(self._unread(hypothesis, attempt.ink) < MUCH for hypothesis in attempt.found)

    def _is_sure(self, attempt: Attempt) -> bool:
        """Tell whether the best hypothesis is sure of every token and leaves nothing out."""
        best = most_probable_first(attempt.found)[0]
        sure = best.finished and float(np.exp(best.token_log_probs.min())) >= SURE
        return sure and self._is_whole(attempt)

    def _evidence(self, candidate: Candidate, others: Sequence[Candidate], attempt: Attempt) -> Evidence:
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
        """Give the share of other scales at which the same was read; 1 if there was no need of any."""
        same = [
            picture_of(readable_tokens(self.model.vocabulary.decode(other.token_ids))) == candidate.picture
            for other in elsewhere
        ]
        return sum(same) / len(same) if same else 1.0

    def _confidence(self, evidence: Evidence) -> float:
        if self.model.calibration:
            return self.model.calibration.confidence(evidence)
        return math.exp(evidence.log_prob) if evidence.whole > -MUCH else 0.0


class _Map(Protocol):
    """What `map` does, here or in several threads."""

    def __call__(self, function: Callable[[T], R], items: Iterable[T], /) -> Iterator[R]: ...
