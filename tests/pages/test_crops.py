"""Pages are packed and come back, crops of them say whose ink every cell is, and stories are varied."""

import itertools
import json
import lzma
import random

import numpy as np
import pytest
import torch
from PIL import Image

from i2l.errors import I2LError
from i2l.pages.corpus import PLACE
from i2l.pages.crops import NO_INK, CropSource, in_another_script, load_pages
from i2l.pages.gather import CELL_PX, DISPLAYED, INLINE, KINDS, NUMBER
from i2l.pages.packed import OWNER_SHIFT, REGION_SHIFT, SHADES, list_packed, pack_pages, unpack_pages
from i2l.pages.variety import Strangers, read_strangers, vary_story
from tests.kept import outline

LETTER = 10  # height of small letters on these pages
MARGIN = 3 * LETTER


def write_page(folder, number, seed):
    """A page of letters, a formula in each line of them, a display and its number; return what it shows."""
    source = random.Random(seed)
    pixels, classes = np.full((300, 400), 255, np.uint8), np.zeros((300, 400), np.uint8)
    letters = [
        np.kron(np.random.default_rng(n).integers(0, 2, (5, 4)), np.ones((2, 2))) > 0 for n in range(9)
    ]
    for letter in letters:
        letter[0], letter[-1], letter[:, 0] = True, True, True
    boxes = []

    def put(left, top, kind):
        height, width = letters[0].shape
        shade = source.choice([0, 40])
        part = pixels[top : top + height, left : left + width]
        part[source.choice(letters)] = shade
        classes[top : top + height, left : left + width] = 0 if kind is None else KINDS.index(kind) + 1

    for top in range(20, 260, 30):
        display = top == 110
        for left in range(20, 360, 12):
            kind = DISPLAYED if display else INLINE if 100 <= left < 136 else None
            if not display or 80 <= left < 300:
                put(left, top, kind)
            elif left > 340:
                put(left, top, NUMBER)
        kinds = [(DISPLAYED, 80, 300), (NUMBER, 344, 352)] if display else [(INLINE, 104, 136)]
        boxes += [
            {"kind": kind, "box": [left, top, right, top + 10], "baseline_px": top + 10.0}
            for kind, left, right in kinds
        ]
    folder.mkdir(exist_ok=True)
    Image.fromarray(pixels).save(folder / f"{number:06d}.png")
    Image.fromarray(classes).save(folder / f"{number:06d}.classes.png")
    (folder / f"{number:06d}.json").write_text(json.dumps({"boxes": boxes}))
    return pixels, classes, boxes


@pytest.fixture(scope="module")
def packed(tmp_path_factory):
    folder = tmp_path_factory.mktemp("crops")
    for number in range(5):
        write_page(folder / "pages", number, number)
    pack_pages([folder / "pages"], folder / "packed", pages_per_file=3)
    return folder / "packed"


def test_pages_come_back_as_they_were_packed(tmp_path):
    written = [write_page(tmp_path / "pages", number, number) for number in range(3)]
    assert pack_pages([tmp_path / "pages"], tmp_path / "packed", pages_per_file=2) == 3
    files = list_packed(tmp_path / "packed")
    assert len(files) == 2
    pages = [page for file in files for page in unpack_pages(file)]
    for page, (pixels, classes, boxes) in zip(pages, written, strict=True):
        rows, columns = (np.flatnonzero((pixels < 255).any(axis=axis)) for axis in (1, 0))
        top, left = rows[0] - MARGIN, columns[0] - MARGIN
        assert page.pixels.shape == (np.ptp(rows) + 1 + 2 * MARGIN, np.ptp(columns) + 1 + 2 * MARGIN)
        assert page.symbol_px == LETTER
        whole = np.zeros((3, 400 + 2 * MARGIN, 500 + 2 * MARGIN), np.uint8)  # the page, with room around it
        shades = (255 - pixels.astype(int) + 8) // 17
        whole[0, MARGIN : MARGIN + 300, MARGIN : MARGIN + 400] = shades
        whole[1, MARGIN : MARGIN + 300, MARGIN : MARGIN + 400] = np.where(shades > 0, classes, 0)
        for box in boxes:
            x0, y0, x1, y1 = (value + MARGIN for value in box["box"])
            whole[2, y0:y1, x0:x1] = KINDS.index(box["kind"]) + 1
        height, width = page.pixels.shape
        shown = whole[:, top + MARGIN :, left + MARGIN :][:, :height, :width]
        np.testing.assert_array_equal(page.pixels & SHADES, shown[0])
        np.testing.assert_array_equal((page.pixels >> OWNER_SHIFT) & 3, shown[1])
        np.testing.assert_array_equal(page.pixels >> REGION_SHIFT, shown[2])
    assert pack_pages([tmp_path / "pages"], tmp_path / "packed", pages_per_file=2) == 0, "they are there"


def test_pages_take_little_room(packed):
    assert sum(path.stat().st_size for path in list_packed(packed)) < 5 * 2000


def test_a_page_without_letters_is_not_packed(tmp_path):
    folder = tmp_path / "pages"
    write_page(folder, 0, 0)
    Image.new("L", (400, 300), 255).save(folder / "000000.png")
    assert pack_pages([folder], tmp_path / "packed") == 0


def test_missing_and_damaged_packs_are_said(tmp_path):
    with pytest.raises(I2LError, match="no packed pages"):
        list_packed(tmp_path)
    (tmp_path / "a.pages.xz").write_bytes(lzma.compress(b"nothing at all")[:-4])
    with pytest.raises(I2LError, match="damaged"):
        list(unpack_pages(tmp_path / "a.pages.xz"))


def test_processes_unpack_the_same_pages_as_one(packed):
    files = list_packed(packed)
    alone, together = (load_pages(files, workers=workers, seed=3) for workers in (0, 2))
    assert len(alone) >= 5
    for one, other in zip(alone, together, strict=True):
        np.testing.assert_array_equal(one.pixels, other.pixels)


def test_pages_are_unpacked_where_no_process_can_be_started(packed, monkeypatch, capsys):
    def refuse(*_):
        raise PermissionError("no")

    monkeypatch.setattr("i2l.pages.crops.ProcessPoolExecutor", refuse)
    assert len(load_pages(list_packed(packed), workers=2)) >= 5
    assert "unpacked by this one" in capsys.readouterr().out


def test_another_script_leaves_formulas_and_regions(packed):
    page = next(unpack_pages(list_packed(packed)[0]))
    drawn = in_another_script(page, random.Random(1))
    formulas = (page.pixels >> OWNER_SHIFT) & 3 > 0
    assert formulas.any()
    np.testing.assert_array_equal(drawn.pixels >> OWNER_SHIFT, page.pixels >> OWNER_SHIFT)
    touched = (drawn.pixels & SHADES) != (page.pixels & SHADES)
    assert touched[~formulas].sum() > 10 * max(1, touched[formulas].sum())


def crop_source(packed, seed=0, crop_px=256):
    pages = load_pages(list_packed(packed), workers=0)
    return CropSource(pages, crop_px=crop_px, symbol_px=LETTER, device="cpu", seed=seed)


def test_crops_say_what_every_cell_is(packed, monkeypatch):
    monkeypatch.setattr("i2l.pages.crops._UNTOUCHED_SHARE", 1.0)
    source = crop_source(packed)
    counts = np.zeros(256, int)
    for _ in range(6):
        crops = source.draw(3)
        assert crops.ink.shape == (3, 1, 256, 256)
        assert crops.region.shape == crops.owner.shape == (3, 128, 128)
        assert 0 <= crops.ink.min() <= crops.ink.max() <= 1
        inked = torch.nn.functional.avg_pool2d(crops.ink, CELL_PX)[:, 0] >= 60 / 255
        assert ((crops.owner != NO_INK) == inked).all()
        region, owner = crops.region.numpy(), crops.owner.numpy()
        counts += np.bincount(owner.ravel(), minlength=256)
        within = owner[(region > 0) & (owner != NO_INK)]
        same = region[(region > 0) & (owner != NO_INK)] == within
        assert same.mean() > 0.85, "formulas lie in their regions"
    assert (counts[:4] > 20).all(), "text, formulas of both kinds and numbers"


def test_crops_are_the_same_for_a_seed_and_worn_in_many_ways(packed):
    measured = {}
    for seed in range(4):
        first, second = (crop_source(packed, seed).draw(2) for _ in range(2))
        assert all(torch.equal(one, other) for one, other in zip(first, second, strict=True))
        for number, ink in enumerate(first.ink[:, 0]):
            measured[f"{seed} {number}"] = outline(ink.numpy())[:3]
            assert torch.isfinite(ink).all()
    assert len({tuple(values) for values in measured.values()}) == len(measured)


@pytest.mark.parametrize("way", ["_run", "_blur", "_compress", "_add_noise"])
def test_worn_ink_is_still_that_ink(packed, way):
    source = crop_source(packed)
    pages = [page.pixels & SHADES for page in load_pages(list_packed(packed), workers=0)[:3]]
    ink = torch.stack([torch.from_numpy(page[:200, :300]).float() / SHADES for page in pages])[:, None]
    worn = getattr(source, way)(ink)
    assert worn.shape == ink.shape
    for one, other in zip(ink, worn, strict=True):
        assert np.corrcoef(one.flatten(), other.flatten())[0, 1] > 0.7


def test_pictures_become_smaller_as_pillow_makes_them(packed):
    source = crop_source(packed, crop_px=96)
    pixels = np.random.default_rng(0).integers(0, 256, (131, 131)).astype(np.uint8)
    expected = np.asarray(Image.fromarray(pixels).resize((96, 96), Image.Resampling.BOX))
    boxes = source._boxes(131)
    found = boxes @ torch.from_numpy(pixels).float() @ boxes.T
    assert np.abs(found.numpy() - expected).max() <= 1


def test_a_crop_follows_the_page(packed, monkeypatch):
    """A level crop at the page's own scale, which nothing has worn, is the page."""
    monkeypatch.setattr("i2l.pages.crops._UNTOUCHED_SHARE", 1.0)
    source = crop_source(packed, crop_px=64)
    page = load_pages(list_packed(packed), workers=0)[0].pixels
    places = source._place([0])._replace(
        steps=torch.tensor([[[64.0, 0.0], [0.0, 64.0]]]), middles=torch.tensor([[100.0, 90.0]])
    )
    seen = source._look(places, 64)[0].numpy()
    np.testing.assert_array_equal(seen, page[58:122, 68:132])
    outside = source._look(places._replace(middles=torch.tensor([[-90.0, 90.0]])), 64)
    assert not outside.any(), "beyond the page is paper"
    turned = source._look(places._replace(steps=torch.tensor([[[0.0, 64.0], [-64.0, 0.0]]])), 64)[0].numpy()
    np.testing.assert_array_equal(np.rot90(turned, -1), seen)


def test_formulas_of_others_come_from_lists(tmp_path):
    with lzma.open(tmp_path / "a.txt.xz", "wt") as file:
        file.write(
            "x _ { 1 }\n"
            + " + ".join("abcdefghijklmnop")
            + "\n"
            + r"\begin{matrix} a & b \end{matrix}"
            + "\n"
        )
    (tmp_path / "b.txt").write_text("\\frac { a } { b }\n\\nothing {\n")
    found = read_strangers([tmp_path / "a.txt.xz", tmp_path / "b.txt"])
    assert found.inline == ["x _ { 1 }", r"\frac { a } { b }", r"\nothing {"]
    assert len(found.displayed) == 1
    drawn = {found.draw(random.Random(seed), inline=True) for seed in range(30)}
    assert drawn == {"x _ { 1 }", r"\frac { a } { b }"}, "what cannot be parsed is passed over"
    assert Strangers().draw(random.Random(0), inline=True) is None
    with pytest.raises(I2LError, match=r"c\.txt cannot be read"):
        read_strangers([tmp_path / "c.txt"])


def test_formulas_of_others_stand_in_stories(story):
    others = Strangers([r"\zeta _ { 7 }"], [r"\oint \zeta"])
    told = [vary_story(story, random.Random(seed), others) for seed in range(40)]
    inline = [latex for one in told for environment, latex in one.formulas if environment == "$"]
    displayed = [latex for one in told for environment, latex in one.formulas if environment == "equation"]
    assert any(r"\zeta _ { 7 }" in latex for latex in inline)
    assert any(r"\begin{aligned}" in latex and r"\oint" in latex for latex in displayed)
    assert any(r"\begin{gathered}" in latex for latex in displayed)
    assert any(r"\cdots )" in latex for latex in displayed), "long lists of numbers"
    for one in told:
        places = [int(number) for part in one.parts for number in PLACE.findall(part.text)]
        assert max(places, default=0) < len(one.formulas)
        assert set(
            itertools.accumulate(part.text.count("{") - part.text.count("}") for part in one.parts)
        ) == {0}
    text = " ".join(part.text for one in told for part in one.parts)
    assert r"\emph{On the theory" in text, "entries of a bibliography"
    assert "([" in text, "references"
