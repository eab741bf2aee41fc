// ------------------------------------------------------------ scenery: sea, sky, ship

const SUN = [0.30, -0.58, 0.76], FREEBOARD = 3.2, HALF_BEAM = 5, BOW_MARK = [.75, 1.05];  // m
const HORIZON = "vec3(.80, .88, .94)", ZENITH = "vec3(.40, .62, .84)";

function makeSky(THREE) {
  const material = new THREE.ShaderMaterial({
    side: THREE.BackSide, depthWrite: false,
    vertexShader: `varying vec3 ray;
      void main() { ray = position; gl_Position = projectionMatrix * modelViewMatrix * vec4(position, 1.); }`,
    fragmentShader: `varying vec3 ray;
      void main() { float up = normalize(ray).z;
        gl_FragColor = vec4(mix(${HORIZON}, ${ZENITH}, pow(clamp(up * 1.6, 0., 1.), .55)), 1.); }`,
  });
  const sky = new THREE.Mesh(new THREE.SphereGeometry(4000, 48, 24), material);
  sky.renderOrder = -1;
  return sky;
}

// Heights of the true waves: a cubic spline on a grid about the ship, mirrored beyond it (payload.py).
const TRUE_WAVES = `
  uniform sampler2D before, after;
  uniform float part, spacing, nodes, largest;
  float node(sampler2D map, vec2 at) {
    at = abs(at); at = (nodes - 1.) - abs((nodes - 1.) - at);
    return (texture2D(map, (at + .5) / nodes).r * 255. - 128.) / 127.;
  }
  vec3 swell(vec2 p) {
    float period = 2. * (nodes - 1.);
    vec2 g = p / spacing + .5 * (nodes - 1.), turned = mod(g, period), sides = vec2(1.);
    if (turned.x > nodes - 1.) { turned.x = period - turned.x; sides.x = -1.; }
    if (turned.y > nodes - 1.) { turned.y = period - turned.y; sides.y = -1.; }
    vec2 first = floor(turned), f = turned - first, h = 1. - f;
    vec4 wx = vec4(h.x * h.x * h.x, 4. - 6. * f.x * f.x + 3. * f.x * f.x * f.x, 4. - 6. * h.x * h.x + 3. * h.x * h.x * h.x, f.x * f.x * f.x) / 6.;
    vec4 wy = vec4(h.y * h.y * h.y, 4. - 6. * f.y * f.y + 3. * f.y * f.y * f.y, 4. - 6. * h.y * h.y + 3. * h.y * h.y * h.y, f.y * f.y * f.y) / 6.;
    vec4 dx = vec4(-h.x * h.x, 3. * f.x * f.x - 4. * f.x, 1. + 2. * f.x - 3. * f.x * f.x, f.x * f.x) / 2.;
    vec4 dy = vec4(-h.y * h.y, 3. * f.y * f.y - 4. * f.y, 1. + 2. * f.y - 3. * f.y * f.y, f.y * f.y) / 2.;
    vec3 found = vec3(0.);
    for (int r = 0; r < 4; r++) for (int c = 0; c < 4; c++) {
      vec2 at = first + vec2(float(c) - 1., float(r) - 1.);
      float value = largest * mix(node(before, at), node(after, at), part);
      found += value * vec3(wx[c] * wy[r], dx[c] * wy[r] / spacing * sides.x, wx[c] * dy[r] / spacing * sides.y);
    }
    return found;
  }`;

// No waves are known: a gentle swell, for looks only.
const GENTLE_WAVES = `
  vec3 swell(vec2 p) {
    return wave(p, vec2(.20, .98), 47., .42) + wave(p, vec2(-.42, .91), 29., .24) + wave(p, vec2(.65, .76), 17., .12);
  }`;

// A disc that is fine near the ship and coarse far away; its heights are made on the graphics card.
function makeSea(THREE, run) {
  const rings = 170, sectors = 220, vertices = [], faces = [];
  for (let r = 0; r <= rings; r++) for (let s = 0; s < sectors; s++) {
    const radius = 1.5 * (Math.exp(r / rings * Math.log(2400)) - 1), angle = s / sectors * 2 * Math.PI;
    vertices.push(radius * Math.cos(angle), radius * Math.sin(angle), 0);
  }
  for (let r = 0; r < rings; r++) for (let s = 0; s < sectors; s++) {
    const a = r * sectors + s, b = r * sectors + (s + 1) % sectors;
    faces.push(a, a + sectors, b + sectors, a, b + sectors, b);
  }
  const geometry = new THREE.BufferGeometry();
  geometry.setAttribute("position", new THREE.Float32BufferAttribute(vertices, 3));
  geometry.setIndex(faces);
  const ripples = `
    uniform float time;
    // height and slopes of a wave at p: direction, length (m), amplitude (m); speed by deep water
    vec3 wave(vec2 p, vec2 way, float size, float amplitude) {
      float k = 6.2832 / size, phase = k * dot(way, p) - sqrt(9.81 * k) * time + size;
      return amplitude * vec3(sin(phase), k * way * cos(phase));
    }`;
  const sheet = row => {
    const { nodes } = run.sea, data = run.heights.subarray(row * nodes * nodes, (row + 1) * nodes * nodes);
    const texture = new THREE.DataTexture(data, nodes, nodes, THREE.RedFormat, THREE.UnsignedByteType);
    texture.minFilter = texture.magFilter = THREE.NearestFilter;
    return texture;
  };
  const uniforms = { time: { value: 0 }, station: { value: new THREE.Vector2() }, sun: { value: new THREE.Vector3(...SUN).normalize() } };
  if (run.sea) for (const [name, value] of Object.entries({
    before: sheet(0), after: sheet(0), part: 0, spacing: run.sea.spacing, nodes: run.sea.nodes, largest: run.sea.largest,
  })) uniforms[name] = { value };
  const material = new THREE.ShaderMaterial({
    uniforms,
    vertexShader: `${ripples}${run.sea ? TRUE_WAVES : GENTLE_WAVES}
      varying vec2 place, slopes; varying vec3 world; varying mat3 turn;
      void main() {
        place = position.xy;
        vec3 found = swell(place) * exp(-length(place) / 400.);
        slopes = found.yz;
        vec4 moved = modelMatrix * vec4(place, found.x, 1.);
        world = moved.xyz; turn = mat3(modelMatrix);
        gl_Position = projectionMatrix * viewMatrix * moved;
      }`,
    fragmentShader: `${ripples}
      uniform vec3 sun;
      uniform vec2 station;
      varying vec2 place, slopes; varying vec3 world; varying mat3 turn;
      void main() {
        float far = distance(world, cameraPosition);
        vec2 bent = place + 1.7 * vec2(sin(place.y * .13), cos(place.x * .11));
        vec3 ripple = wave(bent, vec2(.5, .87), 6.3, .055) + wave(bent, vec2(-.7, .71), 3.9, .034)
                    + wave(bent, vec2(.97, .24), 2.3, .015) + wave(bent, vec2(-.26, .97), 1.3, .007);
        vec2 slope = slopes * exp(-far / 500.) + ripple.yz * exp(-far / 60.);
        vec3 normal = normalize(turn * vec3(-slope, 1.)), eye = normalize(cameraPosition - world);
        float facing = max(dot(normal, eye), 0.), mirror = .03 + .97 * pow(1. - facing, 5.);
        vec3 light = turn * sun;
        float day = .62 + .38 * max(dot(normal, light), 0.);
        vec3 water = mix(vec3(.03, .22, .38), vec3(.10, .42, .58), smoothstep(.0, 1., facing)) * day * 1.18;
        vec3 color = mix(water, vec3(.66, .80, .91), mirror * .75);
        vec2 own = place - station;  // foam where the ship's side meets the water
        float beam = own.x < 9. ? 4.7 : 4.7 * sqrt(max(0., 1. - pow((own.x - 9.) / 9.2, 1.7)));
        float off = max(abs(own.y) - beam, max(-12.6 - own.x, own.x - 18.));
        float broken = .5 + .5 * sin(own.x * 2.1 + time * 1.3 + 3. * ripple.x * 20.) * sin(own.y * 2.7 - time);
        color = mix(color, vec3(.93, .97, .98), (.2 + .4 * broken) * smoothstep(1.1, .05, off));
        color += vec3(1., .96, .86) * .45 * pow(max(dot(reflect(-light, normal), eye), 0.), 90.);
        gl_FragColor = vec4(mix(color, ${HORIZON}, smoothstep(120., 2600., far) * .85), 1.);
      }`,
  });
  const sea = new THREE.Mesh(geometry, material), sheets = new Map();
  sea.position.z = run.sea ? Math.min(-1.5, run.sea.level) : -FREEBOARD;
  const sheetOf = row => { if (!sheets.has(row)) sheets.set(row, sheet(row)); return sheets.get(row); };
  sea.userData.show = (t, [x, y]) => {
    uniforms.time.value = t;
    uniforms.station.value.set(x, y);
    if (!run.sea) return;
    const at = Math.min(run.sea.count - 1, Math.max(0, (t - run.start) / (run.end - run.start || 1) * (run.sea.count - 1)));
    const row = Math.min(run.sea.count - 2, Math.floor(at));
    for (const [key, texture] of sheets) if (key !== row && key !== row + 1) { texture.dispose(); sheets.delete(key); }
    uniforms.before.value = sheetOf(row);
    uniforms.after.value = sheetOf(row + 1);
    uniforms.part.value = at - row;
  };
  return sea;
}

// Steel plates of 1 m with a little grain; the grain comes from a fixed sequence so that pictures repeat.
function deckTexture(THREE) {
  const canvas = document.createElement("canvas"), size = canvas.width = canvas.height = 512;
  const pen = canvas.getContext("2d"), image = pen.createImageData(size, size);
  let seed = 7;
  for (let k = 0; k < image.data.length; k += 4) {
    seed = (seed * 1664525 + 1013904223) >>> 0;
    const grain = (seed >>> 24) / 255 * 22 - 11;
    image.data.set([134 + grain, 146 + grain, 151 + grain, 255], k);
  }
  pen.putImageData(image, 0, 0);
  pen.strokeStyle = "rgba(70, 84, 92, .55)";
  pen.lineWidth = 5;
  for (const k of [0, 256, 512]) { pen.beginPath(); pen.moveTo(k, 0); pen.lineTo(k, 512); pen.moveTo(0, k); pen.lineTo(512, k); pen.stroke(); }
  const texture = new THREE.CanvasTexture(canvas);
  texture.wrapS = texture.wrapT = THREE.RepeatWrapping;
  texture.repeat.set(.5, .5);  // the deck's texture coordinates are metres
  texture.anisotropy = 8;
  return texture;
}

// An arrow towards the bow, painted on the deck.
function bowTexture(THREE) {
  const canvas = document.createElement("canvas"), pen = canvas.getContext("2d");
  canvas.width = 320; canvas.height = 512;
  pen.fillStyle = "#ffb20f";
  pen.fill(new Path2D("M160 506 L40 366 L112 366 L112 216 L208 216 L208 366 L280 366 Z"));
  pen.font = "700 118px system-ui, 'DejaVu Sans', sans-serif";
  pen.textAlign = "center";
  pen.fillText("BOW", 160, 170);
  return new THREE.CanvasTexture(canvas);
}

function makeShip(THREE, waterline) {
  const ship = new THREE.Group(), outline = new THREE.Shape();
  outline.moveTo(-13, -HALF_BEAM);
  outline.lineTo(9, -HALF_BEAM);
  outline.bezierCurveTo(14, -HALF_BEAM, 18, -2.5, 21, 0);
  outline.bezierCurveTo(18, 2.5, 14, HALF_BEAM, 9, HALF_BEAM);
  outline.lineTo(-13, HALF_BEAM);
  outline.closePath();
  const add = (geometry, material, z = 0) => {
    const mesh = new THREE.Mesh(geometry, material);
    mesh.position.z = z;
    mesh.castShadow = mesh.receiveShadow = true;
    ship.add(mesh);
    return mesh;
  };
  const paint = (color, shininess = 20) => new THREE.MeshPhongMaterial({ color, shininess });

  add(new THREE.ShapeGeometry(outline, 24), new THREE.MeshPhongMaterial({ map: deckTexture(THREE), shininess: 8 })).castShadow = false;
  const extrude = depth => new THREE.ExtrudeGeometry(outline, { depth, bevelEnabled: false, curveSegments: 24 });
  // Below the deck the bow rakes back and the sides lean in; the sheer strake is white, what is under water red.
  const flared = (depth, bottom) => {
    const geometry = extrude(depth), place = geometry.attributes.position;
    for (let k = 0; k < place.count; k++) {
      const below = -(place.getZ(k) + bottom), x = place.getX(k);
      place.setX(k, x > 9 ? 9 + (x - 9) * Math.exp(-.09 * below) : x + .18 * below * (x < -12.9));
      place.setY(k, place.getY(k) * Math.exp(-.02 * below));
    }
    geometry.computeVertexNormals();
    return geometry;
  };
  const strake = (top, end, color, shininess) => add(flared(end - top, -end), paint(color, shininess), -end);
  strake(.01, .26, 0xf2f4f5);
  strake(.26, waterline - .45, 0x2f5274, 40);
  strake(waterline - .45, waterline - .28, 0xf2f4f5);
  strake(waterline - .28, waterline + 9, 0x8e3b32);
  for (const y of [-1.6, 1.6]) add(new THREE.PlaneGeometry(20, .09), paint(0xffb20f), .004).position.setY(y).setX(-2);

  const bow = add(new THREE.PlaneGeometry(.5, .8), new THREE.MeshPhongMaterial({ map: bowTexture(THREE), transparent: true, shininess: 8 }), .005);
  bow.position.set(...BOW_MARK, bow.position.z);
  bow.rotation.z = Math.PI / 2;  // read by somebody who looks aft, as the first camera does
  bow.castShadow = false;

  const edge = outline.getSpacedPoints(46).map(point => point.multiplyScalar(.985));
  const white = paint(0xfafafa, 60);
  const posts = new THREE.InstancedMesh(new THREE.CylinderGeometry(.022, .022, 1.1, 10), white, edge.length);
  edge.forEach((point, k) => posts.setMatrixAt(k, new THREE.Matrix4().makeRotationX(Math.PI / 2).setPosition(point.x, point.y, .55)));
  posts.frustumCulled = false;
  ship.add(posts);
  for (const [height, radius] of [[1.1, .024], [.74, .014], [.38, .014]]) {
    const path = new THREE.CurvePath();
    edge.forEach((point, k) => {
      const next = edge[(k + 1) % edge.length];
      if (point.distanceTo(next) > 1e-6) path.add(new THREE.LineCurve3(new THREE.Vector3(point.x, point.y, height), new THREE.Vector3(next.x, next.y, height)));
    });
    add(new THREE.TubeGeometry(path, 360, radius, 8), white).castShadow = false;  // outside the shadow map, which is kept fine
  }
  return ship;
}

// ------------------------------------------------------------ scenery: a laboratory

// A pale floor with lines every metre and finer ones every 10 cm, fading into the walls; lines come from the shader so
// that they stay sharp. The floor takes shadows through a second, clear layer.
function makeLab(THREE) {
  const room = new THREE.Group();
  const floor = new THREE.Mesh(new THREE.CircleGeometry(40, 96), new THREE.ShaderMaterial({
    vertexShader: `varying vec2 place; varying vec3 world;
      void main() { vec4 moved = modelMatrix * vec4(position, 1.); place = position.xy; world = moved.xyz; gl_Position = projectionMatrix * viewMatrix * moved; }`,
    fragmentShader: `varying vec2 place; varying vec3 world;
      float lines(vec2 p, float width) {
        vec2 near = abs(fract(p - .5) - .5), soft = fwidth(p);
        vec2 on = 1. - smoothstep(vec2(width), width + soft * 1.2, near);
        return max(on.x, on.y) * clamp(.5 / max(soft.x, soft.y), 0., 1.);
      }
      void main() {
        float far = length(place), near = distance(world, cameraPosition);
        vec3 color = vec3(.855, .868, .872);
        color = mix(color, vec3(.79, .81, .82), lines(place * 10., .012) * exp(-near / 3.));
        color = mix(color, vec3(.73, .755, .77), lines(place, .004));
        gl_FragColor = vec4(mix(color, vec3(.91, .925, .935), smoothstep(3., 22., far)), 1.);
      }`,
    extensions: { derivatives: true },
  }));
  const shade = new THREE.Mesh(new THREE.CircleGeometry(6, 48), new THREE.ShadowMaterial({ opacity: .30 }));
  shade.receiveShadow = true;
  shade.position.z = .001;
  const air = new THREE.Mesh(new THREE.SphereGeometry(60, 32, 16), new THREE.ShaderMaterial({
    side: THREE.BackSide, depthWrite: false,
    vertexShader: "varying vec3 ray; void main() { ray = position; gl_Position = projectionMatrix * modelViewMatrix * vec4(position, 1.); }",
    fragmentShader: `varying vec3 ray;
      void main() { gl_FragColor = vec4(mix(vec3(.91, .925, .935), vec3(.74, .80, .85), smoothstep(0., .75, normalize(ray).z)), 1.); }`,
  }));
  air.renderOrder = -1;
  room.add(floor, shade, air);
  room.userData.shade = shade;
  return room;
}
