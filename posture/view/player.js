// ------------------------------------------------------------ player

const SPEEDS = [.1, .25, .5, 1, 2, 5, 10];
const KEYS = "space play · ← → 0.1 s · shift ← → 5 s · Home End · [ ] marked moments · + − speed · 1…5 camera · H help";

function make(tag, properties = {}) { return Object.assign(document.createElement(tag), properties); }

function showState(run, t, known) {
  const at = locate(run, t), say = (value, digits, unit) => Number.isFinite(value) ? value.toFixed(digits) + unit : "no data";
  const rows = [["time", say(t, 2, " s")], ...run.readouts.map(({ label, unit, digits }, k) => [label, say(blend(run[`readout${k}`], 1, at)[0], digits, unit)])];
  if (!known) rows.push(["body", "no data"]);
  $("state").replaceChildren(...rows.flatMap(([label, value]) => {
    const outside = label === "stance margin" && parseFloat(value) < 0;
    return [make("span", { textContent: label }), make("span", { textContent: value + (outside ? " ✕" : ""), className: outside ? "outside" : "" })];
  }));
}

// Each row switches its layer on and off.
function showLegend(scene, redraw) {
  for (const [name, { color, text, group }] of Object.entries(scene.layers)) {
    const patch = make("i"), row = make("button", { type: "button", value: name, title: "show or hide" });
    patch.style.background = name === "muscles" ? `linear-gradient(90deg, ${ACTIVATION.join(",")})` : color;
    if (name === "muscles") patch.style.width = "44px";
    row.append(patch, text);
    row.setAttribute("aria-pressed", "true");
    row.onclick = () => {
      const on = row.getAttribute("aria-pressed") !== "true";
      row.setAttribute("aria-pressed", String(on));
      group.visible = on;
      redraw();
    };
    $("marked").before(row);
  }
}

// What of the scenery is true and what is only looks.
function showScenery(run) {
  const note = $("legend").querySelector("p");
  note.hidden = run.scene !== "sea";
  note.textContent = run.sea ? "Waves are the run's own; the ship is a sketch." : "Sea and ship are a sketch; the deck's motion is the run's.";
}

function showEvents(run, seek, jump) {
  $("events").replaceChildren(...run.events.map(({ time, text }) => {
    const mark = make("button", { type: "button", title: `${time.toFixed(2)} s: ${text}`, tabIndex: -1 });
    mark.setAttribute("aria-label", mark.title);
    mark.style.left = `${100 * (time - run.start) / (run.end - run.start || 1)}%`;
    mark.onclick = () => seek(time);
    return mark;
  }));
  const kinds = [...new Set(run.events.map(event => event.text.split(":")[0]))], row = $("marked");
  row.hidden = !run.events.length;
  row.lastChild.textContent = kinds.length > 1 ? `${run.events.length} marked moments` : `${run.events.length} × ${kinds[0]}`;
  row.onclick = () => jump(1);
}

async function main() {
  if (!("DecompressionStream" in window)) {
    notice("This browser cannot unpack the data (no DecompressionStream); please open the page in a browser from 2023 or later.");
    return;
  }
  const live = document.body.dataset.live;
  const run = await unpackRun(bytes($("payload").textContent));
  let scene = null;
  if (hasWebGL()) scene = makeScene(run);
  else notice("This browser has no WebGL, so the 3D picture is missing; the curves work all the same.");

  const asked = new URLSearchParams(location.hash.slice(1));
  const framed = window.parent !== window, telling = run.events.find(event => event.text.startsWith("interruption"));
  // In a report the page opens, and is printed, at a moment that tells something.
  let t = framed ? telling?.time ?? (run.start + run.end) / 2 : run.start, playing = !asked.has("t") && !framed, before = null, speed = 1, following = Boolean(live);
  const show = () => {
    const known = scene ? scene.show(t) : true;
    plots.move(t);
    showState(run, t, known);
    $("slider").value = t;
    $("slider").setAttribute("aria-valuetext", `${t.toFixed(2)} s`);
    $("clock").textContent = `${t.toFixed(2)} / ${run.end.toFixed(run.end < 10 ? 2 : 1)} s`;
  };
  const seek = to => { following = false; t = Math.min(run.end, Math.max(run.start, Number(to) || 0)); show(); };
  const play = on => { playing = on; before = null; $("play").textContent = on ? "Pause" : "Play"; };
  const setSpeed = value => { speed = value; $("speed").value = String(value); };
  const look = name => {
    if (scene) scene.look(name);
    for (const button of $("views").children) button.setAttribute("aria-pressed", String(button.value === name));
    show();
  };
  const jump = way => {
    const times = run.events.map(event => event.time);
    const to = way > 0 ? times.find(time => time > t + .01) : times.reverse().find(time => time < t - .01);
    const around = way > 0 ? run.events[0] : run.events[run.events.length - 1];
    if (around) { play(false); seek(to ?? around.time); }
  };
  const plots = makePlots(run, seek);
  if (scene) { showLegend(scene, show); showScenery(run); }
  const setRange = () => {
    Object.assign($("slider"), { min: run.start, max: run.end });
    showEvents(run, time => { play(false); seek(time); }, jump);
  };
  setRange();
  if (run.every > 1 && run.every * run.step > .06) $("thin").textContent = `shows every ${run.every}th row (${(run.every * run.step).toFixed(2)} s)`;
  for (const name in VIEWS) {
    const button = make("button", { type: "button", value: name, textContent: run.scene === "lab" && VIEWS[name].lab || VIEWS[name].name });
    button.onclick = () => look(name);
    $("views").append(button);
  }
  for (const value of SPEEDS) $("speed").append(make("option", { value: String(value), textContent: `${value}×` }));
  setSpeed(run.end - run.start < 3 ? .25 : 1);
  $("keys").textContent = KEYS;
  $("help").onclick = () => { $("keys").hidden = !$("keys").hidden; };

  $("play").onclick = () => play(!playing);
  $("slider").oninput = event => seek(event.target.value);
  $("speed").onchange = event => setSpeed(Number(event.target.value));
  const actions = {
    " ": () => play(!playing), Home: () => seek(run.start), End: () => seek(run.end), "[": () => jump(-1), "]": () => jump(1), h: () => $("help").click(),
    "+": () => setSpeed(SPEEDS[Math.min(SPEEDS.length - 1, SPEEDS.indexOf(speed) + 1)]), "-": () => setSpeed(SPEEDS[Math.max(0, SPEEDS.indexOf(speed) - 1)]),
  };
  Object.keys(VIEWS).forEach((name, k) => { actions[String(k + 1)] = () => look(name); });
  window.addEventListener("keydown", event => {
    if (event.target.tagName === "SELECT" || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === " " && event.target.tagName === "BUTTON" && event.target.id !== "play") return;
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key], action = actions[event.key.length === 1 ? event.key.toLowerCase() : event.key];
    if (step) seek(t + step * (event.shiftKey ? 5 : .1));
    else if (action) action();
    else return;
    event.preventDefault();
  });
  window.addEventListener("keyup", event => { if (event.key === " " && event.target.id === "play") event.preventDefault(); });
  const tick = now => {
    if (playing) {
      if (before !== null) t += Math.min(.25, (now - before) / 1000) * speed;
      before = now;
      if (following) t = Math.min(t, run.end);
      else if (t > run.end) t = run.start;
      show();
    }
    requestAnimationFrame(tick);
  };
  requestAnimationFrame(tick);

  const fromHash = hash => {
    if (hash.has("t")) { play(false); seek(hash.get("t")); }
    look(VIEWS[hash.get("view")] ? hash.get("view") : "deck");
  };
  window.addEventListener("hashchange", () => fromHash(new URLSearchParams(location.hash.slice(1))));
  play(playing);
  fromHash(asked);
  following = Boolean(live);

  // While a run goes on, what is there so far comes again and again; when it ends, the server says so and polling stops.
  const poll = async () => {
    try {
      const answer = await fetch(live);
      if (answer.ok && answer.status !== 204) {
        const more = await unpackRun(new Uint8Array(await answer.arrayBuffer()));
        const grown = more.end > run.end;
        for (const name of Object.keys(more)) if (name !== "commands") run[name] = more[name];
        if (grown) { setRange(); plots.draw(); show(); }
        document.body.dataset.rows = String(run.time.length);
      }
      if (answer.headers.get("X-Posture-Done") === "1") { document.body.dataset.done = "1"; $("thin").textContent = "run complete"; return; }
      $("thin").textContent = "live";
      setTimeout(poll, 500);
    } catch (error) { $("thin").textContent = "the live run has ended"; document.body.dataset.done = "1"; }
  };
  if (live) poll();

  if (scene) scene.render();
  const still = () => { if (framed && scene) window.parent.postMessage({ posture: "picture", image: scene.picture() }, "*"); };
  setTimeout(still, 50);
  window.posture = { seek, look, play, scene, run, time: () => t, picture: () => scene && scene.picture() };
  performance.mark("posture-ready");
  window.postureReady = true;
  document.body.dataset.ready = "1";
}

main().catch(error => { notice(`The page could not be drawn: ${error.message}`); console.error(error); });
