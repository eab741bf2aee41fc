"""Pictures for papers and reports: SVG (or PNG, PDF) by matplotlib, the same bytes for the same data.

matplotlib is imported only when a picture is made. Each function returns a figure; ``write_figure`` saves it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from posture.errors import ResultError
from posture.results import replacing

KINDS = (".svg", ".png", ".pdf")
STYLE: dict[Any, Any] = {
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.alpha": 0.25,
    "legend.frameon": False,
    "legend.fontsize": 8,
    "svg.hashsalt": "posture",
    "svg.fonttype": "none",
}
BLUE, RED, GREEN, GRAY = "#1f4e79", "#c0392b", "#2e7d5b", "#7f8c8d"


def new_figure(rows: int = 1, columns: int = 1, *, size: tuple[float, float] = (6.4, 3.6), **settings: Any) -> Any:
    """Figure and axes in the house style, drawn without any window system."""
    import matplotlib as mpl
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    with mpl.rc_context(STYLE):
        figure = Figure(figsize=size, layout="constrained")
        FigureCanvasAgg(figure)
        return figure, figure.subplots(rows, columns, **settings)


def write_figure(figure: Any, path: Path) -> None:
    """Save a figure, complete or not at all; the kind follows the name."""
    if path.suffix not in KINDS:
        raise ResultError(f"{path}: unknown kind of picture {path.suffix!r}; end the name in {', '.join(KINDS)}")
    import matplotlib as mpl

    metadata = {".svg": {"Date": None}, ".pdf": {"CreationDate": None}}.get(path.suffix)
    with mpl.rc_context(STYLE), replacing(path) as temporary:
        figure.savefig(temporary, format=path.suffix[1:], metadata=metadata, dpi=150)
