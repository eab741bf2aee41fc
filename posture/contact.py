"""Where the deck pushes: centre of pressure, stance outline and the margin between them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import ConvexHull, QhullError

from posture.errors import BodyError

Array = NDArray[np.floating]


def convex_outline(points: Array) -> Array:
    """Corners (n × 2, counter-clockwise) of the smallest convex polygon around points on the deck."""
    try:
        return np.asarray(points[ConvexHull(points).vertices], dtype=np.float64)
    except QhullError:
        raise BodyError("the contact points lie on a line or are fewer than three; a stance needs an area") from None


def center_of_pressure(force: Array, moment: Array) -> Array:
    """Point (… × 2, m) on the plane z = 0 about which the deck's push has no moment along x and y.

    ``force`` (N) and ``moment`` (N·m, about the origin) act from deck on person, ship axes, last axis x, y, z:
    x = -My / Fz, y = Mx / Fz. NaN where the deck does not push up (Fz <= 0).
    """
    up = np.where(force[..., 2] > 0, force[..., 2], np.nan)
    return np.stack((-moment[..., 1] / up, moment[..., 0] / up), axis=-1)


def stance_margin(point: Array, outline: Array) -> Array:
    """Distance (m) from points (… × 2) to the edge of a convex outline: positive inside, negative outside.

    Outside, it is the distance to the nearest point of the outline; NaN stays NaN.
    """
    start, edge = outline, np.roll(outline, -1, axis=0) - outline
    inward = np.stack((-edge[:, 1], edge[:, 0]), axis=-1) / np.linalg.norm(edge, axis=1)[:, None]
    offset = point[..., None, :] - start
    depth = np.sum(offset * inward, axis=-1)
    along = np.clip(np.sum(offset * edge, axis=-1) / np.sum(edge * edge, axis=-1), 0, 1)
    distance = np.linalg.norm(offset - along[..., None] * edge, axis=-1).min(axis=-1)
    return np.asarray(np.where(depth.min(axis=-1) >= 0, distance, -distance))
