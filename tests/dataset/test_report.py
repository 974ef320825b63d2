"""What people see: charts that are right and well-formed, a report that needs no network."""

import re
from html.parser import HTMLParser
from xml.etree import ElementTree

import pytest

from i2l.dataset.sources import text_sources
from i2l.html import bar_chart, histogram, rank_chart

SVG = "{http://www.w3.org/2000/svg}"


def test_histogram_counts_every_value_in_its_bin():
    root = ElementTree.fromstring(histogram({0: 1, 9: 2, 10: 4, 99: 8}, limit=99, num_bins=10, unit="px"))
    titles = [title.text for title in root.iter(f"{SVG}title")]
    assert titles[0] == "0 to 9 px: 3"
    assert titles[1] == "10 to 19 px: 4"
    assert titles[-1] == "90 to 99 px: 8"
    heights = [float(bar.get("height")) for bar in root.iter(f"{SVG}rect")]
    assert heights[0] / heights[-1] == pytest.approx(3 / 8, rel=0.01)


def test_bars_are_sorted_and_escaped():
    root = ElementTree.fromstring(bar_chart({"<": 1, "&": 10}))
    labels = [text.text for text in root.iter(f"{SVG}text")]
    assert labels == ["&", "10", "<", "1"]
    wide, narrow = (float(bar.get("width")) for bar in root.iter(f"{SVG}rect"))
    assert wide == pytest.approx(10 * narrow, rel=0.01)


def test_ranks_fall():
    root = ElementTree.fromstring(rank_chart([1, 100, 10], unit="rank", minimum=10))
    [line] = root.iter(f"{SVG}polyline")
    points = [tuple(map(float, point.split(","))) for point in line.get("points").split()]
    assert [y for _, y in points] == sorted(y for _, y in points)
    [limit] = (path for path in root.iter(f"{SVG}path") if path.get("class") == "limit")
    assert float(limit.get("d").split()[1].split("h")[0]) == points[1][1]


@pytest.mark.parametrize("chart", [bar_chart({}), histogram({}, limit=5, num_bins=3, unit="")])
def test_nothing_to_show_is_still_a_picture(chart):
    ElementTree.fromstring(chart)


class Page(HTMLParser):
    """Collects what a browser would fetch, and checks that tags are closed."""

    def __init__(self):
        super().__init__()
        self.open, self.fetched = [], []

    def handle_starttag(self, tag, attrs):
        self.fetched += [value for name, value in attrs if name in ("src", "href")]
        if tag not in ("meta", "img", "rect", "path", "polyline"):
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        pass

    def handle_endtag(self, tag):
        if tag not in ("path", "rect", "polyline"):
            assert self.open.pop() == tag


def test_report_is_whole_and_self_contained(small_build, tmp_path):
    (tmp_path / "a.txt").write_text("\n".join(f"x + {a} = {b} < c" for a in "abcdef" for b in "abcdef"))
    dataset = small_build(text_sources([tmp_path / "a.txt"]))
    text = (dataset.path / "report.html").read_text()
    page = Page()
    page.feed(text)
    assert page.open == []
    assert page.fetched
    assert all(value.startswith("data:image/png;base64,") for value in page.fetched)
    assert not re.search(r"url\(|@import|<script|<link", text)
    assert "x + a = a &lt; c" in text
    readme = (dataset.path / "README.md").read_text()
    assert readme.startswith("---\npretty_name: ")
    assert f"| given | {dataset.card['num_given']} |" in readme
