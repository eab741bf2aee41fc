"""How a person stands: feet apart, turned out, facing where; as a change of the body's contact areas and of the deck.

Width and foot angle move the outlines of the feet only: the body's masses stay, so the small drop of the hips in a
wide stance and the feet's own inertia are left out.
"""

from __future__ import annotations

import copy
import math
from dataclasses import dataclass, replace

import numpy as np
import pinocchio as pin

from posture.body import Body
from posture.deck import DeckMotion
from posture.errors import BodyError, check_number
from posture.ship.motion import TurnedDeck


@dataclass(frozen=True)
class Stance:
    """Distance between the feet's middles (m), angle by which each foot turns out (rad), where the person looks (rad).

    None leaves the body's own width. ``facing`` turns from the bow to port.
    """

    width: float | None = None
    foot_angle: float = 0.0
    facing: float = 0.0

    def __post_init__(self) -> None:
        """Refuse stances nobody can take."""
        if self.width is not None:
            check_number(self.width, what="stance: width", unit="m", low=0.05, high=1.5, error=BodyError)
        check_number(
            self.foot_angle,
            what="stance: foot angle",
            unit="rad",
            low=-math.pi / 2,
            high=math.pi / 2,
            error=BodyError,
        )

    def body(self, body: Body) -> Body:
        """The body with its feet placed so; its contact areas are the feet, those left of the middle turn left."""
        if self.width is None and self.foot_angle == 0:
            return body
        if len(body.contact_names) < 2:
            raise BodyError(f"{body.name}: a stance needs two feet, but it has {len(body.contact_names)} contact areas")
        pin.framesForwardKinematics(body.model, body.data, body.with_base(body.neutral))
        sidecar = copy.deepcopy(body.sidecar)
        for entry in sidecar["contact"].values():
            placement = body.data.oMf[body.link_frame(entry["link"])]
            points = np.array([placement.act(np.array(point, float)) for point in entry["points"]])
            ankle = np.array(placement.translation)
            side = math.copysign(1.0, ankle[1])
            angle = side * self.foot_angle
            turn = np.array([[math.cos(angle), -math.sin(angle), 0], [math.sin(angle), math.cos(angle), 0], [0, 0, 1]])
            target = ankle.copy()
            if self.width is not None:
                target[1] = side * self.width / 2
            moved = (points - ankle) @ turn.T + target
            entry["points"] = [[float(value) for value in placement.actInv(point)] for point in moved]
        return replace(body, sidecar=sidecar)

    def deck(self, deck: DeckMotion) -> DeckMotion:
        """The deck in the axes of a person who faces so."""
        return TurnedDeck(deck, self.facing) if self.facing else deck
