"""OpenSim's side, run as a script by its own Python: reads a problem as JSON, prints the result as JSON."""

import json
import sys
import time

import numpy as np
import opensim

AXES = {"X": (1, 0, 0), "Y": (0, 1, 0), "Z": (0, 0, 1)}


def vec(values):
    return opensim.Vec3(*(float(value) for value in values))


def body_of(name, link):
    i = np.array(link["inertia"])
    inertia = opensim.Inertia(i[0, 0], i[1, 1], i[2, 2], i[0, 1], i[0, 2], i[1, 2])
    return opensim.Body(name, float(link["mass"]), vec(link["center"]), inertia)


def ball(name, parent, offset, child, labels):
    """X-Y-Z angles, body fixed."""
    transform = opensim.SpatialTransform()
    for index, (axis, label) in enumerate(zip("XYZ", labels, strict=True)):
        part = transform.updTransformAxis(index)
        names = opensim.ArrayStr()
        names.append(label)
        part.setCoordinateNames(names)
        part.setAxis(vec(AXES[axis]))
        part.set_function(opensim.LinearFunction(1, 0))
    zero = vec((0, 0, 0))
    return opensim.CustomJoint(name, parent, vec(offset), zero, child, zero, zero, transform)


def tree(problem):
    """Model with a free base and ball joints; links of three revolutes each."""
    model = opensim.Model()
    model.setGravity(vec((0, 0, -problem["gravity"])))
    links, bodies = problem["links"], {}
    bodies[0] = body_of("root", links[0])
    model.addBody(bodies[0])
    zero = vec((0, 0, 0))
    labels = [f"base_{kind}{axis}" for kind in "rt" for axis in "xyz"]
    joint = opensim.FreeJoint(
        "base",
        model.getGround(),
        zero,
        zero,
        bodies[0],
        vec([-value for value in problem.get("station", (0, 0, 0))]),
        zero,
    )
    for index, label in enumerate(labels):
        joint.upd_coordinates(index).setName(label)
    model.addJoint(joint)
    for number in range(1, len(links), 3):
        first, last = links[number], links[number + 2]
        bodies[number + 2] = body_of(f"link{number}", last)
        model.addBody(bodies[number + 2])
        names = [links[number + k]["name"] for k in range(3)]
        model.addJoint(ball(f"joint{number}", bodies[first["parent"]], first["offset"], bodies[number + 2], names))
    return model, labels


def single(problem):
    model, labels = tree(problem)
    times, motions = problem["times"], np.array(problem["motions"])
    for k, label in enumerate(labels):
        column = k + 3 if k < 3 else k - 3  # ours: translations first
        spline = opensim.SimmSpline()
        for instant, value in zip(times, motions[:, column], strict=True):
            spline.addPoint(float(instant), float(value))
        coordinate = model.updCoordinateSet().get(label)
        coordinate.setPrescribedFunction(spline)
        coordinate.setDefaultIsPrescribed(True)
    joints = [link["name"] for link in problem["links"][1:]]
    for k, name in enumerate(joints):
        spring = opensim.SpringGeneralizedForce(name)
        spring.setName(f"spring_{name}")
        spring.setStiffness(problem["stiffness"][k])
        spring.setViscosity(problem["damping"][k])
        model.addForce(spring)
    state = model.initSystem()
    best, angles = 1e9, None
    for _ in range(3):
        state = model.initializeState()
        manager = opensim.Manager(model)
        manager.setIntegratorMethod(opensim.Manager.IntegratorMethod_RungeKuttaMerson)
        manager.setWriteToStorage(False)
        manager.setPerformAnalyses(False)
        manager.setIntegratorFixedStepSize(problem["step"])
        manager.initialize(state)
        begin = time.process_time()
        final = manager.integrate(problem["step"] * problem["steps"])
        best = min(best, time.process_time() - begin)
        angles = [model.getCoordinateSet().get(name).getValue(final) for name in joints]
    return {"seconds": best, "angles": angles}


def inverse(problem):
    model, labels = tree(problem)
    state = model.initSystem()
    order = labels + [link["name"] for link in problem["links"][1:]]
    coordinates = model.getCoordinateSet()
    solver = opensim.InverseDynamicsSolver(model)
    q, v, a = (np.array(problem[key]) for key in "qva")
    names = [coordinates.get(index).getName() for index in range(coordinates.getSize())]
    take = [order.index(name) for name in names]
    places, speeds = [], []
    for index in range(len(names)):  # where each coordinate stands in the state's Q and U
        coordinate = coordinates.get(index)
        before = state.getQ().to_numpy(), state.getU().to_numpy()
        coordinate.setValue(state, 0.5, False)
        coordinate.setSpeedValue(state, 0.5)
        places.append(int(np.argmax(np.abs(state.getQ().to_numpy() - before[0]))))
        speeds.append(int(np.argmax(np.abs(state.getU().to_numpy() - before[1]))))
        coordinate.setValue(state, 0.0, False)
        coordinate.setSpeedValue(state, 0.0)
    rows = [np.zeros((len(q), size)) for size in (state.getNQ(), state.getNU(), state.getNU())]
    for row, given, where in zip(rows, (q, v, a), (places, speeds, speeds), strict=True):
        row[:, where] = given[:, take]
    vectors = [[opensim.Vector.createFromMat(line) for line in row] for row in rows]
    out = []
    begin = time.process_time()
    for one, two, three in zip(*vectors, strict=True):
        state.setQ(one)
        state.setU(two)
        out.append(solver.solve(state, three))
    seconds = time.process_time() - begin
    forces = np.array([vector.to_numpy() for vector in out])
    result = np.empty_like(forces)
    result[:, take] = forces[:, speeds]
    return {"seconds": seconds, "forces": result.tolist()}


if __name__ == "__main__":
    opensim.Logger.setLevelString("Error")
    print(json.dumps({"single": single, "inverse": inverse}[sys.argv[1]](json.load(sys.stdin))))
