"""Run the notebooks of examples/notebooks without Jupyter, and write what their cells print into them.

usage: python tests/notebooks.py     # after a change of a notebook

A value at the end of a cell is shown as Jupyter shows it: by its `_repr_svg_` and its `repr`. Lost: nbclient with
ipykernel, 37 packages and 106 MB for cells that are plain Python; the outputs are the same there.
"""

from __future__ import annotations

import ast
import contextlib
import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

NOTEBOOKS = Path(__file__).parents[1] / "examples" / "notebooks"


def outputs_of(notebook: dict[str, Any], name: str) -> Iterator[list[dict[str, Any]]]:
    """Run the code cells in order, in one namespace, and yield the outputs of each, as nbformat has them.

    Raises:
        Exception: whatever a cell raises.
    """
    namespace: dict[str, Any] = {"__name__": "__main__"}
    cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    for number, cell in enumerate(cells, 1):
        body = ast.parse("".join(cell["source"])).body
        last = body.pop() if body and isinstance(body[-1], ast.Expr) else None
        place, value, printed = f"{name}, cell {number}", None, io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(ast.Module(body, []), place, "exec"), namespace)
            if isinstance(last, ast.Expr):
                value = eval(compile(ast.Expression(last.value), place, "eval"), namespace)
        outputs: list[dict[str, Any]] = []
        if text := printed.getvalue():
            outputs.append(
                {"name": "stdout", "output_type": "stream", "text": text.splitlines(keepends=True)}
            )
        if value is not None:
            data = {"text/plain": repr(value).splitlines(keepends=True)}
            if hasattr(value, "_repr_svg_"):
                data["image/svg+xml"] = value._repr_svg_().splitlines(keepends=True)
            outputs.append(
                {"data": data, "execution_count": number, "metadata": {}, "output_type": "execute_result"}
            )
        yield outputs


def main() -> None:
    """Run every notebook, and write it with its outputs."""
    for path in sorted(NOTEBOOKS.glob("*.ipynb")):
        notebook = json.loads(path.read_text(encoding="utf-8"))
        cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
        for number, outputs in enumerate(outputs_of(notebook, path.name), 1):
            cells[number - 1] |= {"execution_count": number, "outputs": outputs}
        path.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
