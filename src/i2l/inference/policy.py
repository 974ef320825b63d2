"""How hard to look at an image: greedily first, and with more effort only where that leaves doubt.

An image comes in one or several forms, at one or several scales, the most likely one last. That one is read
greedily. A reading that is sure of every token, and leaves no ink out, stands. Otherwise the other forms are
read greedily too, and the best of all with the whole beam. Readings that leave nothing out always come before
those that do.

Where several readings are wanted, the whole beam is searched in any case. An image of one form is then read
with it at once, and greedily only if the whole beam leaves something out.

What is in doubt even so can be read at other scales: `SearchPolicy.look_again`. Which of those readings is
the best one is decided where it is known what they draw (`i2l.inference.reading`).
"""

import math
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Final, NamedTuple

import numpy as np

from i2l.config import ReadingOptions
from i2l.formulas.vocabulary import Vocabulary
from i2l.images.prepare import PreparedImage, place_on_canvas
from i2l.inference.boxes import UNREAD_LIMIT, CanvasInk
from i2l.inference.decoding import Backend, BeamOptions, Hypothesis, Memory, beam_search
from i2l.inference.grammar import FormulaGuard, guards_of_few, guards_of_shapes
from i2l.inference.model_folder import LoadedModel

SPARE_READINGS: Final = 4  # other readings that come for nothing
OTHER_TOKENS: Final = 3  # that are kept at each step, as they might stand in the place of the one written
# A greedy reading stands if it is this sure of every token; the beam finds no other then (docs/LOG.md).
SURE_PROBABILITY: Final = 0.6
# A reading of few symbols that their guard forbids is taken if it is no longer, and so much more probable.
FREE_TOKENS: Final = 12
FREE_LOG_GAIN: Final = math.log(4)
ANY_NUMBER: Final = 0  # of symbols: the key of the guard for pictures of more than a few


# What the network remembers of images that were read together, by the identities of their inks: what is read
# again with the whole beam is not looked at again.
Memories = dict[tuple[int, ...], Memory]


class Attempt(NamedTuple):
    """The ink of a form of an image, what was read there, and how long that took."""

    ink: CanvasInk
    found: list[Hypothesis]
    seconds: float
    elsewhere: tuple[Hypothesis, ...] = ()  # the best one of each other form or scale that was read


class SearchPolicy:
    """Decides what is searched, and how, for one model. Safe to share between threads."""

    def __init__(self, model: LoadedModel, options: ReadingOptions) -> None:
        """Take a model and options that fit it."""
        self._config, self._vocabulary = model.config, model.vocabulary
        self._guards: dict[int | str, FormulaGuard] = {ANY_NUMBER: FormulaGuard(model.vocabulary)}
        self._guards |= guards_of_few(model.vocabulary)
        if model.handwriting:
            self._guards |= guards_of_shapes(model.vocabulary)
        self._choose(options)

    def with_options(self, options: ReadingOptions) -> "SearchPolicy":
        """Return a policy for the same model with other options; both share what their guards have learnt."""
        other = object.__new__(SearchPolicy)
        other.__dict__.update(self.__dict__)
        other._choose(options)
        return other

    def _choose(self, options: ReadingOptions) -> None:
        self._guarded = options.guard
        self._wide = BeamOptions(
            width=options.beam_width,
            length_penalty=options.length_penalty,
            n_best=options.n_best,
            spares=SPARE_READINGS,
            max_steps=self._config.max_steps if options.max_tokens is None else options.max_tokens + 1,
            others=OTHER_TOKENS,
        )
        self._greedy = replace(self._wide, width=1, n_best=1)

    def search(self, forms: Sequence[list[PreparedImage]], backend: Backend) -> list[Attempt]:
        """Search in images, each in one or several forms; return the best attempt at each."""
        memories: Memories = {}
        inks = [self._find_ink(images[-1]) for images in forms]
        if self._wide.n_best > 1 and all(len(images) == 1 for images in forms):
            attempts = self._search(inks, self._wide, backend, memories)
            lacking = [index for index, attempt in enumerate(attempts) if not self._is_whole(attempt)]
            self._search_again(attempts, lacking, self._greedy, backend, memories)
            return attempts
        attempts = self._search(inks, self._greedy, backend, memories)
        unsure = [index for index, attempt in enumerate(attempts) if not self._is_sure(attempt)]
        self._try_other_forms(attempts, unsure, forms, backend, memories)
        if self._wide.width > 1:
            again = unsure if self._wide.n_best == 1 else range(len(attempts))
            self._search_again(attempts, again, self._wide, backend, memories)
        return attempts

    def look_again(self, image: PreparedImage, backend: Backend) -> Attempt:
        """Read an image greedily, once more and by itself."""
        (attempt,) = self._search([self._find_ink(image)], self._greedy, backend, {})
        return attempt

    def widen(self, attempt: Attempt, backend: Backend) -> Attempt:
        """Search around what was read greedily: what the whole beam finds beside it comes after it."""
        best = most_probable_first(attempt.found)[0]
        (wide,) = self._search([attempt.ink], self._wide, backend, {})
        less = [hypothesis for hypothesis in wide.found if hypothesis.log_prob < best.log_prob]
        return attempt._replace(found=[best, *less], seconds=attempt.seconds + wide.seconds)

    def _try_other_forms(
        self,
        attempts: list[Attempt],
        unsure: Sequence[int],
        forms: Sequence[list[PreparedImage]],
        backend: Backend,
        memories: Memories,
    ) -> None:
        """Read the other forms of some images greedily, and keep the best attempt at each."""
        owners = [index for index in unsure for _ in forms[index][:-1]]
        inks = [self._find_ink(image) for index in unsure for image in forms[index][:-1]]
        for index, other in zip(owners, self._search(inks, self._greedy, backend, memories), strict=True):
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

    def _search_again(
        self,
        attempts: list[Attempt],
        again: Sequence[int],
        options: BeamOptions,
        backend: Backend,
        memories: Memories,
    ) -> None:
        """Search some images once more, with the whole beam or greedily; a part that is lost decides.

        What the whole beam found is kept, unless it leaves out a part of the picture that was read greedily.
        """
        searched = self._search([attempts[index].ink for index in again], options, backend, memories)
        for index, attempt in zip(again, searched, strict=True):
            first = attempts[index]
            both = (attempt, first) if options is self._wide else (first, attempt)
            attempts[index] = max(both, key=self._is_whole)._replace(
                seconds=attempt.seconds + first.seconds, elsewhere=first.elsewhere
            )

    def _find_ink(self, image: PreparedImage) -> CanvasInk:
        return CanvasInk.find(image, self._config)

    def _search(
        self, inks: Sequence[CanvasInk], options: BeamOptions, backend: Backend, memories: Memories
    ) -> list[Attempt]:
        """Search in the images of a batch; those of one symbol, and of two, have guards of their own.

        There a longer reading is not favoured: one blurred letter was read as a hundred empty groups, each
        likelier than the letter. Where such a guard leaves doubt, symbols may touch, as a letter and its
        exponent do in Times: a short reading without it is taken if it is much more probable.

        Handwriting that is one bar, or a few dots, is read as signs of that shape. Inks to learn from hold no
        such formula: a minus by itself was read as roots in roots.
        """
        groups: dict[int | str, list[int]] = {}
        for place, ink in enumerate(inks):
            kinds: tuple[int | str, ...] = (ink.shape, ink.num_symbols)
            kind = next((kind for kind in kinds if kind in self._guards), ANY_NUMBER)
            groups.setdefault(kind, []).append(place)
        found: dict[int, Attempt] = {}
        for kind, places in groups.items():
            guard = self._guards[kind] if self._guarded else None
            penalty = options.length_penalty if kind == ANY_NUMBER else 0.0
            together = [inks[place] for place in places]
            attempts = self._search_together(
                together, replace(options, length_penalty=penalty), guard, backend, memories
            )
            if guard is not None and isinstance(kind, int) and kind != ANY_NUMBER:
                attempts = [
                    attempt
                    if self._is_sure(attempt)
                    else self._read_freely(attempt, options, backend, memories)
                    for attempt in attempts
                ]
            found |= zip(places, attempts, strict=True)
        return [found[place] for place in range(len(inks))]

    def _read_freely(
        self, attempt: Attempt, options: BeamOptions, backend: Backend, memories: Memories
    ) -> Attempt:
        """Search an image of few symbols as if it had any number of them; return the better attempt."""
        (free,) = self._search_together(
            [attempt.ink], replace(options, length_penalty=0.0), self._guards[ANY_NUMBER], backend, memories
        )
        best, guarded = most_probable_first(free.found)[0], most_probable_first(attempt.found)[0]
        taken = (
            best.finished
            and len(best.token_ids) <= FREE_TOKENS
            and best.log_prob > guarded.log_prob + FREE_LOG_GAIN
        )
        seconds = attempt.seconds + free.seconds
        return (free if taken else attempt)._replace(seconds=seconds)

    def _search_together(
        self,
        inks: Sequence[CanvasInk],
        options: BeamOptions,
        guard: FormulaGuard | None,
        backend: Backend,
        memories: Memories,
    ) -> list[Attempt]:
        """Search in several images at once."""
        started = time.perf_counter()
        key = tuple(map(id, inks))
        if key not in memories:
            shape = self._config.canvas_shape
            memories[key] = backend.encode(
                place_on_canvas([ink.image.pixels for ink in inks], canvas_shape=shape)
            )
        found = beam_search(backend, memories[key], arrays=backend.arrays, options=options, guard=guard)
        seconds = (time.perf_counter() - started) / len(inks)
        return [Attempt(ink, hypotheses, seconds) for ink, hypotheses in zip(inks, found, strict=True)]

    def _is_sure(self, attempt: Attempt) -> bool:
        """Tell whether the best hypothesis is sure of every token and leaves nothing out."""
        best = most_probable_first(attempt.found)[0]
        sure = best.finished and float(np.exp(best.token_log_probs.min())) >= SURE_PROBABILITY
        return sure and self._is_whole(attempt)

    def _is_whole(self, attempt: Attempt) -> bool:
        """Tell whether some hypothesis leaves nothing out."""
        return any(
            unread_share(hypothesis, attempt.ink, self._vocabulary) < UNREAD_LIMIT
            for hypothesis in attempt.found
        )


def most_probable_first(found: Sequence[Hypothesis]) -> list[Hypothesis]:
    """Order what a search found; what was cut at the limit of tokens comes last."""
    return sorted(found, key=lambda one: (one.finished, one.log_prob), reverse=True)


def unread_share(hypothesis: Hypothesis, ink: CanvasInk, vocabulary: Vocabulary) -> float:
    """Return the share of ink that a hypothesis leaves out."""
    assert hypothesis.attention is not None
    tokens = vocabulary.decode(hypothesis.token_ids)
    return ink.unread(tokens, hypothesis.attention[: len(tokens)])
