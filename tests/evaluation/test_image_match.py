"""The image matchers: im2markup's against its definition, its blind spots, and what ours sees instead."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from i2l.evaluation.visual import PixelDifference, _edit_script, find_difference, match_images
from tests.evaluation.matcher_definition import match_by_definition

WHITE, BLACK = 255, 0
SHAPES = st.tuples(st.integers(1, 14), st.integers(1, 30))


def blank(height, width):
    return np.full((height, width), WHITE, dtype=np.uint8)


def random_glyphs(generator, num_glyphs, height=12):
    """Blobs of ink with blank columns between them, as a line of type."""
    parts = []
    for _ in range(num_glyphs):
        ink = generator.random((height, generator.integers(2, 8))) < 0.6
        parts += [np.where(ink, BLACK, WHITE).astype(np.uint8), blank(height, generator.integers(1, 4))]
    return np.concatenate(parts, axis=1)


def edited(generator, pixels):
    """The picture with columns put in, taken out, changed by a few pixels, moved or padded."""
    pixels = pixels.copy()
    for _ in range(generator.integers(1, 4)):
        x = int(generator.integers(pixels.shape[1]))
        span = int(generator.integers(1, 9))
        kind = generator.integers(6)
        if kind == 0:
            pixels = np.concatenate([pixels[:, :x], blank(pixels.shape[0], span), pixels[:, x:]], axis=1)
        elif kind == 1:
            pixels = np.concatenate(
                [pixels[:, :x], random_glyphs(generator, 1, pixels.shape[0]), pixels[:, x:]], axis=1
            )
        elif kind == 2:
            pixels = np.delete(pixels, slice(x, x + span), axis=1)
        elif kind == 3:
            rows = generator.integers(pixels.shape[0], size=generator.integers(1, 7))
            pixels[rows, x : x + span] = 255 - pixels[rows, x : x + span]
        elif kind == 4:
            pixels = np.concatenate([blank(int(generator.integers(1, 3)), pixels.shape[1]), pixels])
        else:
            pixels = np.concatenate([pixels, blank(int(generator.integers(1, 3)), pixels.shape[1])])
        if pixels.shape[1] < 2:
            pixels = blank(pixels.shape[0], 2)
    return pixels


def constructed_pairs():
    generator = np.random.default_rng(3)
    for number in range(300):
        target = random_glyphs(generator, int(generator.integers(1, 6)))
        if number % 10 == 9:
            yield target, random_glyphs(generator, int(generator.integers(1, 6)))
        else:
            yield target, edited(generator, target)


def test_verdicts_are_those_of_the_definition_on_300_pairs():
    seen = set()
    for target, prediction in constructed_pairs():
        expected = match_by_definition(target, prediction)
        found = match_images(target, prediction)
        assert (found.im2markup, found.im2markup_no_spaces, found.image_edits, found.image_width) == expected
        seen.add(expected[:2])
    assert seen == {(True, True), (True, False), (False, True), (False, False)}


def test_more_than_255_symbols():
    # Column x holds the bits of x, 5 pixels high each, so no two are similar; the original stops at 256.
    numbers = np.arange(300)
    bits = (numbers[None, :] >> np.arange(10)[:, None]) & 1
    target = np.where(np.repeat(bits, 5, axis=0), BLACK, WHITE).astype(np.uint8)
    prediction = np.delete(target, slice(150, 155), axis=1)
    found = match_images(target, prediction)
    expected = match_by_definition(target, prediction)
    assert (found.im2markup, found.im2markup_no_spaces, found.image_edits, found.image_width) == expected
    assert not found.im2markup
    assert found.image_edits == 5
    assert match_images(target, np.delete(target, slice(150, 154), axis=1)).im2markup


def line_of_type(num_glyphs=6):
    return random_glyphs(np.random.default_rng(0), num_glyphs, height=20)


def test_insertions_are_invisible_to_im2markup_and_not_to_us():
    target = line_of_type()
    more = np.concatenate([target, random_glyphs(np.random.default_rng(1), 9, height=20)], axis=1)
    found = match_images(target, more)
    assert found.im2markup
    assert found.im2markup_no_spaces
    assert not found.tolerant
    # The other way round it is a deletion, which both see.
    missing = match_images(more, target)
    assert not missing.im2markup
    assert not missing.tolerant


def test_thin_columns_are_blank_to_im2markup_and_not_to_us():
    target = line_of_type()
    dash = blank(20, 12)
    dash[9:12, 1:11] = BLACK
    other = blank(20, 12)
    other[5:7, 1:11] = BLACK
    with_dash, with_other = (np.concatenate([target, part, target], axis=1) for part in (dash, other))
    found = match_images(np.concatenate([target, blank(20, 12), target], axis=1), with_dash)
    assert found.im2markup
    assert not found.tolerant
    moved = match_images(with_other, np.concatenate([target, np.roll(other, 9, axis=0), target], axis=1))
    assert moved.im2markup_no_spaces  # 2 + 2 pixels differ
    assert not moved.tolerant


def test_blank_columns_count_only_with_spaces():
    target = line_of_type()
    wide = np.concatenate([target[:, :20], target[:, 20:]], axis=1)
    wider = np.insert(
        wide, [0] * 0 + [int(np.flatnonzero((wide == WHITE).all(axis=0))[0])] * 9, WHITE, axis=1
    )
    assert not match_images(wider, wide).im2markup  # nine columns of the target are gone
    assert match_images(wider, wide).im2markup_no_spaces
    assert match_images(wider, wide).tolerant


def test_lower_image_is_padded_below():
    target = line_of_type()
    assert match_images(target, np.concatenate([target, blank(7, target.shape[1])])).im2markup
    moved = match_images(target, np.concatenate([blank(7, target.shape[1]), target]))
    assert not moved.im2markup
    assert not moved.tolerant


@pytest.mark.parametrize("down", [-9, -1, 0, 3, 20])
def test_the_same_ink_further_up_or_down_differs_nowhere(down):
    """Under the shift that is found."""
    ink = np.random.default_rng(0).integers(0, 2, (12, 30)).astype(np.uint8) * 255
    target, prediction = (np.full((60, 30), 255, np.uint8) for _ in range(2))
    target[10:22] = ink
    prediction[10 + down : 22 + down] = ink
    assert find_difference(target, prediction) == PixelDifference(-down, [])
    prediction[10 + down : 22 + down, 7] ^= 255
    ((start, end, *_),) = find_difference(target, prediction).blocks
    assert (start, end) == (7, 8)


def test_blank_images():
    nothing, something = blank(5, 4), line_of_type(1)
    assert match_images(nothing, blank(5, 9)).im2markup_no_spaces
    assert not match_images(nothing, something).im2markup_no_spaces
    assert not match_images(something, nothing).im2markup_no_spaces
    assert not match_images(something, nothing).tolerant
    assert not match_images(nothing, something).tolerant


def test_a_stroke_of_one_column_counts_if_it_stands_alone():
    target = line_of_type()
    target[:8] = WHITE
    stroke = blank(20, 3)
    stroke[:, 1] = BLACK
    with_stroke = np.concatenate([target, stroke, target], axis=1)
    without = np.concatenate([target, blank(20, 3), target], axis=1)
    assert not match_images(with_stroke, without).tolerant
    assert not match_images(without, with_stroke).tolerant


@settings(max_examples=60)
@given(
    arrays(np.uint8, st.tuples(st.integers(1, 14), st.integers(1, 30)), elements=st.sampled_from([0, 255]))
)
def test_an_image_matches_itself_and_ours_is_symmetric(pixels):
    same = match_images(pixels, pixels.copy())
    assert same.strict
    assert same.tolerant
    assert same.im2markup
    assert same.image_edits == 0
    other = np.flipud(pixels)
    assert match_images(pixels, other).strict == np.array_equal(pixels, other)


# Computed by python-Levenshtein 0.12.2 (`editops`); today's rapidfuzz gives other scripts for all of them.
@pytest.mark.parametrize(
    ("target", "prediction", "edits"),
    [
        ("baacabc", "bbbcbcaaa", "i1,1 i1,2 r1,3 r2,4 r5,7 r6,8"),
        ("bcacabcaacacab", "cabcbbaacaca", "d0,0 r3,2 r4,3 r6,5 d13,12"),
        ("dbddbd", "baaadcddc", "i0,0 i0,1 r0,2 r1,3 i3,5 r4,7 r5,8"),
        ("dabacbacdbdd", "dcccabacbabbbcbdd", "i1,1 i1,2 i1,3 i7,10 i7,11 r7,12 r8,13"),
        ("dcbdbaccac", "dbbbdcbccacc", "i1,1 r1,2 r4,5 r5,6 i9,10"),
        ("abaababab", "abbbbaa", "d2,2 d3,2 r5,3 r8,6"),
        ("abbabbbaccadda", "accdbdabbbddda", "i1,1 i1,2 i1,3 r2,5 d7,10 d8,10 d9,10 r10,10"),
        ("cacbccbaccca", "cacbcbbbccac", "r5,5 r7,7 r10,10 r11,11"),
        ("cbbaacbbb", "caccbabacb", "d1,1 d2,1 r4,2 i7,5 i8,7 i8,8"),
        ("abc", "abc", ""),
    ],
)
def test_edit_script_is_that_of_the_published_scores(target, prediction, edits):
    equal = np.array(list(target))[:, None] == np.array(list(prediction))[None, :]
    found = " ".join(f"{edit.kind[0]}{edit.target},{edit.prediction}" for edit in _edit_script(equal))
    assert found == edits
