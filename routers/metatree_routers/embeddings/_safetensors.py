"""Read safetensors files: an 8-byte header size, a JSON header, raw numbers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

_TYPES = {"F32": np.float32, "F16": np.float16, "I64": np.int64}


def read_matrices(path: Path) -> dict[str, npt.NDArray[Any]]:
    """Return the matrices of a file by their names.

    Not mapped: the numbers begin anywhere in the file, and matrices that are not aligned multiply 100 times slower.

    Raises:
        OSError: the file cannot be read.
        ValueError: it is no such file, or has numbers of another type.
    """
    with path.open("rb") as file:
        header: dict[str, Any] = json.loads(file.read(int.from_bytes(file.read(8), "little")))
        data = np.fromfile(file, dtype=np.uint8)
    header.pop("__metadata__", None)
    matrices = {}
    for name, entry in header.items():
        if entry["dtype"] not in _TYPES:
            raise ValueError(f"{path.name} holds {entry['dtype']} {entry['shape']}")
        begin, end = entry["data_offsets"]
        matrices[name] = data[begin:end].view(_TYPES[entry["dtype"]]).reshape(entry["shape"])
    return matrices
