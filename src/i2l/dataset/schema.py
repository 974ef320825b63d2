"""The columns of a shard, in both forms, with the description that Hugging Face `datasets` reads."""

import json
from typing import Any

import pyarrow as pa

# Left, top, right, bottom in pixels, half-open. Not a list of fixed size: versions of pyarrow that are in use
# refuse to read those from Parquet where some are null.
BOX = pa.list_(pa.int16())
BOXES = pa.list_(BOX)  # one entry per token, null where the token draws nothing
IMAGE = pa.struct([("bytes", pa.binary()), ("path", pa.string())])

_TEXT = {"dtype": "string", "_type": "Value"}
_INT16 = {"dtype": "int16", "_type": "Value"}
_INT32 = {"dtype": "int32", "_type": "Value"}
# "Sequence" is the old name of "List"; every version of `datasets` reads it
_BOXES = {"feature": {"feature": _INT16, "_type": "Sequence"}, "_type": "Sequence"}

_COLUMNS: dict[str, tuple[pa.DataType, dict[str, Any]]] = {
    "id": (pa.string(), _TEXT),  # file:line of the input
    "image": (IMAGE, {"_type": "Image"}),  # PNG, 8-bit grey, cropped to ink
    "pages": (pa.string(), _TEXT),  # a file of vector pages, relative to the dataset
    "page": (pa.int32(), _INT32),
    "formula": (pa.string(), _TEXT),  # canonical tokens joined by single spaces
    "tokens": (pa.list_(pa.string()), {"feature": _TEXT, "_type": "Sequence"}),
    "width": (pa.int16(), _INT16),
    "height": (pa.int16(), _INT16),
    "boxes": (BOXES, _BOXES),
    "style": (pa.string(), _TEXT),
}
PIXEL_COLUMNS = ("id", "image", "formula", "tokens", "width", "height", "boxes", "style")
COMPACT_COLUMNS = ("id", "pages", "page", "formula", "width", "height", "boxes", "style")


def shard_schema(*, compact: bool, boxes: bool) -> pa.Schema:
    """Give the Arrow schema of a shard; without boxes the column is left out."""
    names = [name for name in (COMPACT_COLUMNS if compact else PIXEL_COLUMNS) if boxes or name != "boxes"]
    features = {name: _COLUMNS[name][1] for name in names}
    metadata = {"huggingface": json.dumps({"info": {"features": features}})}
    return pa.schema([(name, _COLUMNS[name][0]) for name in names], metadata=metadata)
