// ------------------------------------------------------------ the 3D scene

// Eye and target in metres, ship axes (X bow, Y port, Z up), for a person whose centre of mass is 1 m high.
const VIEWS = {
  deck: { name: "Deck", lab: "Close", eye: [3.2, -2.0, 1.85], target: [0, 0, .84], labEye: [3.25, -2.2, 1.9], labTarget: [.14, 0, .72] },
  earth: { name: "Earth", lab: "Room", eye: [28, -32, 8.5], target: [6, 0, -1.4], labEye: [4.6, -5.6, 2.9], labTarget: [0, 0, .7], world: true },
  frontal: { name: "Frontal", eye: [4.3, 0, 1.25], target: [0, 0, .92] },
  sagittal: { name: "Sagittal", eye: [0, -4.3, 1.25], target: [0, 0, .92] },
  feet: { name: "Feet", eye: [1.22, -.58, .88], target: [.05, 0, .12] },
};
const SKIN = 3.5;  // is drawn after marks on the ground (1 to 3), before what is seen through the body (4 and more)
const TRAVELS = 2.5, LIFTS = .05;  // m; a body that gets farther, or higher than it stands, is followed by the camera

// Places of all joints from root pose and joint values: what Pinocchio's forward kinematics does.
function makeKinematics(THREE, run) {
  const frames = {};
  const frame = joint => frames[joint] ||= { place: new THREE.Vector3(), turn: new THREE.Quaternion() };
  frame(0); frame(1);
  const bones = run.skeleton.map(bone => ({
    ...bone, place: new THREE.Vector3(...bone.place.slice(0, 3)), turn: new THREE.Quaternion(...bone.place.slice(3)), axis: new THREE.Vector3(...bone.axis),
  }));
  const next = new THREE.Quaternion(), about = new THREE.Quaternion();
  return (joints, root, at) => {
    const values = blend(joints, run.width.joints, at), base = frame(1);
    if (root) {
      base.place.fromArray(blend(root, 7, at));
      base.turn.fromArray(root, 7 * at.row + 3).slerp(next.fromArray(root, 7 * at.next + 3), at.part);
    }
    for (const bone of bones) {
      const parent = frame(bone.parent), own = frame(bone.joint), value = bone.column < 0 ? 0 : values[bone.column];
      own.place.copy(bone.place);
      own.turn.copy(bone.turn);
      if (bone.turns) own.turn.multiply(about.setFromAxisAngle(bone.axis, value));
      else own.place.add(bone.axis.clone().multiplyScalar(value).applyQuaternion(bone.turn));
      own.place.applyQuaternion(parent.turn).add(parent.place);
      own.turn.premultiply(parent.turn);
    }
    return { frames, known: finite(values) && finite(base.place.toArray()) };
  };
}

function makeScene(run) {
  const THREE = MeshCat.THREE, stage = $("stage"), viewer = new MeshCat.Viewer(stage), sea = run.scene === "sea" ? makeSea(THREE, run) : null;
  viewer.gui.domElement.remove();
  for (const name of ["Lights", "Grid", "Axes"]) viewer.scene_tree.find([name]).object.visible = false;
  for (const command of run.commands) viewer.handle_command_bytearray(bytes(command));

  const ship = viewer.scene_tree.find(["ship"]).object, earth = new THREE.Group(), marks = makeMarks(THREE, run);
  const drawn = run.drawn.map(joint => ({ joint, object: viewer.scene_tree.find(["ship", `joint${joint}`]).object }));
  const meshes = ({ object }) => { const found = []; object.traverse(item => { if (item.isMesh) found.push(item); }); return found; };
  const paintings = drawn.flatMap(meshes);
  const ghosts = run.ghost ? drawn.map(({ joint, object }) => ({ joint, object: object.clone() })) : [];
  for (const { object } of ghosts) {
    object.traverse(item => {
      if (!item.isMesh) return;
      item.material = new THREE.MeshPhongMaterial({ color: COLORS.ghost, transparent: true, opacity: .34, depthWrite: false, polygonOffset: true, polygonOffsetFactor: 3, polygonOffsetUnits: 12 });
      item.castShadow = item.receiveShadow = false;
    });
    marks.layers.ghost.group.add(object);
  }
  if (run.ghost) ship.add(marks.layers.ghost.group);
  // Of skin over muscles only what is in front shows: its depth is drawn first, after all muscles.
  for (const item of drawn.filter(({ joint }) => run.skin.includes(joint)).flatMap(meshes)) {
    const depth = new THREE.Mesh(item.geometry, new THREE.MeshBasicMaterial({ colorWrite: false, transparent: true, polygonOffset: true, polygonOffsetFactor: 1, polygonOffsetUnits: 1 }));
    depth.renderOrder = SKIN;
    item.add(depth);
    item.renderOrder = SKIN + .1;
    Object.assign(item.material, { transparent: true, opacity: .30, depthWrite: false });
  }
  let room = null;
  if (sea) {
    earth.add(sea, makeSky(THREE));
    const hull = makeShip(THREE, Math.max(1.2, -sea.position.z));
    hull.rotation.z = -run.facing;  // axes are the person's, who may look another way than the bow
    ship.add(hull, marks.group);
  } else {
    room = makeLab(THREE);
    ship.add(room, marks.group);
  }
  const light = sea ? SUN : [.45, -.42, 1.1];
  const sun = new THREE.DirectionalLight(sea ? 0xfff4e2 : 0xffffff, sea ? .85 : .62), reach = Math.max(1.6, 3.2 * Math.min(1.2, run.height));
  sun.castShadow = true;
  Object.assign(sun.shadow.camera, { left: -reach, right: reach, top: reach, bottom: -reach, near: 1, far: 24 });
  sun.shadow.mapSize.set(2048, 2048);
  sun.shadow.normalBias = .012;
  sun.shadow.radius = 3;
  const dome = new THREE.HemisphereLight(0xdcebf7, sea ? 0x8a9298 : 0xb9b4ac, sea ? .62 : .72);
  dome.position.set(0, 0, 1);
  viewer.scene.add(earth, sun, sun.target, dome);

  const camera = viewer.camera, size = Math.min(2, Math.max(.4, run.height));
  Object.assign(camera, { fov: 38, near: .05, far: 9000 });
  viewer.controls.maxDistance = 400;
  // The picture's middle is the middle of what the panel leaves free.
  const plain = viewer.set_3d_pane_size.bind(viewer);
  viewer.set_3d_pane_size = () => {
    const width = stage.clientWidth, height = stage.clientHeight;
    plain(width, height);
    const beside = getComputedStyle($("panel")).getPropertyValue("--beside").trim() === "1" ? $("panel").offsetWidth + 14 : 0;
    camera.setViewOffset(width, height, -beside / 2, 0, width, height);
    camera.fov = width - beside < .62 * height ? 52 : 38;
  };
  window.addEventListener("resize", viewer.set_3d_pane_size);
  viewer.set_3d_pane_size();

  let view = VIEWS.deck, center = new THREE.Vector3();
  const path = run.root ? Array.from({ length: run.time.length }, (_, row) => [run.root[7 * row], run.root[7 * row + 1]]).filter(finite) : [];
  const spread = k => { const values = path.map(point => point[k]); return [Math.min(...values), Math.max(...values)]; };
  const rise = path.length ? Math.max(...Array.from({ length: run.time.length }, (_, row) => run.root[7 * row + 2]).filter(Number.isFinite)) - run.height : 0;
  const travels = path.length && Math.max(...[0, 1].map(k => spread(k)[1] - spread(k)[0])) > TRAVELS;
  const middle = path.length ? [0, 1].map(k => (spread(k)[0] + spread(k)[1]) / 2) : [0, 0];
  const deckTurn = new THREE.Quaternion(), next = new THREE.Quaternion();
  const pose = makeKinematics(THREE, run), poseGhost = run.ghost ? makeKinematics(THREE, run) : null;
  const toCamera = ([x, y, z]) => new THREE.Vector3(x, z, -y);  // meshcat's camera lives in a Y-up frame
  let places = {};
  const onJoint = (joint, point) => {
    const { place, turn } = places[joint] || { place: new THREE.Vector3(), turn: new THREE.Quaternion() };
    return new THREE.Vector3(...point).applyQuaternion(turn).add(place);
  };
  const put = (items, frames, known) => items.forEach(({ joint, object }) => {
    object.visible = known;
    if (!known) return;
    object.position.copy(frames[joint].place);
    object.quaternion.copy(frames[joint].turn);
  });
  const follow = to => {
    const by = toCamera(to.clone().sub(center).toArray());
    camera.position.add(by);
    viewer.controls.target.add(by);
    center.copy(to);
  };
  return {
    layers: { body: { color: "#1f4a73", text: "body", group: { set visible(on) { for (const item of paintings) item.visible = on; } } }, ...marks.layers },
    look(name) {
      view = VIEWS[name];
      const eye = !sea && view.labEye || view.eye, target = !sea && view.labTarget || view.target, scale = sea && view.world ? 1 : size;
      camera.position.copy(toCamera(eye)).multiplyScalar(scale).add(toCamera(center.toArray()));
      viewer.controls.target.copy(toCamera(target)).multiplyScalar(scale).add(toCamera(center.toArray()));
      viewer.controls.update();
    },
    show(t) {
      const at = locate(run, t), place = blend(run.deck, 7, at);
      deckTurn.fromArray(run.deck, 7 * at.row + 3).slerp(next.fromArray(run.deck, 7 * at.next + 3), at.part);
      if (!finite(place) || !finite(deckTurn.toArray())) { place.fill(0); deckTurn.identity(); }
      const still = view.world ? earth : ship, moving = view.world ? ship : earth;
      still.position.set(0, 0, 0);
      still.quaternion.identity();
      moving.position.set(place[0], place[1], place[2]);
      moving.quaternion.copy(deckTurn);
      if (!view.world) {  // the earth moves the other way round the ship
        moving.quaternion.invert();
        moving.position.negate().applyQuaternion(moving.quaternion);
      }
      const found = pose(run.joints, run.root, at);
      places = found.frames;
      put(drawn, places, found.known);
      if (poseGhost) { const wanted = poseGhost(run.ghost_joints, run.ghost_root || run.root, at); put(ghosts, wanted.frames, wanted.known); }
      if (path.length && found.known) {
        const { x, y, z } = places[1].place, up = rise > LIFTS ? Math.max(0, z - run.height) : 0;
        follow(travels ? new THREE.Vector3(x, y, up) : new THREE.Vector3(...middle, up));
      }
      if (room) room.userData.shade.position.set(center.x, center.y, .001);
      if (sea) sea.userData.show(t, place);
      sun.target.position.set(center.x, center.y, .8 * size).applyQuaternion(ship.quaternion).add(ship.position);
      sun.position.set(...light).normalize().applyQuaternion(earth.quaternion).multiplyScalar(10).add(sun.target.position);
      marks.update({ t, at, deckTurn, onJoint });
      viewer.set_dirty();
      return found.known;
    },
    // Where a joint is relative to the deck, by its name, as drawn; the meshes' own position where it has a shape.
    place(name) {
      const joint = run.names.indexOf(name), shown = drawn.find(item => item.joint === joint);
      return (shown ? shown.object.position : onJoint(joint, [0, 0, 0])).toArray();
    },
    camera: () => camera.position.toArray(),
    render: () => viewer.render(),
    picture: () => viewer.capture_image(),
  };
}

function hasWebGL() {
  const canvas = document.createElement("canvas");
  return Boolean(canvas.getContext("webgl2"));
}
