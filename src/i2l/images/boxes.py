"""The box of every token on the plain image.

Two pages draw a formula: the plain one, and one with a mark before the ink of each token. Marks shift things
a little (they break kerns, and one-letter nuclei under accents), but both pages draw the same glyphs and
rules in the same order: the marked page tells the token, the plain one the place. Where the two do not line
up there are no boxes.
"""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from difflib import SequenceMatcher
from itertools import groupby
from typing import Final

from i2l.formulas.normalize import NormalizeResult, normalize_formula
from i2l.formulas.tokens import FormulaError, Token
from i2l.images.glyphs import Box, GlyphMeter, Shape, origin_pixels, shape_of, transform
from i2l.images.marks import NO_TOKEN, mark_tokens
from i2l.images.pdf_ink import Glyph, Ink, PdfInk, Rule
from i2l.images.rasterize import Matrix, PageImage
from i2l.images.styles import Style
from i2l.images.tex import CompiledBatch, compile_formulas
from i2l.images.warp import Warp

_Key = tuple[str, int, float]
_RULE: Final[_Key] = ("rule", 0, 0.0)
_MAX_PIECE: Final = 12  # pieces of ink, drawn in another order
_SUBPIXEL: Final = 1 / 512  # less of a pixel leaves no trace


def find_boxes(
    formulas: Sequence[str],
    styles: Sequence[Style],
    batch: CompiledBatch,
    images: Mapping[int, PageImage],
) -> dict[int, list[Box | None]]:
    """Find the boxes of the canonical tokens of the drawn formulas of a batch; what fails is left out."""
    normalized = {index: result for index in images if (result := _normalize(formulas[index])) is not None}
    marked = compile_formulas(
        [mark_tokens(result) for result in normalized.values()], style=styles[0].tex_part(), marked=True
    )
    if not marked.pdf:
        return {}
    plain_ink, marked_ink = PdfInk(batch.pdf), PdfInk(marked.pdf)
    pages: dict[int, tuple[list[Ink], list[list[int]]]] = {}
    for index, verdict in zip(normalized, marked.formulas, strict=True):
        page = batch.formulas[index].page
        if page is not None and verdict.page is not None:
            ink = plain_ink.page(page)
            owners = match_ink(ink, marked_ink.page(verdict.page))
            if owners is not None:
                pages[index] = ink, owners
    found: dict[int, list[Box | None]] = {}
    with GlyphMeter(
        plain_ink, (ink for page, _ in pages.values() for ink in page if isinstance(ink, Glyph))
    ) as meter:
        for index, (page_ink, owners) in pages.items():
            shapes = {shape_of(ink) for ink in page_ink if isinstance(ink, Glyph)}
            known = meter.boxes(shapes, dpi=styles[index].dpi, rotation_deg=styles[index].rotation_deg)
            places = ink_places(page_ink, images[index].matrix, known)
            boxes = token_boxes(normalized[index].tokens, owners, places)
            if boxes is not None:
                found[index] = _warped(boxes, images[index].warp)
    return found


def _normalize(formula: str) -> NormalizeResult | None:
    try:
        return normalize_formula(formula)
    except FormulaError:
        return None


def _warped(boxes: list[Box | None], warp: Warp | None) -> list[Box | None]:
    return boxes if warp is None else [box and warp.box(box) for box in boxes]


def token_boxes(
    tokens: Sequence[Token], owners: Sequence[Sequence[int]], places: Sequence[Box | None]
) -> list[Box | None] | None:
    """Join the places of the ink by token; None unless every visible token has ink, and no other."""
    boxes: dict[int, Box] = {}
    for owner, place in zip(owners, places, strict=True):
        for token in owner:
            if place is not None and token != NO_TOKEN:
                boxes[token] = _join(boxes[token], place) if token in boxes else place
    if boxes.keys() != {index for index, token in enumerate(tokens) if token.visible}:
        return None
    return [boxes.get(index) for index in range(len(tokens))]


def match_ink(plain: Sequence[Ink], marked: Sequence[Ink]) -> list[list[int]] | None:
    """Find the tokens of each piece of ink on the plain page; None if the pages do not line up."""
    keys, marked_keys = [_key(ink) for ink in plain], [_key(ink) for ink in marked]
    tokens = [NO_TOKEN if ink.token is None else ink.token for ink in marked]
    if keys == marked_keys:
        return [[token] for token in tokens]
    owners: list[list[int]] = []
    done = marked_done = 0
    matcher = SequenceMatcher(None, keys, marked_keys, autojunk=False)
    for kind, start, end, marked_start, marked_end in matcher.get_opcodes():
        piece = tokens[marked_done:marked_end]
        found: list[list[int]] | None = [[token] for token in piece]
        alone = (start, marked_start) == (done, marked_done)  # nothing before it is still open
        if kind != "equal" or not alone:
            found = _match_piece(keys[done:end], marked_keys[marked_done:marked_end], piece)
            if found is None and alone and kind == "delete":
                found = _match_repeats(keys, start, end, tokens, marked_start)
            elif found is None and alone and kind == "insert":
                same = len(set(tokens[marked_start - 1 : marked_end])) == 1
                found = [] if same else None  # fewer of the same
        if found is not None:
            owners += found
            done, marked_done = end, marked_end
        elif len(piece) > _MAX_PIECE:
            return None
    return owners if (done, marked_done) == (len(keys), len(tokens)) else None


def _match_repeats(
    keys: list[_Key], start: int, end: int, tokens: list[int], marked: int
) -> list[list[int]] | None:
    """Match more of the same, as in a brace that is made of more pieces on the plain page."""
    extra = set(keys[start:end])
    if start and marked and extra == {keys[start - 1]}:
        return [[tokens[marked - 1]]] * (end - start)
    if end < len(keys) and marked < len(tokens) and extra == {keys[end]}:
        return [[tokens[marked]]] * (end - start)
    return None


def _match_piece(keys: list[_Key], marked: list[_Key], tokens: list[int]) -> list[list[int]] | None:
    """Match a piece in which the two pages differ, where it is plain how."""
    if keys and len(set(tokens)) == 1:  # drawn otherwise: a delimiter of another size, other dots
        return [tokens[:1]] * len(keys)
    sizes = {size for _, _, size in (*keys, *marked)}
    if len(keys) == 1 < len(marked) <= 3 and len(sizes) == 1 and keys[0] not in marked:
        return [tokens]  # a ligature
    if Counter(keys) == Counter(marked):  # drawn in another order
        waiting = [(key, token) for key, token in zip(marked, tokens, strict=True)]
        return [[waiting.pop([key for key, _ in waiting].index(key))[1]] for key in keys]
    return None


def ink_places(page: Sequence[Ink], matrix: Matrix, shapes: dict[Shape, Box | None]) -> list[Box | None]:
    """Find the pixels that each piece of ink covers; None for a glyph that is blank."""
    places: list[Box | None] = []
    for _, group in groupby(page, key=lambda ink: ink.run if isinstance(ink, Glyph) else None):
        pieces = list(group)
        glyphs = [ink for ink in pieces if isinstance(ink, Glyph)]
        if not glyphs:
            places += [_rule_box(ink, matrix) for ink in pieces if isinstance(ink, Rule)]
            continue
        for glyph, (column, row) in zip(glyphs, origin_pixels(glyphs, matrix), strict=True):
            box = shapes[shape_of(glyph)]
            places.append(
                None if box is None else (column + box[0], row + box[1], column + box[2], row + box[3])
            )
    return places


def _rule_box(rule: Rule, matrix: Matrix) -> Box:
    left, bottom, right, top = rule.left, rule.bottom, rule.right, rule.top
    if rule.stroked:  # pdfium draws no line thinner than a pixel
        missing = max(0.0, 1 / math.hypot(*matrix[:2]) - min(right - left, top - bottom)) / 2
        if right - left > top - bottom:
            bottom, top = bottom - missing, top + missing
        else:
            left, right = left - missing, right + missing
    columns, rows = zip(*(transform(x, y, matrix) for x in (left, right) for y in (bottom, top)), strict=True)
    return (
        math.floor(min(columns) + _SUBPIXEL),
        math.floor(min(rows) + _SUBPIXEL),
        math.ceil(max(columns) - _SUBPIXEL),
        math.ceil(max(rows) - _SUBPIXEL),
    )


def _key(ink: Ink) -> _Key:
    return (ink.font, ink.code, round(ink.size, 2)) if isinstance(ink, Glyph) else _RULE


def _join(one: Box, other: Box) -> Box:
    return min(one[0], other[0]), min(one[1], other[1]), max(one[2], other[2]), max(one[3], other[3])
