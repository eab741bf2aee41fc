// ------------------------------------------------------------ curves beside the picture

const PLOT_LEFT = 40, PLOT_RIGHT = 5;

function valueRange(values) {
  let low = Infinity, high = -Infinity;
  for (const value of values) if (Number.isFinite(value)) { low = Math.min(low, value); high = Math.max(high, value); }
  if (low > high) { low = 0; high = 1; }
  if (high - low < 1e-3) { low -= .5; high += .5; }
  return [low, high];
}

function sayNumber(value, span) {
  if (Math.abs(value) >= 1e5 || span >= 1e5) return value.toExponential(1);
  return value.toFixed(span < 5 ? (span < .5 ? 2 : 1) : 0);
}

function drawPlot(run, number, canvas, last) {
  const plot = run.plots[number], values = run[`plot${number}`], count = plot.curves.length;
  const ratio = window.devicePixelRatio || 1, width = canvas.clientWidth, height = canvas.clientHeight;
  canvas.width = width * ratio; canvas.height = height * ratio;
  const pen = canvas.getContext("2d"), font = size => `${size}px system-ui, 'DejaVu Sans', sans-serif`;
  pen.scale(ratio, ratio);
  const axis = last || plot.cycle, left = PLOT_LEFT, right = width - PLOT_RIGHT, top = 32, bottom = height - (axis ? 17 : 5);
  const [low, high] = valueRange(values);
  const x = t => left + (right - left) * (t - run.start) / (run.end - run.start || 1);
  const y = value => bottom - (bottom - top) * (value - low) / (high - low);

  pen.font = font(11.5);
  pen.fillStyle = "#14202b";
  pen.fillText(`${plot.title} (${plot.unit}${plot.cycle ? ", % of gait cycle" : ""})`, 0, 11);
  pen.font = font(10.5);
  let edge = left;
  for (const curve of plot.curves) {
    pen.fillStyle = curve.color;
    pen.fillRect(edge, 20.5, 9, 3);
    const room = (right - left) / Math.max(1, count) - 16;
    let label = curve.label;
    while (label.length > 3 && pen.measureText(label).width > room && count > 1) label = label.slice(0, -2) + "…";
    pen.fillText(label, edge + 12, 26);
    edge += pen.measureText(label).width + 22;
  }
  pen.font = font(10);
  pen.fillStyle = "#52626f";
  pen.textAlign = "right";
  pen.fillText(sayNumber(high, high - low), left - 4, top + 8);
  pen.fillText(sayNumber(low, high - low), left - 4, bottom);
  pen.strokeStyle = "#cfd9e1";
  pen.lineWidth = 1;
  pen.strokeRect(left + .5, top + .5, right - left, bottom - top);
  if (low < 0 && high > 0) { pen.beginPath(); pen.moveTo(left, y(0)); pen.lineTo(right, y(0)); pen.stroke(); }
  if (axis) for (let k = 0; k <= 4; k++) {
    pen.textAlign = k === 4 ? "right" : k ? "center" : "left";
    const [from, to] = plot.cycle || [0, 0];
    const t = plot.cycle ? from + (to - from) * k / 4 : run.start + (run.end - run.start) * k / 4;
    if (t <= run.end + 1e-6) pen.fillText(plot.cycle ? `${25 * k} %` : `${+t.toFixed(run.end - run.start < 5 ? 2 : 1)} s`, x(t), height - 4);
  }
  pen.save();
  pen.beginPath(); pen.rect(left, top - 1, right - left, bottom - top + 2); pen.clip();
  pen.lineWidth = 1.4;
  pen.lineJoin = "round";
  pen.fillStyle = "rgba(228, 0, 43, .35)";
  for (const event of run.events) pen.fillRect(x(event.time) - .5, top, 1, bottom - top);
  plot.curves.forEach((curve, k) => {
    pen.strokeStyle = curve.color;
    pen.beginPath();
    let drawing = false;
    for (let row = 0; row < run.time.length; row++) {
      const value = values[row * count + k];
      if (!Number.isFinite(value)) { drawing = false; continue; }
      if (drawing) pen.lineTo(x(run.time[row]), y(value)); else pen.moveTo(x(run.time[row]), y(value));
      drawing = true;
    }
    pen.stroke();
  });
  pen.restore();
  canvas.setAttribute("aria-label",
    `${plot.title} in ${plot.unit}, from ${sayNumber(low, high - low)} to ${sayNumber(high, high - low)}: ${plot.curves.map(c => c.label).join(", ")}`);
}

// Draws all plots; the returned functions move the time cursor and draw again when there is more to draw.
function makePlots(run, seek) {
  const items = run.plots.map(() => {
    const box = document.createElement("div"), canvas = document.createElement("canvas"), cursor = document.createElement("div");
    box.className = "plot"; cursor.className = "cursor";
    canvas.setAttribute("role", "img");
    box.append(canvas, cursor);
    $("plots").append(box);
    const toTime = event => {
      const area = box.getBoundingClientRect(), width = area.width - PLOT_LEFT - PLOT_RIGHT;
      seek(run.start + (run.end - run.start) * (event.clientX - area.left - PLOT_LEFT) / width);
    };
    box.addEventListener("pointerdown", event => { box.setPointerCapture(event.pointerId); toTime(event); });
    box.addEventListener("pointermove", event => { if (event.buttons) toTime(event); });
    return { box, canvas, cursor };
  });
  const draw = () => items.forEach((item, k) => { if (item.box.clientHeight > 30) drawPlot(run, k, item.canvas, k === items.length - 1); });
  window.addEventListener("resize", draw);
  draw();
  const move = t => items.forEach(({ box, cursor }) => {
    const share = (t - run.start) / (run.end - run.start || 1);
    cursor.style.left = `${PLOT_LEFT + share * (box.clientWidth - PLOT_LEFT - PLOT_RIGHT)}px`;
  });
  return { draw, move };
}
