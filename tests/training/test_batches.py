import hashlib
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from i2l.training.batches import Sampler, SamplerError, SamplerState, _mix, emphasized, shuffled

LARGER = [1, 3, 3, 4, None]  # 0 fits in 1, both 1 and 2 in 3, all in 4
HOLDS = {0: {0}, 1: {0, 1}, 2: {2}, 3: {0, 1, 2, 3}, 4: {0, 1, 2, 3, 4}}


def make_sampler(classes, *, batch_size=4, state=None):
    return Sampler(
        classes=np.array(classes, dtype=np.int64),
        larger=LARGER,
        batch_sizes=[batch_size] * 5,
        state=state or SamplerState(seed=7),
    )


def test_each_shape_has_batches_of_its_own_size():
    sampler = Sampler(
        classes=np.array([0] * 9 + [2] * 5),
        larger=[1, 2, None],
        batch_sizes=[4, 2, 1],
        state=SamplerState(seed=3),
    )
    sizes = Counter((batch.shape, len(batch.indices)) for batch in one_epoch(sampler))
    assert sizes == {(0, 4): 2, (2, 1): 6}  # one of the nine is left over, and goes on to the largest shape


def one_epoch(sampler):
    return [sampler.next_batch() for _ in range(sampler.batches_per_epoch)]


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(0, 4), min_size=4, max_size=120), st.integers(0, 2**63))
def test_an_epoch_holds_each_sample_at_most_once_in_a_shape_that_holds_it(classes, seed):
    sampler = make_sampler(classes, state=SamplerState(seed=seed))
    batches = one_epoch(sampler)
    counts = Counter(index for batch in batches for index in batch.indices.tolist())
    assert set(counts.values()) == {1}
    assert len(classes) - len(counts) == len(classes) % 4  # only the last remainder waits
    for batch in batches:
        assert len(batch.indices) == 4
        assert {classes[index] for index in batch.indices} <= HOLDS[batch.shape]
    assert sampler.state.epoch == 1
    assert sampler.state.position == 0


def test_whole_batches_stay_in_their_own_shape():
    assert Counter(batch.shape for batch in one_epoch(make_sampler([0] * 8 + [3] * 4))) == {0: 2, 3: 1}


def test_remainders_move_up():
    assert Counter(batch.shape for batch in one_epoch(make_sampler([0] * 5 + [2] * 3))) == {0: 1, 3: 1}


def test_epochs_differ_and_a_seed_repeats():
    first, again = make_sampler([0] * 40), make_sampler([0] * 40)
    epochs = [np.concatenate([b.indices for b in one_epoch(first)]) for _ in range(2)]
    assert not np.array_equal(*epochs)
    together = [{frozenset(part) for part in epoch.reshape(-1, 4).tolist()} for epoch in epochs]
    assert len(together[0] & together[1]) < 5, "others are together"
    assert np.array_equal(epochs[0], np.concatenate([b.indices for b in one_epoch(again)]))


def test_emphasis_repeats_samples():
    ids = ["old.txt:1", "new.txt:1", "old.txt:2", "older.txt:9"]
    times = emphasized(ids, ["older=5", "old=2"])
    assert times.tolist() == [2, 1, 2, 5]
    assert emphasized(ids, []).tolist() == [1, 1, 1, 1]
    sampler = Sampler(
        classes=np.zeros(4, np.int64), larger=[None], batch_sizes=[2], state=SamplerState(seed=1), times=times
    )
    counts = Counter(index for batch in one_epoch(sampler) for index in batch.indices.tolist())
    assert counts == {0: 2, 1: 1, 2: 2, 3: 5}


@pytest.mark.parametrize("rule", ["old", "=2"])
def test_an_emphasis_of_another_form_is_refused(rule):
    with pytest.raises(SamplerError, match="NAME=TIMES"):
        emphasized(["old.txt:1"], [rule])


def test_an_emphasis_that_no_sample_has_warns():
    with pytest.warns(UserWarning, match="names 'what', and no sample's id starts so"):
        assert emphasized(["old.txt:1"], ["what=2", "old=3"]).tolist() == [3]


def test_the_state_resumes_at_every_position():
    def draw(sampler, count):
        return [tuple(sampler.next_batch().indices) for _ in range(count)]

    classes = [7 * i % 5 for i in range(50)]
    whole = draw(make_sampler(classes), 30)
    for done in range(30):
        sampler = make_sampler(classes)
        draw(sampler, done)
        resumed = make_sampler(classes, state=sampler.state)
        assert draw(resumed, 30 - done) == whole[done:]


def test_the_order_is_pinned():
    # These numbers must never change: a resumed run would otherwise see another order.
    assert shuffled(8, seed=0, stream=0).tolist() == [3, 5, 2, 6, 0, 1, 7, 4]
    digest = hashlib.sha256(shuffled(10_000, seed=1, stream=5).astype("<i8").tobytes()).hexdigest()
    assert digest[:16] == "8986c87c7bf05782"


def test_orders_are_uniform():
    firsts = Counter(int(shuffled(5, seed=seed, stream=3)[0]) for seed in range(5000))
    assert all(900 < firsts[item] < 1100 for item in range(5))


def test_too_few_samples_say_so():
    with pytest.raises(SamplerError, match="fewer than one batch of 4"):
        make_sampler([0] * 3)


def test_keys_are_mixed_as_splitmix64_mixes_them():
    """Against whole numbers of Python, bit by bit."""

    def mixed(key):
        key = (key ^ (key >> 30)) * 0xBF58476D1CE4E5B9 % 2**64
        key = (key ^ (key >> 27)) * 0x94D049BB133111EB % 2**64
        return key ^ (key >> 31)

    keys = [0, 1, 2**63, 2**64 - 1, 0x9E3779B97F4A7C15, *(3**n % 2**64 for n in range(30, 60))]
    assert _mix(np.array(keys, dtype=np.uint64)).tolist() == [mixed(key) for key in keys]
