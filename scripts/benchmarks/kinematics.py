"""Marker fitting and inverse dynamics against OpenSim's own tools, on one trial and one model.

The folder named by $POSTURE_WALK holds an OpenSim walking trial: subject_walk_scaled.osim, markers_walk.trc, grf_walk.mot, grf_walk.xml (the
example3DWalking of opensim-core). OpenSim and CasADi cannot live in one process, so OpenSim runs in an environment of
its own; its tools are timed there, without loading Python or the model. Rates are frames per second of processor
time, so that other programs on the machine do not count; both sides use one core.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.problem import OPENSIM, ROOT, missing, row

REPEATS = 5
CUTOFF = 6.0  # Hz, both sides

PEER = """
import json, sys, time
import opensim as osim
folder, out = sys.argv[1], sys.argv[2]
osim.Logger.setLevelString("Error")
model = osim.Model(folder + "/subject_walk_scaled.osim")
model.initSystem()
tool = osim.InverseKinematicsTool()
tool.setModel(model)
tool.setMarkerDataFileName(folder + "/markers_walk.trc")
tool.setStartTime(0.0)
tool.setEndTime(2.37)
tool.setOutputMotionFileName(out + "/ik.mot")
tool.set_report_errors(True)
tool.setResultsDir(out)
names = osim.TimeSeriesTableVec3(folder + "/markers_walk.trc").getColumnLabels()
known = [model.getMarkerSet().get(i).getName() for i in range(model.getMarkerSet().getSize())]
for name in names:
    if name in known:
        task = osim.IKMarkerTask()
        task.setName(name)
        task.setApply(True)
        task.setWeight(1.0)
        tool.getIKTaskSet().cloneAndAppend(task)
start = time.process_time()
tool.run()
fitting = time.process_time() - start
table = osim.TimeSeriesTable(out + "/ik.mot")
frames = table.getNumRows()
model = osim.Model(folder + "/subject_walk_scaled.osim")
model.initSystem()
tool = osim.InverseDynamicsTool()
tool.setModel(model)
tool.setCoordinatesFileName(out + "/ik.mot")
tool.setExternalLoadsFileName(folder + "/grf_walk.xml")
tool.setLowpassCutoffFrequency(6.0)
tool.setStartTime(0.0)
tool.setEndTime(2.37)
excluded = osim.ArrayStr()
excluded.append("Muscles")
tool.setExcludedForces(excluded)
tool.setResultsDir(out)
tool.setOutputGenForceFileName("id.sto")
start = time.process_time()
tool.run()
dynamics = time.process_time() - start
print("RESULT " + json.dumps({"frames": frames, "fitting_s": fitting, "dynamics_s": dynamics}))
"""


def rows() -> list[dict[str, Any]]:
    """Marker fitting and inverse dynamics against OpenSim's tools."""
    trial = Path(os.environ.get("POSTURE_WALK", ROOT / "../shared/data/gait/opensim_rajagopal_walk"))
    if not (trial / "subject_walk_scaled.osim").is_file():
        return [missing("kinematics", "OpenSim", f"{trial}: no walking trial there; name its folder in $POSTURE_WALK")]
    from posture.inverse import from_pinocchio, generalized_forces, states
    from posture.markers import fit_markers
    from posture.motion_files import Y_UP, read_markers, read_plates, read_table
    from posture.osim import read_osim
    from posture.plates import contacts, wrenches
    from posture.signals import lowpass, spline

    hinge, hinge_set = read_osim(trial / "subject_walk_scaled.osim")
    body, marker_set = read_osim(trial / "subject_walk_scaled.osim", free_coupled=True)
    markers = read_markers(trial / "markers_walk.trc", axes=Y_UP)
    plates = read_plates(trial / "grf_walk.mot", axes=Y_UP, feet={"r": "ground_force_r", "l": "ground_force_l"})
    count = len(markers.time)
    with tempfile.TemporaryDirectory() as name:
        out = Path(name)
        peer = _opensim(OPENSIM, trial, out)
        if not peer:
            return [missing("kinematics", "OpenSim", f"{OPENSIM} is missing or failed; scripts/bench installs it")]
        same, same_s = _best(lambda: fit_markers(hinge, hinge_set, markers))
        free, free_s = _best(lambda: fit_markers(body, marker_set, markers))

        def dynamics() -> Any:
            spans = contacts(plates)
            motion = states(spline(markers.time, lowpass(from_pinocchio(free.configuration), markers.rate, CUTOFF)), at)
            loads = wrenches(plates, at, spans)
            return generalized_forces(body, motion, {f"calcn_{side}": loads[side] for side in loads})

        at = markers.time
        forces, forces_s = _best(dynamics)
        errors = read_table(out / "_ik_marker_errors.sto")["marker_error_RMS"].mean()
        theirs = read_table(out / "id.sto")
        gaps = []
        inside = (at > 0.3) & (at < 2.1)
        for joint in ("hip_flexion", "knee_angle", "ankle_angle"):
            for side in "lr":
                ours = forces[:, 6 + body.joint_index(f"{joint}_{side}")]
                other = np.interp(at, theirs.time, theirs[f"{joint}_{side}_moment"])
                gaps.append(np.sqrt(np.mean((ours - other)[inside] ** 2)) / body.mass)
    fitting, dynamic = peer["frames"] / peer["fitting_s"], peer["frames"] / peer["dynamics_s"]
    # Markers may lie at most 2 % further off than OpenSim's: its knees also slide, ours are hinges or turn freely.
    worse = [max(0.0, float(found.rms.mean() / errors) - 1) for found in (free, same)]
    return [
        row("kinematics", "OpenSim IK, our knees turn freely", count / free_s, fitting, worse[0], 0.02),
        row("kinematics", "OpenSim IK, our knees are hinges", count / same_s, fitting, worse[1], 0.02),
        row("kinematics", "OpenSim ID (difference in N·m/kg)", count / forces_s, dynamic, max(gaps), 0.1),
    ]


def _best(job: Any) -> tuple[Any, float]:
    times = []
    for _ in range(REPEATS):
        start = time.process_time()
        found = job()
        times.append(time.process_time() - start)
    return found, min(times)


def _opensim(python: Path, trial: Path, out: Path) -> dict[str, float]:
    if not python.exists():
        return {}
    done = subprocess.run(
        [str(python.absolute()), "-c", PEER, str(trial.resolve()), str(out)],
        capture_output=True,
        text=True,
        timeout=900,
        cwd=out,
        check=False,
    )
    lines = [line for line in done.stdout.splitlines() if line.startswith("RESULT ")]
    if not lines:
        print(f"OpenSim failed: {done.stderr[-300:]}", file=sys.stderr)
        return {}
    found: dict[str, float] = json.loads(lines[0][7:])
    return found
