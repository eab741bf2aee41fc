"""OpenSim's static optimisation and joint reactions, run as a script by its own Python: JSON in, JSON out.

The body, its muscles (ideal actuators along paths with wrapping cylinders) and a motion come as plain numbers; back
come lengths, moment arms, activations, joint forces and the processor time of each tool.
"""

import json
import math
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import opensim


def vec(values):
    """Three numbers as OpenSim wants them."""
    return opensim.Vec3(*(float(value) for value in values))


def joint(name, parent, offset, child, turns, slides):
    """Coordinates by axis: ``turns`` and ``slides`` are lists of (coordinate, axis)."""
    transform = opensim.SpatialTransform()
    axes = [(0, 1, 0), (1, 0, 0), (0, 0, 1)]
    for first, wanted in ((0, turns), (3, slides)):
        free = [axis for axis in axes if all(abs(np.dot(axis, used)) < 0.5 for _, used in wanted)]
        for index in range(3):
            part = transform.updTransformAxis(first + index)
            if index < len(wanted):
                names = opensim.ArrayStr()
                names.append(wanted[index][0])
                part.setCoordinateNames(names)
                part.setAxis(vec(wanted[index][1]))
                part.set_function(opensim.LinearFunction(1, 0))
            else:
                part.setAxis(vec(free.pop(0)))
                part.set_function(opensim.Constant(0))
    zero = vec((0, 0, 0))
    return opensim.CustomJoint(name, parent, vec(offset), zero, child, zero, zero, transform)


def build(problem):
    """The model: links, hinges, wrapping cylinders, muscles as path actuators, motors at every coordinate."""
    model = opensim.Model()
    model.setName("body")
    model.setGravity(vec((0, 0, -problem["gravity"])))
    bodies = []
    for link in problem["links"]:
        i = np.array(link["inertia"])
        inertia = opensim.Inertia(i[0, 0], i[1, 1], i[2, 2], i[0, 1], i[0, 2], i[1, 2])
        bodies.append(opensim.Body(f"body_{link['name']}", link["mass"], vec(link["center"]), inertia))
        model.addBody(bodies[-1])
    for index, link in enumerate(problem["links"]):
        if index == 0:
            slides = [("root_x", (1, 0, 0)), ("root_z", (0, 0, 1))]
            model.addJoint(joint("root", model.getGround(), (0, 0, 0), bodies[0], [("root_pitch", (0, 1, 0))], slides))
        else:
            turn = [(link["name"], link["axis"])]
            model.addJoint(joint(f"at_{link['name']}", bodies[link["parent"]], link["offset"], bodies[index], turn, []))
    wheels = {}
    for name, pulley in problem["pulleys"].items():
        wheel = opensim.WrapCylinder()
        wheel.setName(name)
        wheel.set_translation(vec(pulley["center"]))
        wheel.set_xyz_body_rotation(vec((-math.pi / 2, 0, 0)))  # cylinder along Y, its x forward
        wheel.set_radius(pulley["radius"])
        wheel.set_length(1.0)
        wheel.set_quadrant("+x" if pulley["axis"][1] > 0 else "-x")
        bodies[pulley["body"]].addWrapObject(wheel)
        wheels[name] = wheel
    for muscle in problem["muscles"]:
        force = opensim.PathActuator()
        force.setName(muscle["name"])
        force.setOptimalForce(muscle["max_force"])
        force.setMinControl(problem["lowest_activation"])
        force.setMaxControl(1.0)
        points = 0
        wraps = []
        for item in muscle["path"]:
            if "pulley" in item:
                wraps.append((item["pulley"], points))
                continue
            points += 1
            force.addNewPathPoint(f"{muscle['name']}_{points}", bodies[item["body"]], vec(item["point"]))
        for number, (name, before) in enumerate(wraps):
            path = force.updGeometryPath()
            path.addPathWrap(wheels[name])
            # Only between the points it stands between: else OpenSim at times leads the whole path round it.
            path.updWrapSet().get(number).set_range(0, before)
            path.updWrapSet().get(number).set_range(1, before + 1)
        model.addForce(force)
    names = ["root_pitch", "root_x", "root_z", *(link["name"] for link in problem["links"][1:])]
    for name in names:
        motor = opensim.CoordinateActuator(name)
        motor.setName(f"motor_{name}")
        motor.setOptimalForce(1.0 if name in problem["muscle_joints"] else 1000.0)
        motor.setMinControl(-math.inf)
        motor.setMaxControl(math.inf)
        model.addForce(motor)
    model.finalizeConnections()
    return model, names


def write_motion(path, times, names, columns):
    """A .mot file."""
    lines = ["motion", "version=1", f"nRows={len(times)}", f"nColumns={len(names) + 1}", "inDegrees=no", "endheader"]
    lines.append("\t".join(["time", *names]))
    for instant, row in zip(times, columns, strict=True):
        lines.append("\t".join(f"{value:.15g}" for value in (instant, *row)))
    path.write_text("\n".join(lines) + "\n")


def read_table(path):
    """Header and rows of a .sto file."""
    lines = path.read_text().split("\n")
    start = next(index for index, line in enumerate(lines) if line.strip() == "endheader") + 1
    return lines[start].split(), np.array([line.split() for line in lines[start + 1 :] if line.strip()], float)


def tool(model_path, motion, folder, times, add):
    """Run one analysis over the motion; its processor time, s."""
    analyze = opensim.AnalyzeTool()
    analyze.setName("run")
    model = opensim.Model(str(model_path))
    analyze.setModel(model)
    analyze.setCoordinatesFileName(str(motion))
    analyze.setResultsDir(str(folder))
    analyze.setInitialTime(times[0])
    analyze.setFinalTime(times[-1])
    analyze.setReplaceForceSet(False)
    add(analyze.updAnalysisSet())
    setup = folder / "setup.xml"
    model.initSystem()
    analyze.setModelFilename(str(model_path))
    analyze.printToXML(str(setup))
    again = opensim.AnalyzeTool(str(setup))
    begin = time.process_time()
    again.run()
    return time.process_time() - begin


def main(problem):
    """Geometry, static optimisation, joint reactions."""
    model, names = build(problem)
    q, times = problem["position"], problem["times"]
    state = model.initSystem()
    coordinates = [model.getCoordinateSet().get(name) for name in names]
    muscles = [opensim.PathActuator.safeDownCast(model.getForceSet().get(m["name"])) for m in problem["muscles"]]
    lengths, arms = [], []
    for row in q[:: problem["every"]]:
        for coordinate, value in zip(coordinates, row, strict=True):
            coordinate.setValue(state, value, False)
        model.realizePosition(state)
        lengths.append([muscle.getLength(state) for muscle in muscles])
        arms.append(
            [
                [muscle.computeMomentArm(state, model.getCoordinateSet().get(name)) for muscle in muscles]
                for name in problem["muscle_joints"]
            ]
        )
    found = {"lengths": lengths, "moment_arms": arms}
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        model_path, motion = folder / "body.osim", folder / "motion.mot"
        model.printToXML(str(model_path))
        write_motion(motion, times, names, q)

        def optimise(analyses):
            analysis = opensim.StaticOptimization()
            analysis.setName("StaticOptimization")
            analysis.setActivationExponent(problem["exponent"])
            analysis.setUseMusclePhysiology(False)
            analysis.setStartTime(times[0])
            analysis.setEndTime(times[-1])
            analyses.cloneAndAppend(analysis)

        found["sharing_seconds"] = tool(model_path, motion, folder, times, optimise)
        header, table = read_table(folder / "run_StaticOptimization_activation.sto")
        found["times"] = table[:, 0].tolist()
        found["activation"] = table[:, [header.index(m["name"]) for m in problem["muscles"]]].tolist()
        found["reserve"] = table[:, [header.index(f"motor_{name}") for name in problem["muscle_joints"]]].tolist()
        forces = folder / "run_StaticOptimization_force.sto"

        def react(analyses):
            analysis = opensim.JointReaction()
            analysis.setName("JointReaction")
            analysis.setForcesFileName(str(forces))
            analysis.setStartTime(times[0])
            analysis.setEndTime(times[-1])
            wanted, on, frame = opensim.ArrayStr(), opensim.ArrayStr(), opensim.ArrayStr()
            for name in problem["muscle_joints"]:
                wanted.append(f"at_{name}")
                on.append("child")
                frame.append("ground")
            analysis.setJointNames(wanted)
            analysis.setOnBody(on)
            analysis.setInFrame(frame)
            analyses.cloneAndAppend(analysis)

        found["reaction_seconds"] = tool(model_path, motion, folder, times, react)
        header, table = read_table(folder / "run_JointReaction_ReactionLoads.sto")
        columns = [
            [header.index(f"at_{name}_on_body_{name}_in_ground_f{axis}") for axis in "xyz"]
            for name in problem["muscle_joints"]
        ]
        found["reaction_times"] = table[:, 0].tolist()
        found["joint_force"] = table[:, np.array(columns)].tolist()
        header, table = read_table(forces)
        found["muscle_force"] = table[:, [header.index(m["name"]) for m in problem["muscles"]]].tolist()
    return found


if __name__ == "__main__":
    opensim.Logger.setLevelString("Error")
    print(json.dumps(main(json.load(sys.stdin))))
