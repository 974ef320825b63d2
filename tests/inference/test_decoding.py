import numpy as np
import pytest
import torch

from i2l.inference.decoding import BeamOptions, BeamSearch, NumpyArrays, beam_search
from i2l.inference.torch_backend import TorchArrays
from tests.inference.toy import (
    BOS,
    EOS,
    ToyModel,
    brute_force,
    log_softmax,
    plain_beam_search,
    teacher_force,
)

NUMPY, TORCH = NumpyArrays(), TorchArrays(torch.device("cpu"))


def images(count, *, seed=0, units=4):
    return np.random.default_rng(seed).normal(size=(count, units)).astype(np.float32)


def search(model, pictures, *, arrays=NUMPY, guard=None, **options):
    features = torch.from_numpy(pictures) if arrays is TORCH else pictures
    return beam_search(
        model, model.memory(features), arrays=arrays, options=BeamOptions(**options), guard=guard
    )


@pytest.mark.parametrize("alpha", [0.0, 1.0])
@pytest.mark.parametrize("seed", range(3))
def test_a_beam_that_holds_everything_is_brute_force(seed, alpha):
    model = ToyModel(vocab_size=5, seed=seed)
    pictures = images(3, seed=seed)
    found = search(model, pictures, width=400, max_steps=5, n_best=8, length_penalty=alpha)
    for image, hypotheses in zip(pictures, found, strict=True):
        expected = brute_force(model, image, max_steps=5, alpha=alpha)
        assert len(hypotheses) == 8
        for hypothesis, (score, log_prob, tokens) in zip(hypotheses, expected, strict=False):
            assert hypothesis.token_ids == tokens
            assert hypothesis.score == pytest.approx(score, abs=1e-4)
            assert hypothesis.log_prob == pytest.approx(log_prob, abs=1e-4)
            assert hypothesis.finished == (len(tokens) < 5)


@pytest.mark.parametrize("width", [1, 3, 10])
def test_a_narrow_beam_is_the_plain_search(width):
    model = ToyModel(vocab_size=9, units=6, seed=4)
    pictures = images(12, units=6)
    found = search(model, pictures, width=width, max_steps=25, n_best=width)
    stops = set()
    for image, hypotheses in zip(pictures, found, strict=True):
        memory = model.memory(image[None])

        def step(state, token, memory=memory):
            logits, new_state, _ = model.step(memory, state, np.array([token]))
            return log_softmax(logits[0]), new_state

        expected = plain_beam_search(step, model.start(memory), width=width, max_steps=25)
        assert [h.token_ids for h in hypotheses] == [tokens for tokens, _, _ in expected]
        np.testing.assert_allclose([h.score for h in hypotheses], [s for _, _, s in expected], atol=1e-4)
        stops.add(len(hypotheses[0].token_ids))
    assert len(stops) > 3, "the images should end at different steps, or the batch is not tested"


def test_numpy_and_torch_agree():
    model = ToyModel(vocab_size=30, units=8, seed=2, sharpness=3)
    pictures = images(20, units=8)
    found = [
        search(model, pictures, arrays=arrays, width=10, max_steps=40, n_best=3) for arrays in (NUMPY, TORCH)
    ]
    for ours, theirs in zip(*found, strict=True):
        assert [h.token_ids for h in ours] == [h.token_ids for h in theirs]
        for a, b in zip(ours, theirs, strict=True):
            assert a.score == pytest.approx(b.score, abs=1e-4)
            np.testing.assert_allclose(a.attention, b.attention, atol=1e-4)
            np.testing.assert_allclose(a.token_log_probs, b.token_log_probs, atol=1e-4)


def test_attention_and_probabilities_belong_to_the_hypothesis():
    model = ToyModel(vocab_size=9, units=6, seed=4)
    pictures = images(12, units=6)
    for image, hypotheses in zip(
        pictures, search(model, pictures, width=10, max_steps=25, n_best=10), strict=True
    ):
        for hypothesis in hypotheses:
            tokens = hypothesis.token_ids + [EOS] * hypothesis.finished
            log_probs, attention = teacher_force(model, image, tokens)
            np.testing.assert_allclose(hypothesis.token_log_probs, log_probs, atol=1e-4)
            np.testing.assert_allclose(hypothesis.attention, attention, atol=1e-4)
            assert hypothesis.log_prob == pytest.approx(log_probs.sum(), abs=1e-3)


def test_the_likeliest_tokens_of_each_step():
    model = ToyModel(vocab_size=9, units=6, seed=4)
    pictures = images(12, units=6)
    for arrays in (NUMPY, TORCH):
        for image, (best,) in zip(
            pictures, search(model, pictures, arrays=arrays, width=5, max_steps=25, others=2), strict=True
        ):
            memory = model.memory(image[None])
            state, last = model.start(memory), 1
            steps = best.token_ids + [EOS] * best.finished
            assert len(best.likeliest) == len(steps)
            for token, ids, log_probs in zip(steps, best.likeliest, best.likeliest_log_probs, strict=True):
                logits, state, _ = model.step(memory, state, np.array([last]))
                expected = log_softmax(logits[0])
                order = [index for index in np.argsort(-expected) if index != 1][:3]
                assert ids.tolist() == order
                np.testing.assert_allclose(log_probs, expected[order], atol=1e-4)
                last = token


def test_stopping_early_changes_nothing():
    model = ToyModel(vocab_size=9, units=6, seed=4)
    pictures = images(30, units=6)

    class Patient(NumpyArrays):
        check_every = 1000

    for n_best in (1, 4):
        options = {"width": 6, "max_steps": 60, "n_best": n_best}
        early = search(model, pictures, **options)
        late = search(model, pictures, arrays=Patient(), **options)
        assert [[h.token_ids for h in row] for row in early] == [[h.token_ids for h in row] for row in late]


class SureOfNineWords:
    """Ends at once with a probability of .55, or writes nine words and ends, sure of all but the first."""

    def start(self, memory):
        return {"written": np.zeros(len(memory["features"]))}

    def step(self, memory, state, token_ids):
        written = state["written"] + (token_ids != BOS)
        ends = np.where(written == 0, 0.55, np.where(written < 9, 1e-9, 1 - 1e-9))
        chances = np.stack([ends, np.full_like(ends, 1e-9), 1 - ends], axis=1)
        return np.log(chances), {"written": written}, np.zeros((len(ends), 1, 1))


@pytest.mark.parametrize("max_steps", [20, 10])
def test_a_formula_that_ended_waits_for_one_that_may_overtake_it(max_steps):
    options = BeamOptions(width=2, max_steps=max_steps)
    ((best,),) = beam_search(SureOfNineWords(), {"features": np.zeros((1, 1))}, arrays=NUMPY, options=options)
    assert best.finished
    assert len(best.token_ids) == 9


def test_bos_is_never_written():
    model = ToyModel(vocab_size=5, seed=1)
    model.outputs[:, 1] += 5 * np.sign(model.outputs[:, 1])
    for hypotheses in search(model, images(20), width=3, max_steps=12, n_best=3):
        for hypothesis in hypotheses:
            assert 1 not in hypothesis.token_ids
            assert EOS not in hypothesis.token_ids


def test_more_hypotheses_than_there_are():
    model = ToyModel(vocab_size=3, seed=0)  # eos, bos and one word
    (hypotheses,) = search(model, images(1), width=10, max_steps=3, n_best=10)
    assert sorted(len(h.token_ids) for h in hypotheses) == [0, 1, 2, 3]


@pytest.mark.parametrize("arrays", [NUMPY, TORCH], ids=["numpy", "torch"])
@pytest.mark.parametrize("width", [1, 4])
def test_a_driver_elsewhere_finds_the_same(arrays, width):
    """The search has no model: who drives it gets plain numbers, and has memory and state to itself."""
    model = ToyModel(vocab_size=9, units=6, seed=4)
    pictures = images(30, units=6)
    options = BeamOptions(width=width, max_steps=60, others=2)
    search = BeamSearch(len(pictures), arrays=arrays, options=options)
    memory = {"features": pictures}
    state = model.start(memory)
    seen = set()
    while search.wanted is not None:
        wanted = search.wanted
        token_ids, kept, rows = (
            None if part is None else np.array(arrays.numpy(part).tolist(), np.int64)
            for part in (wanted.token_ids, wanted.images, wanted.rows)
        )
        if kept is not None:
            memory = {"features": memory["features"][kept]}
        if rows is not None:
            state = {"hidden": state["hidden"][rows]}
        seen.add(len(memory["features"]))
        logits, state, attention = model.step(memory, state, token_ids)
        search.feed(arrays.floats(logits), arrays.floats(attention))
    expected = beam_search(model, model.memory(pictures), arrays=NUMPY, options=options)
    assert len(seen) > 1, "images that are done are taken off"
    for ours, theirs in zip(search.found, expected, strict=True):
        assert [one.token_ids for one in ours] == [one.token_ids for one in theirs]
        for one, other in zip(ours, theirs, strict=True):
            np.testing.assert_allclose(one.attention, other.attention, atol=1e-4)
            np.testing.assert_array_equal(one.likeliest, other.likeliest)


def test_a_search_without_steps_wants_nothing():
    search = BeamSearch(2, arrays=NUMPY, options=BeamOptions(max_steps=0))
    assert search.wanted is None
    assert search.found == [[], []]
