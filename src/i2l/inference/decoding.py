"""Beam search, written once: it asks for steps of a model that it does not know; width 1 is greedy.

`BeamSearch` has no model inside. It says which tokens it wants stepped, and is fed the logits that come of
them; whoever drives it has the network, its memory and its state, here or in a browser. `beam_search` drives
it with a model of this package. It runs on NumPy arrays and torch tensors alike: the few operations whose
names differ are in `Arrays`, and everything else (arithmetic, comparisons, indexing with arrays, reshape) is
written the same way for both.

A hypothesis is scored by its log-probability over ((5 + length) / 6) ** alpha, length without eos. Finished
hypotheses stay in the beam and compete with the others. Each step remembers which hypothesis each one came
from, and tokens, probabilities and attention are read off backwards along those, so all belong together.

An image is done when no live hypothesis can still overtake: log-probabilities only fall, and no length is
kinder than the longest, so that gives a bound. Done early or not, the answer is the same.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from i2l.formulas.vocabulary import Vocabulary
from i2l.inference.grammar import GuardState

Array = Any  # an ndarray or a Tensor
Memory = dict[str, Array]  # what a model needs of the images at every step, one row an image
State = dict[str, Array]  # what it needs of the hypotheses, one row each; those of an image stand together


class Arrays(Protocol):
    """Operations whose names or arguments differ between NumPy and torch."""

    check_every: int  # steps between looks at values; on a GPU each look waits for the device

    def log_softmax(self, logits: Array) -> Array:
        """Turn logits (N, K) into log-probabilities."""

    def top_k(self, values: Array, k: int) -> tuple[Array, Array]:
        """Return the k largest of each row and where they are, largest first: (B, M) to (B, k) twice."""

    def where(self, condition: Array, values: Array, others: Array | float) -> Array:
        """Choose by condition."""

    def arange(self, stop: int) -> Array:
        """Count from 0."""

    def floats(self, values: NDArray[Any]) -> Array:
        """Turn numbers into float32, where the search runs."""

    def integers(self, values: NDArray[Any]) -> Array:
        """Turn numbers into int64, where the search runs."""

    def booleans(self, values: NDArray[Any]) -> Array:
        """Turn truth values into an array, where the search runs."""

    def numpy(self, values: Array) -> NDArray[Any]:
        """Copy to an ndarray."""


class StepModel(Protocol):
    """A model that `beam_search` can drive. Hypotheses of one image stand next to each other in all rows."""

    def start(self, memory: Memory) -> State:
        """Return the state before the first token, one row an image."""

    def step(self, memory: Memory, state: State, token_ids: Array) -> tuple[Array, State, Array]:
        """Take the last token of each hypothesis; return logits (B * k, K), state, attention (B * k, ...)."""


class Backend(StepModel, Protocol):
    """A network that reads, whatever runs it; see `i2l.inference.onnx_backend` and `torch_backend`."""

    arrays: Arrays
    num_lanes: int  # threads that may read with `lane()` side by side
    batch_size: int  # images that are best read together

    def lane(self) -> "Backend":
        """Return the same network for readers that run side by side, which then take one thread each."""

    def encode(self, pixels: NDArray[np.uint8]) -> Memory:
        """Compute once per image what every step needs, from canvases (B, H + 2, W + 2)."""


class Guard(Protocol):
    """Says which tokens may come next."""

    def start(self) -> GuardState:
        """Return the state before the first token."""

    def advance(self, state: GuardState, token_id: int) -> GuardState:
        """Return the state after a token."""

    def allowed(self, states: Sequence[GuardState], *, steps_left: int) -> NDArray[np.bool_]:
        """Tell for each state which tokens may come next: (N, K)."""


@dataclass(frozen=True, kw_only=True)
class BeamOptions:
    """How to search. The defaults are the paper's."""

    width: int = 10
    length_penalty: float = 1.0  # alpha
    max_steps: int  # tokens, eos included
    n_best: int = 1  # the search goes on until these are certain
    spares: int = 0  # finished hypotheses to return beyond those, as they are in the beam by then
    keep_attention: bool = True
    others: int = 0  # of the likeliest tokens, so many are kept at each step beside the one written


@dataclass(frozen=True)
class Hypothesis:
    """One reading of one image."""

    token_ids: list[int]  # without eos
    log_prob: float  # of all tokens, eos included; of the model, not of the search
    score: float  # what the search ranks by
    token_log_probs: NDArray[np.float32]  # one for each token, and the last for eos if the search got to it
    attention: NDArray[np.float32] | None  # (as many, rows, columns)
    finished: bool  # ended by eos, not by the limit
    likeliest: NDArray[np.int64] | None = None  # (as many, others + 1): tokens at each step, likeliest first
    likeliest_log_probs: NDArray[np.float32] | None = None  # theirs, whatever the guard says


def beam_search(
    model: StepModel,
    memory: Memory,
    *,
    arrays: Arrays,
    options: BeamOptions,
    guard: Guard | None = None,
) -> list[list[Hypothesis]]:
    """Read the images of a memory with a model; return the best hypotheses of each, best first.

    Args:
        model: takes one step for all hypotheses.
        memory: what the model needs from the images, with a leading dimension of B.
        arrays: the operations for the kind of arrays that the model takes.
        options: of the search.
        guard: says which tokens may come next; all but bos if None.
    """
    search = BeamSearch(len(next(iter(memory.values()))), arrays=arrays, options=options, guard=guard)
    state = model.start(memory)
    while (wanted := search.wanted) is not None:
        if wanted.images is not None:
            memory = {name: value[wanted.images] for name, value in memory.items()}
        if wanted.rows is not None:
            state = {name: value[wanted.rows] for name, value in state.items()}
        logits, state, attention = model.step(memory, state, wanted.token_ids)
        search.feed(logits, attention)
    return search.found


@dataclass(frozen=True)
class WantedStep:
    """What a search wants of its driver: to take some rows of what it has, and then one step of the model."""

    token_ids: Array  # the last token of each hypothesis, (B * k,)
    images: Array | None  # the rows of the memory that are still read; None where all are
    rows: Array | None  # for each hypothesis, its row in the state before; None where they are as they were


@dataclass
class _Beam:
    """The hypotheses of the images that are not done: all arrays (B, k)."""

    images: NDArray[np.int64]  # which image each row is, (B,)
    log_probs: Array
    lengths: Array  # without eos
    finished: Array
    # One entry a step: token, parent slot and log-probability, (B, k) each; attention (B, parents, ...).
    tokens: list[Array] = field(default_factory=list)
    parents: list[Array] = field(default_factory=list)
    token_log_probs: list[Array] = field(default_factory=list)
    attention: list[Array] = field(default_factory=list)
    likeliest: list[Array] = field(default_factory=list)  # (B, parents, others + 1)
    likeliest_log_probs: list[Array] = field(default_factory=list)

    def keep(self, rows: Array, images: NDArray[np.int64]) -> None:
        """Go on with some of the images."""
        self.images = images
        self.log_probs, self.lengths = self.log_probs[rows], self.lengths[rows]
        self.finished = self.finished[rows]
        for history in (
            *(self.tokens, self.parents, self.token_log_probs),
            *(self.attention, self.likeliest, self.likeliest_log_probs),
        ):
            history[:] = [entry[rows] for entry in history]


class BeamSearch:
    """One search over several images, driven from outside.

    While `wanted` is not None, its driver takes that step with a model and calls `feed` with what came of it.
    Then `found` has the best hypotheses of each image, best first.
    """

    wanted: WantedStep | None
    found: list[list[Hypothesis]]

    def __init__(
        self, num_images: int, *, arrays: Arrays, options: BeamOptions, guard: Guard | None = None
    ) -> None:
        """Begin a search; arguments as in `beam_search`, but that no model and no memory is needed."""
        self._arrays = arrays
        self._options = options
        self._guard = guard
        zeros = np.zeros((num_images, 1))
        self._beam = _Beam(
            images=np.arange(num_images),
            log_probs=arrays.floats(zeros),
            lengths=arrays.floats(zeros),
            finished=arrays.booleans(zeros),
        )
        self._steps = 0
        self._guards = [guard.start()] * num_images if guard else []
        self.found = [[] for _ in range(num_images)]
        first = arrays.integers(np.full(num_images, Vocabulary.bos_id))
        self.wanted = WantedStep(first, images=None, rows=None) if options.max_steps else None

    def feed(self, logits: Array, attention: Array) -> None:
        """Take what the wanted step gave: logits (B * k, K) and attention (B * k, ...)."""
        self._steps += 1
        if self._steps == 1:
            self._prepare(logits.shape[1])
        tokens, rows = self._extend(logits, attention)
        images = None
        last = self._steps == self._options.max_steps
        if last or self._steps % self._arrays.check_every == 0:
            done = np.ones(len(self._beam.images), np.bool_) if last else self._find_done()
            # Images are taken off the beam once half of them are done, or all that are left.
            if done.all() or 2 * done.sum() >= len(done):
                images, slots = self._drop(done)
                tokens, rows = tokens[slots], rows[slots]
        goes_on = len(self._beam.images) and not last
        # With one hypothesis an image each row goes on from itself, unless images were taken off the beam.
        as_before = images is None and self._options.width == 1
        self.wanted = WantedStep(tokens, images=images, rows=None if as_before else rows) if goes_on else None

    def _prepare(self, vocab_size: int) -> None:
        """Make what is the same at every step, (K,) each."""
        token_ids = np.arange(vocab_size)
        is_eos = token_ids == Vocabulary.eos_id
        self._all_but_bos = self._arrays.booleans(token_ids != Vocabulary.bos_id)
        self._growth = self._arrays.floats(~is_eos)  # of the length
        # A finished hypothesis goes on as it is: eos again, at no cost.
        self._only_eos = self._arrays.floats(np.where(is_eos, 0.0, -np.inf))

    def _extend(self, logits: Array, attention: Array) -> tuple[Array, Array]:
        """Write one token more; return the last token of each hypothesis and the row that it came from."""
        arrays, beam = self._arrays, self._beam
        num_images, num_slots = beam.log_probs.shape
        vocab_size = logits.shape[1]
        log_probs = arrays.log_softmax(logits)
        token_log_probs = arrays.where(self._allowed(), log_probs, -np.inf)
        finished = beam.finished.reshape(-1, 1)
        token_log_probs = arrays.where(finished, self._only_eos, token_log_probs)  # (B * k, K)
        totals = beam.log_probs.reshape(-1, 1) + token_log_probs
        lengths = beam.lengths.reshape(-1, 1) + self._growth
        scores = totals / self._penalty(lengths)
        width = min(self._options.width, num_slots * vocab_size)
        _, places = arrays.top_k(scores.reshape(num_images, -1), width)  # (B, width)
        parents = places // vocab_size
        rows = arrays.arange(num_images).reshape(-1, 1) * num_slots + parents  # of the flat arrays
        tokens = places % vocab_size

        beam.log_probs = totals[rows, tokens]
        beam.lengths = lengths[rows, tokens]
        beam.finished = finished[rows, 0] | (tokens == Vocabulary.eos_id)
        beam.tokens.append(tokens)
        beam.parents.append(parents)
        beam.token_log_probs.append(token_log_probs[rows, tokens])
        if self._options.keep_attention:
            beam.attention.append(attention.reshape(num_images, num_slots, *attention.shape[1:]))
        if self._options.others:
            best, likeliest = arrays.top_k(
                arrays.where(self._all_but_bos, log_probs, -np.inf),
                min(self._options.others + 1, vocab_size - 1),
            )
            beam.likeliest.append(likeliest.reshape(num_images, num_slots, -1))
            beam.likeliest_log_probs.append(best.reshape(num_images, num_slots, -1))
        last_tokens, flat_rows = tokens.reshape(-1), rows.reshape(-1)
        if self._guard:
            self._advance_guards(self._guard, last_tokens, flat_rows)
        return last_tokens, flat_rows

    def _penalty(self, lengths: Array) -> Array:
        return ((5.0 + lengths) / 6.0) ** self._options.length_penalty

    def _allowed(self) -> Array:
        if not self._guard:
            return self._all_but_bos
        steps_left = self._options.max_steps - self._steps + 1
        return self._all_but_bos & self._arrays.booleans(
            self._guard.allowed(self._guards, steps_left=steps_left)
        )

    def _advance_guards(self, guard: Guard, tokens: Array, rows: Array) -> None:
        """Follow the hypotheses that are alive; the others keep a state, so that there is one a row."""
        beam, numpy = self._beam, self._arrays.numpy
        alive = numpy(~beam.finished & (beam.log_probs > -np.inf)).reshape(-1)
        self._guards = [
            guard.advance(self._guards[row], token) if lives else self._guards[row]
            for row, token, lives in zip(numpy(rows).tolist(), numpy(tokens).tolist(), alive, strict=True)
        ]

    def _find_done(self) -> NDArray[np.bool_]:
        """Tell which images have their n best hypotheses, whatever comes."""
        beam, numpy = self._beam, self._arrays.numpy
        log_probs, finished = numpy(beam.log_probs), numpy(beam.finished)
        if not finished.any():  # as at most steps: done is only what no hypothesis can go on from
            dead: NDArray[np.bool_] = (log_probs == -np.inf).all(axis=1)
            return dead
        scores = np.where(finished, numpy(beam.log_probs / self._penalty(beam.lengths)), -np.inf)
        longest = ((5.0 + self._options.max_steps) / 6.0) ** self._options.length_penalty
        bound = np.where(finished, -np.inf, log_probs / longest).max(axis=1)
        rank = min(self._options.n_best, scores.shape[1])
        found = -np.partition(-scores, rank - 1, axis=1)[:, rank - 1]
        done: NDArray[np.bool_] = found >= bound
        return done

    def _drop(self, done: NDArray[np.bool_]) -> tuple[Array, Array]:
        """Take images off the beam; return the rows of those that stay, and of their hypotheses."""
        beam, arrays = self._beam, self._arrays
        self._collect(np.flatnonzero(done))
        kept = np.flatnonzero(~done)
        num_slots = beam.log_probs.shape[1]
        rows = arrays.integers(kept)
        beam.keep(rows, beam.images[kept])
        slots = (rows.reshape(-1, 1) * num_slots + arrays.arange(num_slots)).reshape(-1)
        if self._guard:
            self._guards = [self._guards[slot] for slot in arrays.numpy(slots).tolist()]
        return rows, slots

    def _collect(self, done: NDArray[np.int64]) -> None:
        """Read the best hypotheses of some images off the beam, backwards along the parents."""
        beam, arrays = self._beam, self._arrays
        if not len(done):
            return
        rows = arrays.integers(done)
        scores = (beam.log_probs / self._penalty(beam.lengths))[rows]
        n_best = self._options.n_best
        best, slots = arrays.top_k(scores, min(n_best + self._options.spares, scores.shape[1]))  # (B, n)
        rows = rows.reshape(-1, 1)
        log_probs = arrays.numpy(beam.log_probs[rows, slots])
        finished = arrays.numpy(beam.finished[rows, slots])
        lengths = arrays.numpy(beam.lengths[rows, slots]).astype(np.int64)
        traced = self._trace(rows, slots)
        for row, image in enumerate(beam.images[done]):
            for rank, score in enumerate(arrays.numpy(best[row]).tolist()):
                if score == -np.inf or (rank >= n_best and not finished[row, rank]):
                    continue
                length = lengths[row, rank]
                steps = {
                    name: part[row, rank, : length + bool(finished[row, rank])]
                    for name, part in traced.items()
                }
                self.found[image].append(
                    Hypothesis(
                        token_ids=steps["tokens"][:length].tolist(),
                        log_prob=float(log_probs[row, rank]),
                        score=score,
                        token_log_probs=steps["token_log_probs"].astype(np.float32),
                        attention=steps["attention"].astype(np.float32) if "attention" in steps else None,
                        finished=bool(finished[row, rank]),
                        likeliest=steps.get("likeliest"),
                        likeliest_log_probs=steps.get("likeliest_log_probs"),
                    )
                )

    def _trace(self, rows: Array, slots: Array) -> dict[str, NDArray[Any]]:
        """Follow hypotheses back along their parents; return what was kept of them, (B, n, T, ...) each."""
        beam, numpy = self._beam, self._arrays.numpy
        written = {"tokens": beam.tokens, "token_log_probs": beam.token_log_probs}
        seen = {  # before the token was written, by its parent
            "attention": beam.attention,
            "likeliest": beam.likeliest,
            "likeliest_log_probs": beam.likeliest_log_probs,
        }
        seen = {name: history for name, history in seen.items() if history}
        steps: dict[str, list[NDArray[Any]]] = {name: [] for name in (*written, *seen)}
        for step in reversed(range(len(beam.tokens))):
            for name, history in written.items():
                steps[name].append(numpy(history[step][rows, slots]))
            slots = beam.parents[step][rows, slots]
            for name, history in seen.items():
                steps[name].append(numpy(history[step][rows, slots]))
        return {name: np.stack(parts[::-1], axis=2) for name, parts in steps.items()}


class NumpyArrays:
    """The operations of beam search on NumPy arrays; `Arrays` says what each does."""

    check_every = 1

    def log_softmax(self, logits: NDArray[np.float32]) -> NDArray[np.float32]:
        """Turn logits (N, K) into log-probabilities."""
        shifted = logits - logits.max(axis=1, keepdims=True)
        result: NDArray[np.float32] = shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))
        return result

    def top_k(self, values: NDArray[np.float32], k: int) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
        """Return the k largest of each row and where they are, largest first."""
        places = np.argpartition(-values, k - 1, axis=1)[:, :k] if k < values.shape[1] else None
        if places is None:
            places = np.argsort(-values, axis=1, kind="stable")[:, :k]
        else:
            places.sort(axis=1)  # so that equal values come in the order of their places
            order = np.argsort(-np.take_along_axis(values, places, axis=1), axis=1, kind="stable")
            places = np.take_along_axis(places, order, axis=1)
        return np.take_along_axis(values, places, axis=1), places

    def where(self, condition: Array, values: Array, others: Array | float) -> NDArray[Any]:
        """Choose by condition."""
        return np.where(condition, values, others)

    def arange(self, stop: int) -> NDArray[np.int64]:
        """Count from 0."""
        return np.arange(stop)

    def floats(self, values: NDArray[Any]) -> NDArray[np.float32]:
        """Turn numbers into float32."""
        return np.asarray(values, np.float32)

    def integers(self, values: NDArray[Any]) -> NDArray[np.int64]:
        """Turn numbers into int64."""
        return np.asarray(values, np.int64)

    def booleans(self, values: NDArray[Any]) -> NDArray[np.bool_]:
        """Turn truth values into an array."""
        return np.asarray(values, np.bool_)

    def numpy(self, values: NDArray[Any]) -> NDArray[Any]:
        """Return the array itself."""
        return values
