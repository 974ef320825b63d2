import numpy as np
import pytest

from i2l.model.calstm.config import CalstmConfig
from i2l.model.network import Window
from i2l.training.batches import BatchLimits, BatchShape, SamplerError, classify_samples

MODEL = CalstmConfig()
ONE_BY_ONE = BatchLimits(1)


def classify(lengths, sizes, *, window_step=4, min_batches=1, batch=ONE_BY_ONE):
    return classify_samples(
        lengths=np.array(lengths),
        sizes=np.array(sizes),
        length_classes=(10, 20, 30),
        window_step=window_step,
        min_batches=min_batches,
        batch=batch,
        model=MODEL,
    )


def holds(shape, other):
    return (
        shape.num_tokens >= other.num_tokens
        and shape.window.height_px >= other.window.height_px
        and shape.window.width_px >= other.window.width_px
    )


def test_every_remainder_goes_to_a_shape_that_holds_it():
    result = classify([5], [(20, 20)])
    assert len(result.shapes) == len(result.larger) > 6
    for number, larger in enumerate(result.larger):
        if number == len(result.shapes) - 1:
            assert larger is None
        else:
            assert larger > number
            assert holds(result.shapes[larger], result.shapes[number])


def test_samples_get_the_smallest_shape():
    result = classify([11, 12, 31, 2], [(40, 300), (128, 1088), (60, 60), (65, 100)])
    shapes = [result.shapes[number] for number in result.classes]
    assert [shape.num_tokens for shape in shapes] == [11, 21, 31, 11]
    assert [shape.window.height_px for shape in shapes] == [42, 128, 82, 82]
    assert shapes[1].window == Window(128, 1088, 0, 0)
    assert shapes[0].window.width_px < 600


def test_without_windows_there_is_one_shape_a_length():
    result = classify([5, 15], [(20, 20), (20, 20)], window_step=0)
    whole = Window(128, 1088, 0, 0)
    assert result.shapes == [BatchShape(n, whole, 1) for n in (11, 21, 31)]
    assert result.larger == [1, 2, None]


def test_no_length_class_is_beyond_what_the_model_writes():
    options = {"sizes": np.array([(20, 20)]), "window_step": 0, "min_batches": 1, "batch": ONE_BY_ONE}
    short = CalstmConfig(max_tokens=15)
    found = classify_samples(lengths=np.array([5]), length_classes=(10, 20, 30), model=short, **options)
    assert [shape.num_tokens for shape in found.shapes] == [11, 16]
    with pytest.raises(SamplerError, match=r"more than 15 tokens \(up to 19\).*raise model\.max_tokens"):
        classify_samples(lengths=np.array([20]), length_classes=(10, 20, 30), model=short, **options)


def test_a_formula_that_is_too_long_is_reported():
    with pytest.raises(SamplerError, match="1 formulas have more than 30 tokens \\(up to 31\\)"):
        classify([31, 32], [(20, 20), (20, 20)])


def test_a_shape_with_few_samples_joins_a_larger_one():
    lengths, sizes = [5] * 3 + [15], [(20, 20)] * 3 + [(128, 1088)]
    kept = classify(lengths, sizes, min_batches=3)
    assert len(set(kept.classes.tolist())) == 2
    joined = classify(lengths, sizes, min_batches=4)
    (number,) = set(joined.classes.tolist())
    assert joined.shapes[number] == BatchShape(21, Window(128, 1088, 0, 0), 1)


def test_large_windows_and_long_formulas_have_smaller_batches():
    limits = BatchLimits(64, pixels=64 * 128 * 544, tokens=64 * 15)
    result = classify([5, 25], [(20, 20), (20, 1000)], batch=limits, min_batches=0)
    small, large = (result.shapes[number] for number in result.classes)
    assert small.num_samples == 64
    assert large.num_samples == 16  # 32 for its tokens
    for shape in result.shapes:
        area = shape.window.height_px * shape.window.width_px
        assert shape.num_samples * area <= limits.pixels
        assert shape.num_samples * shape.num_tokens <= limits.tokens


def test_a_batch_stays_a_multiple_of_the_processes():
    limits = BatchLimits(24, pixels=1, multiple=3)
    assert limits.num_samples(Window(128, 1088, 0, 0), 10) == 3
