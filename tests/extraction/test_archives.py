"""Sources as arXiv serves them, and sources that mean harm: all in memory, nothing outside is read."""

import bz2
import gzip
import io
import lzma
import tarfile
import zipfile
from unittest.mock import Mock

import pytest

from i2l.extraction import archives
from i2l.extraction.archives import SourceError, list_units, open_unit
from i2l.extraction.harvest import Formula, HarvestOptions, harvest
from tests.extraction.book import BOOK, DISPLAYS

PAPER = rb"\documentclass{a}\[ x \]"


def tar_bytes(files, links=()):
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for name, data in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
        for name, target, kind in links:
            member = tarfile.TarInfo(name)
            member.type, member.linkname = kind, target
            archive.addfile(member)
    return buffer.getvalue()


def zip_bytes(files):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return buffer.getvalue()


def read(path):
    """All formulas and the verdicts of a source, by name."""
    formulas, verdicts = [], []
    for unit in list_units([path]):
        for bundle in open_unit(unit, unit.name):
            for row in harvest(bundle, HarvestOptions()):
                (formulas if isinstance(row, Formula) else verdicts).append(row)
    return formulas, {verdict.verdict for verdict in verdicts}


@pytest.mark.parametrize("pack", [bytes, gzip.compress, lzma.compress, bz2.compress])
def test_a_packed_book_is_the_same_book(tmp_path, pack):
    (tmp_path / "book").write_bytes(pack(tar_bytes(BOOK)))  # by its bytes: arXiv's names have no suffix
    formulas, verdicts = read(tmp_path / "book")
    assert [(formula.latex, formula.environment) for formula in formulas] == DISPLAYS
    assert formulas[1].file == "book/chapters/two.tex"
    assert verdicts == set()


def test_a_zip_and_a_folder_are_the_same_book_too(tmp_path):
    (tmp_path / "book.zip").write_bytes(zip_bytes(BOOK))
    for name, data in BOOK.items():
        (tmp_path / "book" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "book" / name).write_bytes(data)
    for source in ("book.zip", "book"):
        assert [formula.latex for formula in read(tmp_path / source)[0]] == [latex for latex, _ in DISPLAYS]


def test_a_month_of_papers_is_opened_paper_by_paper(tmp_path):
    month = {
        "2001/2001.00001.gz": gzip.compress(PAPER),
        "2001/2001.00002.gz": gzip.compress(tar_bytes({"main.tex": rb"\documentclass{a}\[ y \]"})),
        "2001/2001.00003.pdf": b"%PDF-1.5",
        "2001/2001.00004.gz": gzip.compress(b"%PDF-1.5 \0"),
    }
    (tmp_path / "month.tar").write_bytes(tar_bytes(month))
    formulas, verdicts = read(tmp_path / "month.tar")
    assert [(formula.file, formula.latex) for formula in formulas] == [
        ("month.tar/2001/2001.00001.gz", "x"),
        ("month.tar/2001/2001.00002.gz/main.tex", "y"),
    ]
    assert verdicts == {"not-tex"}


def test_a_folder_of_papers_is_cut_into_units(tmp_path):
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "main.tex").write_bytes(PAPER)
    (tmp_path / "c.tar").write_bytes(tar_bytes({"main.tex": PAPER}))
    assert [unit.name for unit in list_units([tmp_path])] == ["c.tar", "a", "b"]
    with pytest.raises(SourceError, match="nowhere"):
        list_units([tmp_path / "nowhere"])


def test_links_within_an_archive_lead_to_its_files(tmp_path):
    """A soft link is named from where it stands, a hard one from the root of the archive."""
    main = rb"\documentclass{a}\input{sub/soft}\input{sub/hard}"
    files = {"main.tex": main, "sub/one.tex": rb"\[ y \]", "two.tex": rb"\[ z \]"}
    links = [
        ("sub/soft.tex", "../two.tex", tarfile.SYMTYPE),
        ("sub/hard.tex", "sub/one.tex", tarfile.LNKTYPE),
    ]
    (tmp_path / "paper.tar").write_bytes(tar_bytes(files, links))
    formulas, verdicts = read(tmp_path / "paper.tar")
    assert [(formula.latex, formula.file) for formula in formulas] == [
        ("z", "paper.tar/two.tex"),
        ("y", "paper.tar/sub/one.tex"),
    ]
    assert verdicts == set()


def test_nothing_outside_the_sources_is_read(tmp_path):
    secret = tmp_path / "secret.tex"
    secret.write_bytes(rb"\[ secret \]")
    names = ["../secret.tex", str(secret), "x/../../secret.tex", "secret", "link", "hard"]
    main = rb"\documentclass{a}" + b"".join(rb"\input{%s}" % name.encode() for name in names) + rb"\[ x \]"
    folder = tmp_path / "paper"
    folder.mkdir()
    (folder / "main.tex").write_bytes(main)
    (folder / "link.tex").symlink_to(secret)
    (folder / "folder").symlink_to(tmp_path)
    links = [("link.tex", "../secret.tex", tarfile.SYMTYPE), ("hard.tex", str(secret), tarfile.LNKTYPE)]
    hostile = {"main.tex": main, "../secret.tex": rb"\[ out \]", "/abs.tex": rb"\[ out \]"}
    (tmp_path / "paper.tar").write_bytes(tar_bytes(hostile, links))
    for source, verdicts in (
        (folder, {"missing-input"}),
        (tmp_path / "paper.tar", {"missing-input", "unsafe-name"}),
    ):
        formulas, said = read(source)
        assert [formula.latex for formula in formulas] == ["x"]
        assert said == verdicts


def test_links_inside_a_source_are_followed(tmp_path):
    main = rb"\documentclass{a}\input{sub/link}\input{hard}"
    links = [("sub/link.tex", "../one.tex", tarfile.SYMTYPE), ("hard.tex", "two.tex", tarfile.LNKTYPE)]
    files = {"main.tex": main, "one.tex": rb"\[1\]", "two.tex": rb"\[2\]"}
    (tmp_path / "paper.tar").write_bytes(
        tar_bytes(files, [*links, ("loop.tex", "loop.tex", tarfile.SYMTYPE)])
    )
    assert [formula.latex for formula in read(tmp_path / "paper.tar")[0]] == ["1", "2"]


def test_files_with_holes_are_left_alone(tmp_path, monkeypatch):
    """They may be of any size and take no room in the archive."""
    (tmp_path / "paper.tar").write_bytes(tar_bytes({"a.tex": PAPER}))
    assert len(read(tmp_path / "paper.tar")[0]) > 0
    monkeypatch.setattr(tarfile.TarInfo, "issparse", lambda _: True)
    assert read(tmp_path / "paper.tar")[0] == []


@pytest.mark.parametrize("limit", ["MAX_MEMBERS", "MAX_FILES"])
def test_an_archive_of_more_files_than_the_limit_is_a_bomb(tmp_path, monkeypatch, limit):
    monkeypatch.setattr(archives, limit, 3)
    (tmp_path / "three.tar").write_bytes(tar_bytes(dict.fromkeys(["a.tex", "b.tex", "c.tex"], PAPER)))
    (tmp_path / "four.tar").write_bytes(tar_bytes(dict.fromkeys(["a.tex", "b.tex", "c.tex", "d.tex"], PAPER)))
    assert read(tmp_path / "three.tar")[1] == set()
    assert read(tmp_path / "four.tar")[1] == {"archive-bomb"}


@pytest.mark.parametrize("limit", ["MAX_FILE_BYTES", "MAX_BUNDLE_BYTES"])
@pytest.mark.parametrize("packed", [False, True])
def test_files_up_to_the_limit_are_read_and_longer_ones_are_not(tmp_path, monkeypatch, limit, packed):
    paper, text = tmp_path / "paper", PAPER + b"%" * 20_000
    if packed:
        paper.write_bytes(tar_bytes({"a.tex": text}))
    else:
        paper.mkdir()
        (paper / "a.tex").write_bytes(text)
    monkeypatch.setattr(archives, limit, len(text))
    assert read(paper)[1] == set()
    monkeypatch.setattr(archives, limit, len(text) - 1)
    assert read(paper)[1] == {"too-large"}


def test_bombs_and_damage_get_a_verdict(tmp_path, monkeypatch):
    monkeypatch.setattr(archives, "MAX_FILE_BYTES", 1 << 21)
    monkeypatch.setattr(archives, "MAX_BUNDLE_BYTES", 1 << 22)
    zeros = gzip.compress(bytes(1 << 24))
    deep = PAPER
    for _ in range(12):
        deep = tar_bytes({"a.tar": deep})
    whole = gzip.compress(tar_bytes(BOOK))
    cases = {
        "bomb.gz": (zeros, "archive-bomb"),
        "packed.gz": (
            gzip.compress(gzip.compress(gzip.compress(gzip.compress(gzip.compress(b"x"))))),
            "archive-bomb",
        ),
        "deep.tar": (deep, "archive-bomb"),
        "zip.zip": (zip_bytes({"a.tex": bytes(1 << 23)}), "too-large"),
        "cut.tar.gz": (whole[: len(whole) // 2], "damaged"),
        "noise.gz": (b"\x1f\x8b" + bytes(range(256)) * 4, "damaged"),
        "noise.xz": (b"\xfd7zXZ\x00" + bytes(99), "damaged"),
        "noise.zip": (b"PK\x03\x04" + bytes(99), "damaged"),
        "image.tex": (b"\x89PNG\r\n\0\0", "not-tex"),
    }
    for name, (data, verdict) in cases.items():
        (tmp_path / name).write_bytes(data)
        formulas, verdicts = read(tmp_path / name)
        assert (formulas, verdicts) == ([], {verdict}), name


def test_a_file_is_opened_up_to_four_times_what_may_be_in_it(tmp_path, monkeypatch):
    paper = tmp_path / "paper.tex"
    paper.write_bytes(PAPER)
    monkeypatch.setattr(archives, "MAX_BUNDLE_BYTES", -(-len(PAPER) // 4))
    assert read(paper)[1] == set()
    monkeypatch.setattr(archives, "MAX_BUNDLE_BYTES", (len(PAPER) - 1) // 4)
    assert read(paper) == ([], {"too-large"})
    monkeypatch.setattr(archives, "_read", Mock(side_effect=OSError(5, "Input/output error")))
    assert read(paper) == ([], {"damaged"})
