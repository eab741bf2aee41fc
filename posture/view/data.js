// ------------------------------------------------------------ the run: unpacking, looking up a time

const $ = id => document.getElementById(id);
const bytes = text => Uint8Array.from(atob(text), letter => letter.charCodeAt(0));

function notice(text) { $("notice").hidden = false; $("notice").textContent = text; }

// Numbers lie by columns with their bytes grouped by significance (payload.py); rows of float32 come back.
function unpackArray(content, start, { rows, width, at, kind }) {
  const count = rows * width;
  if (kind === "u1") {
    const found = new Uint8Array(count);
    for (let c = 0; c < width; c++) for (let r = 0; r < rows; r++) found[r * width + c] = content[start + at + c * rows + r];
    return found;
  }
  const found = new Uint8Array(4 * count);
  for (let b = 0; b < 4; b++) {
    const plane = start + at + b * count;
    for (let c = 0; c < width; c++) for (let r = 0; r < rows; r++) found[4 * (r * width + c) + b] = content[plane + c * rows + r];
  }
  return new Float32Array(found.buffer);
}

async function unpackRun(packed) {
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
  const content = new Uint8Array(await new Response(stream).arrayBuffer());
  const size = new DataView(content.buffer).getUint32(0, true), start = 4 + size;
  const run = JSON.parse(new TextDecoder().decode(content.subarray(4, start)));
  run.width = {};
  for (const [name, place] of Object.entries(run.arrays)) {
    run[name === "sea" ? "heights" : name] = unpackArray(content, start, place);
    run.width[name] = place.width;
  }
  run.start = run.time[0];
  run.end = run.time[run.time.length - 1];
  return run;
}

// Row before time t and how far t is towards the next one.
function locate(run, t) {
  const time = run.time;
  let low = 0, high = time.length - 1;
  while (high - low > 1) { const middle = (low + high) >> 1; if (time[middle] <= t) low = middle; else high = middle; }
  const span = time[high] - time[low];
  return { row: low, next: high, part: span > 0 ? Math.min(1, Math.max(0, (t - time[low]) / span)) : 0 };
}

function blend(values, width, at) {
  return Array.from({ length: width }, (_, k) => {
    const here = values[at.row * width + k], there = values[at.next * width + k];
    return at.part === 0 ? here : at.part === 1 ? there : here * (1 - at.part) + there * at.part;  // a gap ends sharply
  });
}

const finite = values => values.every(Number.isFinite);
