"""Pictures of quiet stance: stabilogram, statokinesigram, spectrum, diffusion, record against model."""

from __future__ import annotations

import math
import textwrap
from typing import Any

import numpy as np

from posture.identify import Identified
from posture.plots import BLUE, GRAY, GREEN, RED, new_figure
from posture.recordings import Recording
from posture.sway import diffusion, diffusion_fit, ellipse, spectrum


def stabilogram(recording: Recording) -> Any:
    """COP about its mean over time, fore-aft and lateral."""
    figure, axes = new_figure(2, 1, size=(6.8, 3.8), sharex=True)
    centered = 1000 * (recording.cop - recording.cop.mean(axis=0))
    for axis, column, name, color in zip(axes, range(2), ("forwards", "left"), (BLUE, GREEN), strict=True):
        axis.plot(recording.time, centered[:, column], color=color, linewidth=0.8)
        axis.set_ylabel(f"{name}, mm")
    axes[0].set_title(f"Stabilogram: {recording.name}", fontsize=10)
    axes[1].set_xlabel("time, s")
    axes[1].set_xlim(0, recording.duration)
    return figure


def statokinesigram(recording: Recording) -> Any:
    """COP seen from above, forwards up and left to the left, with the 95 % prediction ellipse."""
    figure, axis = new_figure(size=(4.6, 4.6))
    centered = recording.cop - recording.cop.mean(axis=0)
    found = ellipse(centered)
    turn = np.linspace(0, 2 * math.pi, 200)
    c, s = math.cos(found["ellipse_angle"]), math.sin(found["ellipse_angle"])
    along, across = found["ellipse_major"] * np.cos(turn), found["ellipse_minor"] * np.sin(turn)
    axis.plot(1000 * centered[:, 1], 1000 * centered[:, 0], color=BLUE, linewidth=0.6, label="COP")
    label = f"95 % ellipse, {1e6 * found['ellipse_area']:.0f} mm²"
    axis.plot(1000 * (s * along + c * across), 1000 * (c * along - s * across), color=RED, label=label)
    axis.set_aspect("equal", adjustable="datalim")
    axis.invert_xaxis()
    axis.set_xlabel("left, mm")
    axis.set_ylabel("forwards, mm")
    axis.set_title(f"Statokinesigram: {recording.name}", fontsize=10)
    _legend(figure)
    return figure


def diffusion_plot(recording: Recording) -> Any:
    """Stabilogram diffusion on log scales, with the two regimes and the critical point of each direction."""
    figure, axis = new_figure(size=(5.6, 4.2))
    lags, squares = diffusion(recording)
    for column, (name, color) in enumerate((("fore-aft", BLUE), ("lateral", GREEN), ("planar", GRAY))):
        fit = diffusion_fit(lags, squares[:, column])
        axis.loglog(lags, 1e6 * squares[:, column], color=color, linewidth=1.6, label=name)
        if math.isfinite(fit["critical_time"]):
            axis.plot(fit["critical_time"], 1e6 * fit["critical_square"], "o", color=RED, markersize=5)
            axis.annotate(
                f"{fit['critical_time']:.2g} s",
                (fit["critical_time"], 1e6 * fit["critical_square"]),
                textcoords="offset points",
                xytext=(6, 5) if column == 2 else (6, -12),
                color=RED,
                fontsize=8,
            )
    axis.set_xlabel("lag, s")
    axis.set_ylabel("mean square displacement, mm²")
    axis.set_title(f"Stabilogram diffusion: {recording.name} (critical points red)", fontsize=10)
    _legend(figure)
    return figure


def spectrum_plot(found: Identified, *, name: str = "") -> Any:
    """Spectrum of the record with the identified model's and its 95 % band."""
    figure, axis = new_figure(size=(5.8, 4.2))
    frequency, power = spectrum(found.record - found.record.mean(), 1 / found.step)
    frequency, power = frequency[1:], power[1:]
    best, low, high = found.spectrum(frequency, draws=100)
    axis.loglog(frequency, 1e6 * power, color=BLUE, linewidth=0.9, label="record (Welch)")
    axis.fill_between(
        frequency, 1e6 * low, 1e6 * high, color=RED, alpha=0.25, linewidth=0, label="95 % of the parameters"
    )
    axis.loglog(frequency, 1e6 * best, color=RED, linewidth=1.6, label="model")
    axis.set_xlabel("frequency, Hz")
    axis.set_ylabel("COP, mm²/Hz")
    axis.set_title(f"Spectrum and model{': ' + name if name else ''}", fontsize=10)
    _legend(figure)
    return figure


def model_plot(found: Identified, *, name: str = "", seed: int = 0) -> Any:
    """The record beside one drawn from the model, the disturbance inferred with its 95 % band, the innovations.

    The two curves above should look alike, not agree: the noise is another one.
    """
    smooth = found.smooth()
    figure, axes = new_figure(3, 1, size=(6.8, 5.6), sharex=True)
    time = smooth.time.values
    axes[0].plot(time, 1000 * (smooth["cop"] - smooth["cop"].mean()), color=BLUE, linewidth=1.4, label="measured")
    if found.model.poles(found.theta).real.max() < 0:
        drawn = found.model.simulate(
            found.model.values(found.theta), rate=1 / found.step, count=len(time), seed=seed, settle=60.0
        )
        axes[0].plot(time, 1000 * (drawn - drawn.mean()), color=RED, linewidth=0.7, label="drawn from the model")
    axes[0].set_ylabel("COP, mm")
    axes[0].set_title(f"Measured and model{': ' + name if name else ''}", fontsize=10)
    _legend(figure)
    torque, spread = smooth["disturbance_torque"].values, smooth["disturbance_torque_sd"].values
    axes[1].fill_between(time, torque - 1.96 * spread, torque + 1.96 * spread, color=GREEN, alpha=0.25, linewidth=0)
    axes[1].plot(time, torque, color=GREEN, linewidth=0.9)
    axes[1].set_ylabel("disturbance, N·m")
    axes[2].plot(time, found.innovations, color=GRAY, linewidth=0.6)
    axes[2].set_ylabel("innovation, sd")
    axes[2].set_xlabel("time, s")
    axes[2].set_xlim(0, time[-1])
    axes[2].set_title("\n".join(textwrap.wrap(found.whiteness["sentence"], 100)), fontsize=8)
    return figure


def _legend(figure: Any) -> None:
    """Below everything, where it hides no data."""
    figure.legend(loc="outside lower center", ncols=3, frameon=False, fontsize=8)
