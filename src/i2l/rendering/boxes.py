"""The box of every token on the image of a formula.

Two pages draw a formula: the plain one, and one with a mark before the ink of each token. Marks shift things
a little (they break kerns, and one-letter nuclei under accents), but both pages draw the same glyphs and
rules in the same order: the marked page tells the token, the plain one the place. Where the two do not line
up there are no boxes.

TeX draws in its own order: a fraction's bar after the numerator, a sum's sign after its upper limit. So a
token that draws and takes arguments is marked before itself and again at the end of each argument: whatever
it draws between or after them comes right after such a mark.
"""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from difflib import SequenceMatcher
from itertools import groupby
from typing import Final

from i2l.formulas.commands import ENVIRONMENTS, LIMITS, SIGNATURES, SIZED, names_of
from i2l.formulas.lexer import FormulaError, Token
from i2l.formulas.normalize import NormalizeResult, normalize_formula
from i2l.rendering.rasterize import (
    Box,
    Glyph,
    GlyphMeter,
    Ink,
    Matrix,
    PageImage,
    PdfInk,
    Rule,
    Shape,
    origin_pixels,
    shape_of,
    transform,
)
from i2l.rendering.styles import PDFLATEX, Style, Warp
from i2l.rendering.tex import CompiledBatch, compile_formulas

NO_TOKEN: Final = 99_999  # ink that belongs to no token
_SCRIPTS: Final = names_of(lambda command: command.kind == "script")
# Accents of text that authors use in math; the table of commands leaves what they stand on beside them.
_TEXT_ACCENTS: Final = names_of(lambda command: command.kind == "text-accent")
_SIZED: Final = SIZED | {r"\middle"}
_WITH_COLUMNS: Final = frozenset(
    rf"\begin{{{name}}}" for name, environment in ENVIRONMENTS.items() if environment.specification
)
_BETWEEN_ROWS: Final = frozenset((r"\hline", r"\cline"))
_CLOSERS: Final = {"{": "}", "[": "]"}


def mark_tokens(formula: NormalizeResult) -> str:
    """Write a formula for TeX with marks; `i2l.rendering.rasterize` finds them on the page."""
    marker = _Marker(formula.tokens, formula.written)
    marker.items(until=None)
    return "".join(marker.pieces)


class _Marker:
    """Walks the tokens once and collects what TeX is to see."""

    def __init__(self, tokens: list[Token], written: dict[int, str]) -> None:
        self.tokens = tokens
        self.written = written
        self.position = 0
        self.pieces: list[str] = []

    def peek(self) -> str:
        return self.tokens[self.position].text if self.position < len(self.tokens) else ""

    def mark(self, token: int | None) -> None:
        if token is not None:
            self.pieces.append(rf"\itltoken{{{token}}}")

    def copy(self) -> None:
        """Write the next token as it is."""
        text = self.tokens[self.position].text
        spaced = " \\ " if text == "\\" else f" {text}"  # a backslash alone is a space
        self.pieces.append(self.written.get(self.position) or spaced)
        self.position += 1

    def copy_verbatim(self) -> None:
        """Write a whole group or bracket without marks: a length, a count."""
        depth = 0
        while self.position < len(self.tokens):
            depth += (self.peek() in _CLOSERS) - (self.peek() in ("}", "]"))
            self.copy()
            if depth <= 0:
                return

    def items(self, *, until: str | None) -> None:
        """Write items up to a closing token, which is left."""
        base: int | None = None
        while self.position < len(self.tokens) and self.peek() != until:
            if self.peek() in _SCRIPTS:
                self.copy()
                self.argument(owner=base)
            elif self.peek() in LIMITS:
                self.copy()
            else:
                base = self.item()

    def item(self) -> int | None:
        """Write one item with its arguments, and return the token that draws it, if it is one token."""
        index = self.position
        token = self.tokens[index]
        owner = index if token.visible else None
        if token.text == "{":
            self.group(owner=None)
            return None
        if token.text in _SIZED and index + 1 < len(self.tokens):
            following = index + 1
            self.mark(following if self.tokens[following].visible else None)
            self.copy()
            self.copy()
            return following
        if token.text in _BETWEEN_ROWS:
            self.pieces.append(rf"\noalign{{\itltoken{{{index}}}}}")
            self.copy()
            if token.text == r"\cline":
                self.copy_verbatim()
            return None
        if token.text == r"\multicolumn":
            self.copy()
            self.copy_verbatim()
            self.columns()
            self.argument(owner=None)
            return None
        self.mark(NO_TOKEN if token.text == r"\rule" else owner)
        self.copy()
        if token.text in _WITH_COLUMNS:
            if self.peek() == "[":
                self.copy_verbatim()
            self.columns()
        else:
            accent = "m" if token.text in _TEXT_ACCENTS else ""
            self.arguments(SIGNATURES.get(token.text, accent), owner)
        return owner

    def arguments(self, signature: str, owner: int | None) -> None:
        for kind in signature:
            if kind in "mt":
                self.argument(owner=owner)
            elif kind == "o" and self.peek() == "[":
                self.bracket(owner)
            elif (kind == "l" and self.peek() == "{") or (kind == "L" and self.peek() == "["):
                self.copy_verbatim()

    def group(self, *, owner: int | None) -> None:
        self.copy()
        self.items(until="}")
        self.mark(owner)
        if self.position < len(self.tokens):
            self.copy()

    def bracket(self, owner: int | None) -> None:
        self.copy()
        self.items(until="]")
        self.mark(owner)
        if self.position < len(self.tokens):
            self.copy()

    def argument(self, *, owner: int | None) -> None:
        """Write an argument; one without braces gets them, or the mark would be taken for it."""
        if self.peek() == "{":
            self.group(owner=owner)
        elif self.position < len(self.tokens):
            self.pieces.append("{")
            self.item()
            self.mark(owner)
            self.pieces.append("}")

    def columns(self) -> None:
        """Write a column specification, its bars as marked rules: their place is not read off this page."""
        if self.peek() != "{":
            return
        self.copy()
        while self.position < len(self.tokens) and self.peek() != "}":
            if self.peek() == "|":
                self.pieces.append("@{")
                while self.peek() == "|":
                    self.pieces.append(rf"\itltoken{{{self.position}}}\vrule")
                    self.position += 1
                self.pieces.append("}")
            elif self.peek() == "{":
                self.copy_verbatim()
            else:
                self.copy()
        if self.position < len(self.tokens):
            self.copy()


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
    """Find the boxes of the canonical tokens of the drawn formulas of a batch; what fails is left out.

    What LuaLaTeX has set is all left out: its fonts have another form in the PDF, which is not read here.
    """
    if styles[0].engine != PDFLATEX:
        return {}
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
    """Match a piece in which the two pages differ, if it can be seen how."""
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
