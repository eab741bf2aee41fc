// ------------------------------------------------------------ measures drawn in the scene, one layer for each kind

const COLORS = {
  com: "#f5a300", cop: "#d81b72", force: "#009e73", inside: "#2a8fd6", outside: "#e4002b", load: "#d04a00",
  ligament: "#8e44ad", rod: "#5b6770", cable: "#30363c", line: "#5b6770", ghost: "#6a7f93",
};
const TRAIL = 64, TRAIL_SECONDS = 5, METRES_PER_WEIGHT = 0.75, LOAD_METRES_PER_WEIGHT = 0.06;
const ACTIVATION = ["#23308f", "#7a2b9c", "#c93f78", "#f28a3c", "#ffe14d"];  // dark to bright, told apart by everybody

// A colour between the stops; value from 0 to 1.
function activationColor(THREE, value) {
  const at = Math.min(.9999, Math.max(0, value)) * (ACTIVATION.length - 1), k = Math.floor(at);
  return new THREE.Color(ACTIVATION[k]).lerp(new THREE.Color(ACTIVATION[k + 1]), at - k);
}

function makeMarks(THREE, run) {
  const group = new THREE.Group(), layers = {}, updates = [];
  const layer = (name, color, text) => {
    if (!layers[name]) { layers[name] = { group: new THREE.Group(), color, text }; group.add(layers[name].group); }
    return layers[name].group;
  };
  const add = (into, geometry, color, options = {}, order = 0) => {
    const mesh = new THREE.Mesh(geometry, new THREE.MeshBasicMaterial({ color, ...options }));
    mesh.renderOrder = order;
    into.add(mesh);
    return mesh;
  };
  const up = new THREE.Vector3(0, 0, 1), through = { depthTest: false, transparent: true };  // seen through the body
  const upright = geometry => geometry.rotateX(Math.PI / 2);  // three.js cylinders lie along Y
  const rod = (radius, sides = 14) => upright(new THREE.CylinderGeometry(radius, radius, 1, sides).translate(0, .5, 0));
  const arrow = (into, color, radius, order = 4) => {
    const shaft = add(into, rod(radius), color, through, order);
    const tip = add(into, upright(new THREE.ConeGeometry(2.7 * radius, 7.5 * radius, 24).translate(0, 3.75 * radius, 0)), color, through, order);
    return (from, vector, scale) => {
      const length = vector.length() * scale, shown = Number.isFinite(length) && finite(from.toArray()) && length > .01;
      shaft.visible = tip.visible = shown;
      if (!shown) return;
      const way = vector.clone().normalize();
      for (const part of [shaft, tip]) { part.position.copy(from); part.quaternion.setFromUnitVectors(up, way); }
      shaft.scale.z = length;
      tip.position.addScaledVector(way, length);
    };
  };
  const stretch = (mesh, from, to) => {
    const way = to.clone().sub(from), length = way.length();
    mesh.position.copy(from);
    mesh.quaternion.setFromUnitVectors(up, way.normalize());
    mesh.scale.z = Math.max(length, 1e-6);
  };
  const has = name => run[name] && run[name].some(Number.isFinite);
  const makeTrail = (into, place) => {
    const dots = Array.from({ length: TRAIL }, (_, k) =>
      add(into, new THREE.CircleGeometry(.008, 16), COLORS.cop, { transparent: true, opacity: .75 * (1 - k / TRAIL), depthWrite: false }, 3));
    updates.push(({ t }) => dots.forEach((dot, k) => {
      const then = t - (k + 1) * Math.min(TRAIL_SECONDS, .5 * (run.end - run.start)) / TRAIL, at = place(locate(run, then));
      dot.visible = then >= run.start && finite(at);
      if (dot.visible) dot.position.set(at[0], at[1], (at[2] || 0) + .008);
    }));
  };

  if (run.outline.length) {
    const into = layer("stance", COLORS.inside, "stance; red when the COP is outside");
    const points = run.outline.map(([x, y]) => new THREE.Vector2(x, y));
    const area = add(into, new THREE.ShapeGeometry(new THREE.Shape(points)), COLORS.inside, { transparent: true, opacity: .40, depthWrite: false }, 1);
    area.position.z = .006;
    const rim = new THREE.Group();
    points.forEach((point, k) => {
      const next = points[(k + 1) % points.length], side = add(rim, rod(.004, 6), COLORS.inside, {}, 2);
      stretch(side, new THREE.Vector3(point.x, point.y, .007), new THREE.Vector3(next.x, next.y, .007));
    });
    into.add(rim);
    updates.push(({ at }) => {
      const color = blend(run.margin, 1, at)[0] < 0 ? COLORS.outside : COLORS.inside;
      for (const part of [area, ...rim.children]) part.material.color.set(color);
      area.material.opacity = color === COLORS.outside ? .6 : .40;
    });
  }
  if (has("com")) {
    const into = layer("com", COLORS.com, "centre of mass, true plumb line");
    const ball = add(into, new THREE.SphereGeometry(.036 * Math.min(1, .3 + .7 * run.height), 32, 20), COLORS.com, through, 6);
    const plumb = add(into, rod(.006, 10), COLORS.com, through, 5);
    updates.push(({ at, deckTurn }) => {
      const com = new THREE.Vector3(...blend(run.com, 3, at)), down = new THREE.Vector3(0, 0, -1).applyQuaternion(deckTurn.clone().invert());
      ball.visible = plumb.visible = finite(com.toArray());
      if (!ball.visible) return;
      ball.position.copy(com);
      plumb.position.copy(com);
      plumb.quaternion.setFromUnitVectors(up, down);  // true vertical, seen from the deck
      plumb.scale.z = Math.max(1e-6, -com.z / down.z);
    });
  }
  if (has("cop")) {
    const into = layer("cop", COLORS.cop, "centre of pressure, last 5 s");
    const spot = add(into, new THREE.CircleGeometry(.022, 32), COLORS.cop, through, 4.5);
    updates.push(({ at }) => {
      const place = blend(run.cop, 2, at);
      spot.visible = finite(place);
      if (spot.visible) spot.position.set(place[0], place[1], .010);
    });
    makeTrail(into, at => blend(run.cop, 2, at));
    if (run.scene === "lab" && run.outline.length) updates.push(makeChart(THREE, run, layer("chart", "#8a1550", "stabilogram on the floor")));
  }
  if (has("force")) {  // at the centre of pressure, or at the root of a body that is joined to the ground
    const set = arrow(layer("force", COLORS.force, `force of the ground on the ${run.feet ? "person" : "body"}`), COLORS.force, .014);
    updates.push(({ at }) => {
      const [x, y] = run.feet ? blend(run.cop, 2, at) : [0, 0];
      set(new THREE.Vector3(x, y, .008), new THREE.Vector3(...blend(run.force, 3, at)), METRES_PER_WEIGHT * Math.min(1, run.height));
    });
  }
  if (run.contacts.length && run.contact_force) {
    const count = run.contacts.length, into = layer("force", COLORS.force, "force of the ground on each foot");
    const under = layer("cop", COLORS.cop, "centre of pressure of each foot");
    run.contacts.forEach((_, k) => {
      const set = arrow(into, COLORS.force, .014), pick = (values, at) => blend(values, 3 * count, at).slice(3 * k, 3 * k + 3);
      const spot = add(under, new THREE.CircleGeometry(.020, 32), COLORS.cop, through, 4.5);
      updates.push(({ at }) => {
        const point = pick(run.contact_point, at), force = pick(run.contact_force, at);
        spot.visible = finite(point) && force[2] > .02;
        if (spot.visible) spot.position.set(point[0], point[1], point[2] + .012);
        set(new THREE.Vector3(...point), new THREE.Vector3(...force), METRES_PER_WEIGHT);
      });
      makeTrail(under, at => pick(run.contact_point, at));
    });
  }
  if (run.muscles.length) {
    const into = layer("muscles", ACTIVATION[3], "muscles by activation, 0 to 1"), points = run.width.muscle_path / 3 / run.muscles.length;
    const strands = run.muscles.map(() => Array.from({ length: points - 1 }, () => {
      const mesh = new THREE.Mesh(rod(1, 10), new THREE.MeshPhongMaterial({ shininess: 50 }));
      into.add(mesh);
      return mesh;
    }));
    updates.push(({ at }) => {
      const path = blend(run.muscle_path, run.width.muscle_path, at), active = blend(run.muscle_activation, run.muscles.length, at);
      strands.forEach((parts, m) => {
        const color = activationColor(THREE, active[m]);
        parts.forEach((part, p) => {
          const from = path.slice(3 * (m * points + p), 3 * (m * points + p) + 3), to = path.slice(3 * (m * points + p + 1), 3 * (m * points + p + 1) + 3);
          part.visible = finite(from) && finite(to);
          if (!part.visible) return;
          stretch(part, new THREE.Vector3(...from), new THREE.Vector3(...to));
          part.scale.x = part.scale.y = .008 + .010 * Math.min(1, Math.max(0, active[m]));
          part.material.color.copy(color);
          part.material.emissive.copy(color).multiplyScalar(.35);
        });
      });
    });
  }
  run.elements.forEach((element, k) => {
    const color = COLORS[element.type] || COLORS.line, into = layer(element.type, color, `${element.type}s; thin when slack`);
    const mesh = new THREE.Mesh(rod(1, 12), new THREE.MeshPhongMaterial({ color, shininess: 40, transparent: true }));
    mesh.castShadow = true;
    into.add(mesh);
    const balls = element.ends.map(() => add(into, new THREE.SphereGeometry(.011, 16, 12), color));
    updates.push(({ at, onJoint }) => {
      const [from, to] = element.ends.map(end => onJoint(end.joint, end.point)), tension = blend(run.tension, run.width.tension, at)[k];
      stretch(mesh, from, to);
      balls[0].position.copy(from); balls[1].position.copy(to);
      mesh.scale.x = mesh.scale.y = Math.abs(tension) > 1e-9 ? .009 : .004;
      mesh.material.opacity = Math.abs(tension) > 1e-9 ? 1 : .6;
    });
  });
  run.loads.forEach((joint, k) => {
    if (!joint) return;
    const set = arrow(layer("load", COLORS.load, "load on each joint, muscles included"), COLORS.load, .010, 7);
    updates.push(({ at, onJoint }) =>
      set(onJoint(joint, [0, 0, 0]), new THREE.Vector3(...blend(run.load, run.width.load, at).slice(3 * k, 3 * k + 3)), LOAD_METRES_PER_WEIGHT));
  });
  if (run.ghost) layers.ghost = { group: new THREE.Group(), color: COLORS.ghost, text: "reference motion" };
  return { group, layers, update: moment => updates.forEach(update => update(moment)) };
}

// A sheet on the floor in front of the person on which the centre of pressure draws itself, enlarged: over time when it
// moves along one axis only, seen from above when along both.
function makeChart(THREE, run, into) {
  const count = run.time.length, column = k => Array.from({ length: count }, (_, row) => run.cop[2 * row + k]).filter(Number.isFinite);
  const size = values => { const [low, high] = [Math.min(...values), Math.max(...values)]; return { middle: (low + high) / 2, half: (high - low) / 2 }; };
  const [x, y] = [size(column(0)), size(column(1))], flat = y.half < 1e-5;
  const round = [1, 2, 5, 10, 20, 50, 100, 200, 500].map(mm => mm / 1000).find(mm => mm >= Math.max(x.half, flat ? 0 : y.half)) || 1;
  const deep = .46, wide = flat ? 1.7 : .46, center = .56, half = .86 * deep / 2, scale = half / round;
  const place = row => {
    const share = (run.time[row] - run.start) / (run.end - run.start || 1);
    return [center + scale * (run.cop[2 * row] - x.middle), flat ? (share - .5) * .88 * wide : scale * (run.cop[2 * row + 1] - y.middle)];
  };

  const canvas = document.createElement("canvas"), dots = 700;
  canvas.width = wide * dots; canvas.height = deep * dots;
  const pen = canvas.getContext("2d"), [w, h] = [canvas.width, canvas.height];
  pen.fillStyle = "#fcfdfd"; pen.fillRect(0, 0, w, h);
  pen.strokeStyle = "#9fb0bc"; pen.lineWidth = 3; pen.strokeRect(2, 2, w - 4, h - 4);
  pen.strokeStyle = "#d3dce2"; pen.lineWidth = 2;
  for (const part of [-1, -.5, 0, .5, 1]) { pen.beginPath(); pen.moveTo(.06 * w, h / 2 + part * .86 * h / 2); pen.lineTo(.94 * w, h / 2 + part * .86 * h / 2); pen.stroke(); }
  pen.fillStyle = "#33424e"; pen.font = "30px system-ui, 'DejaVu Sans', sans-serif";
  pen.fillText(flat ? `centre of pressure, ±${1000 * round} mm about its middle, ${(run.end - run.start).toFixed(0)} s` : `COP, ±${1000 * round} mm`, .06 * w, .07 * h + 24);
  const texture = new THREE.CanvasTexture(canvas);
  texture.anisotropy = 8;
  const sheet = new THREE.Mesh(new THREE.PlaneGeometry(wide, deep), new THREE.MeshBasicMaterial({ map: texture }));
  sheet.rotation.z = Math.PI / 2;  // read by somebody who faces the person
  sheet.position.set(center, 0, .003);
  into.add(sheet);

  const vertices = new Float32Array(6 * count), faces = [], thick = .007;
  for (let row = 0; row < count; row++) {
    const [px, py] = place(row), [ax, ay] = place(Math.max(0, row - 1)), [bx, by] = place(Math.min(count - 1, row + 1));
    const length = Math.hypot(bx - ax, by - ay) || 1, nx = -(by - ay) / length * thick / 2, ny = (bx - ax) / length * thick / 2;
    vertices.set([px + nx, py + ny, .006, px - nx, py - ny, .006], 6 * row);
    if (row && finite([px, py, ax, ay])) faces.push(2 * row - 2, 2 * row - 1, 2 * row, 2 * row, 2 * row - 1, 2 * row + 1);
    else if (row) faces.push(0, 0, 0, 0, 0, 0);
  }
  for (let k = 0; k < vertices.length; k++) if (!Number.isFinite(vertices[k])) vertices[k] = 0;
  const geometry = new THREE.BufferGeometry();
  geometry.setAttribute("position", new THREE.BufferAttribute(vertices, 3));
  geometry.setIndex(faces);
  const ink = new THREE.Mesh(geometry, new THREE.MeshBasicMaterial({ color: "#8a1550", side: THREE.DoubleSide }));
  const nib = new THREE.Mesh(new THREE.SphereGeometry(.012, 20, 12), new THREE.MeshBasicMaterial({ color: COLORS.cop }));
  into.add(ink, nib);
  return ({ at }) => {
    geometry.setDrawRange(0, 6 * at.row);
    const [px, py] = place(at.part < .5 ? at.row : at.next);
    nib.visible = finite([px, py]);
    if (nib.visible) nib.position.set(px, py, .012);
  };
}
