"""The names that annotations use; nothing looks at what they say."""

from typing import Any


class NDArray:
    """An array, in annotations."""

    def __class_getitem__(cls, _: object) -> type:
        return cls


ArrayLike = Any
