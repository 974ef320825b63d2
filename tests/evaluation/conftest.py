"""What tests of the evaluation share with others."""

from tests.dataset.conftest import fake_tex, small_build
from tests.explain.conftest import browser

__all__ = ["browser", "fake_tex", "small_build"]
