"""Pictures of a walking trial: joint curves over the cycle, the ground under the feet, and how well markers fit."""

from __future__ import annotations

from typing import Any

import numpy as np

from posture.gait_trial import Trial, over_cycle
from posture.plots import BLUE, GRAY, GREEN, RED, new_figure

SIDES = {"left": (RED, "left", "_l"), "right": (BLUE, "right", "_r")}
# joint: (names by naming habit, sign that makes bending positive)
SAGITTAL = {
    "hip flexion": (("{side}_hip_y", -1.0), ("hip_flexion{short}", 1.0)),
    "knee flexion": (("{side}_knee_y", 1.0), ("knee_angle{short}", 1.0)),
    "ankle dorsiflexion": (("{side}_ankle_y", -1.0), ("ankle_angle{short}", 1.0)),
}


def sagittal_joint(joints: list[str], name: str, side: str) -> tuple[str, float] | None:
    """Joint of a body that bends the hip, knee or ankle of a side, and the sign of bending; None if it has none."""
    for pattern, sign in SAGITTAL[name]:
        joint = pattern.format(side=side, short=SIDES[side][2])
        if joint in joints:
            return joint, sign
    return None


def joint_curves(trial: Trial) -> Any:
    """Angle, moment and power of hip, knee and ankle over the cycle of each leg (over the record if there is none)."""
    figure, axes = new_figure(3, 3, size=(9.5, 7.0), sharex=True)
    joints = trial.body.joint_names
    quantities = (
        ("joint_position", "angle, °", 180 / np.pi),
        ("joint_torque", "moment, N·m/kg", 1 / trial.body.mass),
        ("joint_power", "power, W/kg", 1 / trial.body.mass),
    )
    for column, name in enumerate(SAGITTAL):
        axes[0, column].set_title(name)
        for side, (colour, label, _) in SIDES.items():
            found = sagittal_joint(joints, name, side)
            cycles = trial.quality["cycles"].get(side, [])
            if found is None:
                continue
            joint, sign = found
            whole = (float(trial.dataset.time[0]), float(trial.dataset.time[-1]))
            for number, cycle in enumerate(cycles or [whole]):
                for row, (variable, _, scale) in enumerate(quantities):
                    curve = scale * over_cycle(trial.dataset, variable, joint, cycle)
                    curve = curve if variable == "joint_power" else sign * curve
                    style = "-" if cycles else ":"
                    axes[row, column].plot(
                        np.linspace(0, 100, len(curve)),
                        curve,
                        style,
                        color=colour,
                        label=(label if cycles else f"{label}, whole record") if number == 0 else None,
                    )
    for row, (_, label, _) in enumerate(quantities):
        axes[row, 0].set_ylabel(label)
    for column in range(3):
        axes[2, column].set_xlabel("% of cycle")
    axes[0, 0].legend()
    return figure


def ground_curves(trial: Trial) -> Any:
    """Vertical and forward force under each foot, with their sum."""
    figure, axes = new_figure(2, 1, size=(9.5, 4.6), sharex=True)
    time = trial.dataset.time.values
    force = trial.dataset["ground_force"]
    for row, (axis, label) in enumerate((("z", "up, N"), ("x", "forward, N"))):
        for side in force["contact"].values:
            axes[row].plot(time, force.sel(contact=side, axis=axis), color=SIDES[str(side)][0], label=str(side))
        axes[row].plot(time, force.sel(axis=axis).sum("contact"), "--", color=GRAY, lw=1, label="sum")
        axes[row].set_ylabel(label)
    axes[0].legend(ncols=3)
    axes[1].set_xlabel("time, s")
    return figure


def marker_curves(trial: Trial) -> Any:
    """Marker distance over time, and by marker."""
    figure, axes = new_figure(1, 2, size=(9.5, 3.6), width_ratios=(2, 1))
    axes[0].plot(trial.fit.time, 1000 * trial.fit.rms, color=GREEN)
    axes[0].set_xlabel("time, s")
    axes[0].set_ylabel("rms over markers, mm")
    axes[0].set_ylim(bottom=0)
    means = 1000 * np.sqrt(np.nanmean(trial.fit.distance**2, axis=0))
    order = np.argsort(means)[-15:]
    axes[1].barh([trial.fit.names[at] for at in order], means[order], color=GREEN)
    axes[1].set_xlabel("rms over time, mm")
    return figure
