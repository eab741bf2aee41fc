"""Pictures of a muscle analysis: activations over time, joint loads in body weights. SVG, the same bytes each time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from posture.body import STANDARD_GRAVITY
from posture.errors import ResultError
from posture.results import replacing

COLOURS = ("#0b5394", "#b45f06", "#38761d", "#990000", "#674ea7", "#1c7c7d", "#7f6000", "#a64d79", "#444444")


def plot_muscles(dataset: xr.Dataset, folder: Path) -> list[Path]:
    """Write activations.svg and joint_loads.svg; both from the result alone."""
    if "muscle_activation" not in dataset:
        raise ResultError("this result holds no muscles; make one with `posture jump` or `posture muscles`")
    import matplotlib
    from matplotlib.figure import Figure

    folder.mkdir(parents=True, exist_ok=True)
    paths = [folder / "activations.svg", folder / "joint_loads.svg"]
    with matplotlib.rc_context({"svg.hashsalt": "posture", "font.size": 9}):
        for path, figure in zip(paths, (_activations(dataset, Figure), _loads(dataset, Figure)), strict=True):
            with replacing(path) as temporary:
                figure.savefig(temporary, format="svg", metadata={"Date": None})
    return paths


def _sides(names: list[str]) -> dict[str, list[int]]:
    """Indices of left, right and other names."""
    sides: dict[str, list[int]] = {}
    for index, name in enumerate(names):
        sides.setdefault(next((side for side in ("left", "right") if name.startswith(side)), ""), []).append(index)
    return sides


def _plain(name: str) -> str:
    for side in ("left_", "right_"):
        name = name.removeprefix(side)
    return name.replace("_", " ")


def _shade_flight(axes: Any, dataset: xr.Dataset) -> None:
    """Grey where nothing touches the ground."""
    if "ground_force" not in dataset:
        return
    up = dataset["ground_force"].values[:, :, 2].sum(axis=1)
    flying = up < 0.01 * float(dataset.attrs["body_mass_kg"]) * STANDARD_GRAVITY
    across = axes.get_xaxis_transform()
    axes.fill_between(dataset.time.values, 0, 1, where=flying, color="0.92", transform=across, linewidth=0)


def _activations(dataset: xr.Dataset, figure_class: type) -> Any:
    names = [str(name) for name in dataset["muscle"].values]
    sides = _sides(names)
    figure = figure_class(figsize=(8, 2.9 * len(sides)), layout="constrained")
    panels = figure.subplots(len(sides), 1, sharex=True, squeeze=False)[:, 0]
    weak = np.abs(dataset["sharing_shortfall"].values).max(axis=1) > 0
    for axes, (side, indices) in zip(panels, sides.items(), strict=True):
        for place, index in enumerate(indices):
            axes.plot(
                dataset.time.values,
                dataset["muscle_activation"].values[:, index],
                color=COLOURS[place % len(COLOURS)],
                linestyle=("-", "--", ":")[place // len(COLOURS) % 3],
                label=_plain(names[index]),
            )
            if "muscle_activation_elimination" in dataset:
                axes.plot(
                    dataset.time.values,
                    dataset["muscle_activation_elimination"].values[:, index],
                    color=COLOURS[place % len(COLOURS)],
                    linewidth=0.7,
                    linestyle=":",
                )
        _shade_flight(axes, dataset)
        if weak.any():
            axes.plot(dataset.time.values[weak], np.full(weak.sum(), 1.02), "k|", label="too weak")
        axes.set(ylabel=f"activation {side}".strip(), ylim=(0, 1.05))
        axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False)
    panels[-1].set_xlabel("time, s (grey: in the air)")
    return figure


def _loads(dataset: xr.Dataset, figure_class: type) -> Any:
    weight = float(dataset.attrs["body_mass_kg"]) * STANDARD_GRAVITY
    crossed = [str(name) for name in dataset["muscle_joint"].values]
    sides = _sides(crossed)
    contacts = [str(name) for name in dataset["contact"].values] if "contact" in dataset else []
    count = len(sides) + bool(contacts)
    figure = figure_class(figsize=(8, 2.4 * count), layout="constrained")
    panels = figure.subplots(count, 1, sharex=True, squeeze=False)[:, 0]
    time = dataset.time.values
    for place, name in enumerate(contacts):
        panels[0].plot(
            time,
            dataset["ground_force"].sel(contact=name, axis="z").values / weight,
            label=name.replace("_", " "),
            color=COLOURS[place],
            linestyle=("-", "--")[place % 2],
        )
        panels[0].set_ylabel("ground, body weights")
    for axes, (side, indices) in zip(panels[bool(contacts) :], sides.items(), strict=True):
        for place, index in enumerate(indices):
            for variable, style, text in (
                ("joint_force", "-", _plain(crossed[index])),
                ("joint_force_torque_only", "--", None),
            ):
                size = np.linalg.norm(dataset[variable].sel(joint=crossed[index]).values, axis=1) / weight
                axes.plot(time, size, style, color=COLOURS[place], label=text)
        axes.set_ylabel(f"joint force {side}, body weights".replace(" ,", ","))
    for axes in panels:
        _shade_flight(axes, dataset)
        axes.set_ylim(bottom=0)
        axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False)
    panels[-1].set_xlabel("time, s (solid: with muscles, dashed: if torques moved the joints)")
    return figure
