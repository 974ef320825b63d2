"""A small build without TeX: the real stages, with a drawing that depends on the formula alone."""

from dataclasses import replace

import pytest

from i2l.dataset import build as build_module
from i2l.dataset import stages
from i2l.dataset.build import BuildOptions, EngineOptions, build_dataset
from tests.dataset.fakes import RECIPE, fake_render


@pytest.fixture
def fake_tex(monkeypatch):
    monkeypatch.setattr(stages, "render_formulas", fake_render)
    monkeypatch.setattr(build_module, "tex_path", lambda: "/bin/echo")
    monkeypatch.setattr(build_module, "check_styles", lambda kind: None)


@pytest.fixture
def small_build(fake_tex, tmp_path):
    """Build in this process, with small parts, so that every stage has several."""

    def run(sources, *, out="out", jobs=1, **changes):
        options = replace(BuildOptions(recipe=RECIPE, part_lines=7), **changes)
        return build_dataset(
            sources, out=tmp_path / out, options=options, engine=EngineOptions(jobs=jobs), quiet=True
        )

    return run
