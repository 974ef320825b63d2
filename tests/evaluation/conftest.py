"""What tests of the evaluation share with others."""

from tests.dataset.conftest import fake_tex, small_build

__all__ = ["fake_tex", "small_build"]
