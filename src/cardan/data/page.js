// Moves the picture that K3D shows, and draws the curves under it. Before this text stand ABOUT (what to show),
// LAYOUT and STYLE; K3DInstance holds the meshes, each by its name.
const world = K3DInstance.getWorld();
const byId = (id) => document.getElementById(id);
document.head.insertAdjacentHTML("beforeend", "<style>" + STYLE + "</style>");
document.body.insertAdjacentHTML("beforeend", LAYOUT);
byId("stage").prepend(byId("canvasTarget"));
byId("name").textContent = ABOUT.name;
document.title = ABOUT.name;

// Numbers. A series has rows of equal width and may grow while one looks.
class Series {
  constructor(width, kind) {
    this.width = width;
    this.length = 0;
    this.values = new kind(0);
  }
  append(text) {
    const bytes = Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
    const more = new this.values.constructor(bytes.buffer);
    const used = this.length * this.width;
    if (used + more.length > this.values.length) {
      const grown = new this.values.constructor(Math.max(2 * used, used + more.length));
      grown.set(this.values.subarray(0, used));
      this.values = grown;
    }
    this.values.set(more, used);
    if (this.width > 0) this.length += more.length / this.width;
  }
}
const time = new Series(1, Float64Array);
const poses = new Series(7 * ABOUT.bodies.length, Float32Array);
const reactions = new Series(6 * ABOUT.reactions.joints.length, Float32Array);
const curves = ABOUT.plots.map((plot) => new Series(plot.curves.length, Float32Array));

function append(data) {
  time.append(data.time);
  poses.append(data.poses);
  reactions.append(data.reactions);
  curves.forEach((series, k) => series.append(data.plots[k]));
}
append(ABOUT.data);
const first = () => time.values[0];
const last = () => time.values[time.length - 1];
const still = time.length < 2 && !ABOUT.live;
document.body.classList.toggle("still", still);

// The sample at or before a time, and how far it is to the next.
function moment(t) {
  let low = 0, high = time.length - 1;
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if (time.values[middle] <= t) low = middle;
    else high = middle;
  }
  const span = time.values[high] - time.values[low];
  return { low, high, part: span > 0 ? Math.min(Math.max((t - time.values[low]) / span, 0), 1) : 1 };
}

function between(series, column, at) {
  const a = series.values[at.low * series.width + column], b = series.values[at.high * series.width + column];
  return at.part === 0 ? a : at.part === 1 ? b : a + (b - a) * at.part;
}

// Position and quaternion (w, x, y, z) of a body: straight line, and great circle.
function poseOf(body, at) {
  if (body < 0) return { p: [0, 0, 0], e: [1, 0, 0, 0] };
  const p = [0, 1, 2].map((k) => between(poses, 7 * body + k, at));
  const one = [3, 4, 5, 6].map((k) => poses.values[at.low * poses.width + 7 * body + k]);
  const two = [3, 4, 5, 6].map((k) => poses.values[at.high * poses.width + 7 * body + k]);
  const cosine = one[0] * two[0] + one[1] * two[1] + one[2] * two[2] + one[3] * two[3];
  const angle = Math.acos(Math.min(Math.abs(cosine), 1));
  const near = angle < 1e-4;
  const a = near ? 1 - at.part : Math.sin((1 - at.part) * angle) / Math.sin(angle);
  const b = (near ? at.part : Math.sin(at.part * angle) / Math.sin(angle)) * (cosine < 0 ? -1 : 1);
  const e = one.map((x, k) => a * x + b * two[k]);
  const norm = Math.hypot(...e);
  return { p, e: e.map((x) => x / norm) };
}

// Columns of the rotation of a quaternion.
function axes([w, x, y, z]) {
  return [
    [1 - 2 * (y * y + z * z), 2 * (x * y + w * z), 2 * (x * z - w * y)],
    [2 * (x * y - w * z), 1 - 2 * (x * x + z * z), 2 * (y * z + w * x)],
    [2 * (x * z + w * y), 2 * (y * z - w * x), 1 - 2 * (x * x + y * y)],
  ];
}
const turned = (columns, v) => [0, 1, 2].map((k) => columns[0][k] * v[0] + columns[1][k] * v[1] + columns[2][k] * v[2]);
const plus = (a, b) => a.map((x, k) => x + b[k]);
const minus = (a, b) => a.map((x, k) => x - b[k]);
const times = (s, a) => a.map((x) => s * x);
const cross = (a, b) => [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]];
const unit = (a) => times(1 / Math.hypot(...a), a);

// Where the bodies are now.
let now = [];
const bodyNow = (body) => (body < 0 ? ground : now[body]);
const ground = { p: [0, 0, 0], columns: axes([1, 0, 0, 0]) };
const pointNow = ({ body, point }) => plus(bodyNow(body).p, turned(bodyNow(body).columns, point));
function moveBodies(at) {
  now = ABOUT.bodies.map((_, body) => {
    const { p, e } = poseOf(body, at);
    return { p, columns: axes(e) };
  });
}

// The meshes.
const meshes = {};
for (const [id, about] of Object.entries(world.ObjectsListJson)) {
  const mesh = world.ObjectsById[id];
  mesh.matrixAutoUpdate = false;
  meshes[about.name] = mesh;
  if (/^(force|moment)\//.test(about.name)) { // arrows are seen through bodies
    mesh.material.depthTest = false;
    mesh.renderOrder = 10;
  }
}
function setMatrix(mesh, [x, y, z], p) {
  mesh.matrix.set(x[0], y[0], z[0], p[0], x[1], y[1], z[1], p[1], x[2], y[2], z[2], p[2], 0, 0, 0, 1);
  mesh.matrixWorldNeedsUpdate = true;
}
// Along z from 0 to 1: from a point along a vector; `stretch` keeps the thickness, otherwise all grows.
function setAlong(mesh, from, vector, stretch) {
  const length = Math.hypot(...vector);
  mesh.visible = mesh.visible && length > 1e-9 * ABOUT.view.radius;
  if (!mesh.visible) return;
  const z = times(1 / length, vector);
  const smallest = z.map(Math.abs).indexOf(Math.min(...z.map(Math.abs)));
  const x = unit(cross([0, 1, 2].map((k) => (k === smallest ? 1 : 0)), z));
  const wide = stretch ? 1 : length;
  setMatrix(mesh, [times(wide, x), times(wide, cross(z, x)), vector], from);
}

const shown = { ...ABOUT.layers };
function movePicture(at) {
  moveBodies(at);
  for (const part of ABOUT.parts) {
    const mesh = meshes[part.object];
    mesh.visible = shown[part.layer];
    if (mesh.visible) setMatrix(mesh, bodyNow(part.body).columns, bodyNow(part.body).p);
  }
  for (const span of ABOUT.spans) {
    const mesh = meshes[span.object];
    mesh.visible = shown[span.layer];
    const from = pointNow(span.ends[0]);
    if (span.direction === null) setAlong(mesh, from, minus(pointNow(span.ends[1]), from), true);
    else setAlong(mesh, from, turned(bodyNow(span.follows ? span.ends[0].body : -1).columns, span.direction), false);
  }
  moveReactions(at);
  moveTrace(at);
}

function moveReactions(at) {
  const scale = 10 ** Number(byId("arrows").value);
  for (const [what, first, box] of [["moment", 0, "moments"], ["force", 3, "forces"]]) {
    ABOUT.reactions.joints.forEach((joint, j) => {
      const mesh = meshes[what + "/" + j];
      mesh.visible = byId(box).checked;
      if (!mesh.visible) return;
      const vector = [0, 1, 2].map((k) => between(reactions, 6 * j + first + k, at));
      mesh.visible = vector.every(Number.isFinite);
      setAlong(mesh, pointNow(joint), times(scale / ABOUT.reactions[what + "_a_metre"], vector), false);
    });
  }
}

// The trace of a point: a line of K3D through all samples, of which what has passed is drawn.
let trace = null;
const TRACE = 1;
function choosePoint() {
  const chosen = byId("trace").value;
  trace = null;
  if (world.ObjectsById[TRACE]) K3DInstance.removeObject(TRACE);
  if (chosen === "") return draw();
  const { body, point } = ABOUT.points[Number(chosen)];
  const line = new Float32Array(3 * time.length);
  for (let k = 0; k < time.length; k++) {
    const { p, e } = poseOf(body, { low: k, high: k, part: 0 });
    line.set(plus(p, turned(axes(e), point)), 3 * k);
  }
  const vertices = { data: line, shape: [time.length, 3] };
  const none = { data: new Float32Array(0), shape: [0] };
  const about = {
    id: TRACE, type: "Line", name: "trace", shader: "mesh", radial_segments: 5, vertices, indices: none,
    width: 0.12 * ABOUT.view.size, color: 0xc00000, colors: { data: new Uint32Array(0), shape: [0] }, attribute: none,
    color_map: none, color_range: [], opacity: 1, visible: true, roughness: 0.4, metalness: 0,
    model_matrix: { data: new Float32Array([1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1]), shape: [4, 4] },
  };
  K3DInstance.load({ objects: [about] }).then(() => {
    trace = world.ObjectsById[TRACE];
    draw();
  });
}
function moveTrace(at) {
  if (!trace) return;
  const geometry = trace.geometry, all = geometry.index ? geometry.index.count : geometry.attributes.position.count;
  const passed = (at.low + at.part) / Math.max(time.length - 1, 1);
  geometry.setDrawRange(0, 3 * Math.floor((all * passed) / 3));
}

// The camera. The flat view is one from so far that lines that are parallel stay so.
const view = ABOUT.view;
function lookHome() {
  const flat = byId("flat").checked, plane = view.plane;
  const fov = flat ? 0.5 : 30;
  const stage = byId("stage").getBoundingClientRect();
  const wide = stage.width / stage.height;
  const up = plane ? plane[1] : view.up;
  const side = plane ? plane[0] : unit(Math.abs(up[2]) > 0.9 ? cross([0, 1, 0], up) : cross(up, [0, 0, 1]));
  const front = plane ? plane[2] : cross(side, up);
  const away = flat ? front : unit(plus(plus(times(plane ? 0.35 : 0.6, side), times(plane ? 0.3 : 0.4, up)), front));
  const right = unit(cross(up, away));
  const half = (axis) => axis.reduce((sum, x, k) => sum + (Math.abs(x) * (view.high[k] - view.low[k])) / 2, 4 * view.size);
  const centre = times(0.5, plus(view.low, view.high));
  const tall = Math.max(half(cross(away, right)), half(right) / wide);
  const distance = (1.05 * tall) / Math.tan((fov * Math.PI) / 360) + (flat ? 0 : half(away));
  K3DInstance.setCameraFOV(fov);
  K3DInstance.setCamera([...plus(centre, times(distance, away)), ...centre, ...up]);
  world.controls.noRotate = flat;
  followed = null;
  draw();
}

let followed = null; // where the point was that the camera follows
function moveCamera() {
  const body = byId("follow").value;
  if (body === "") return (followed = null);
  const here = bodyNow(Number(body)).p;
  const shift = minus(here, followed ?? here);
  followed = here;
  for (const vector of [world.camera.position, world.controls.target]) {
    vector.set(vector.x + shift[0], vector.y + shift[1], vector.z + shift[2]);
  }
}

// Names over the picture.
const named = [
  ...ABOUT.bodies.map((name, body) => ({ name, ...(ABOUT.points.find((p) => p.body === body) ?? { body, point: [0, 0, 0] }), colour: "#000" })),
  ...ABOUT.reactions.joints.map((joint) => ({ ...joint, colour: "#06c" })),
].map((item) => ({ name: item.name, body: item.body, point: item.point, colour: item.colour }));
ABOUT.bodies.forEach((name, k) => (named[k].name = name));
const labels = named.map((item) => {
  const label = document.createElement("span");
  label.textContent = item.name;
  label.style.color = item.colour;
  label.hidden = true;
  byId("labels").append(label);
  return label;
});
function moveNames() {
  const wanted = byId("names").checked;
  const { width, height } = byId("stage").getBoundingClientRect();
  labels.forEach((label, k) => {
    label.hidden = !wanted;
    if (!wanted) return;
    const at = world.camera.position.clone().set(...pointNow(named[k])).project(world.camera);
    label.style.transform = `translate(${((at.x + 1) / 2) * width + 6}px, ${((1 - at.y) / 2) * height - 18}px)`;
  });
}

// The plots: curves are drawn once, the cursor and the numbers move.
const COLOURS = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000"];
const MARGIN = { left: 64, right: 8, bottom: 18, top: 4 };
const shortly = (x) => (Number.isFinite(x) ? Number(x.toPrecision(6)).toString() : "–");
const plots = ABOUT.plots.map((about, k) => {
  const box = document.createElement("div");
  box.className = "plot";
  box.innerHTML = '<h2></h2><div class="area"><canvas></canvas><div class="cursor"></div></div><div class="legend"></div>';
  box.querySelector("h2").textContent = about.title + (about.unit ? ", " + about.unit : "");
  byId("plots").append(box);
  const plot = { ...about, box, series: curves[k], on: about.curves.map((_, c) => c < 8), values: [] };
  about.curves.forEach((name, c) => {
    const label = document.createElement("label");
    label.innerHTML = '<input type="checkbox"> <span></span> <b></b>';
    label.style.color = COLOURS[c % COLOURS.length];
    label.querySelector("span").textContent = name;
    const check = label.querySelector("input");
    check.checked = plot.on[c];
    check.onchange = () => { plot.on[c] = check.checked; drawPlot(plot); };
    plot.values.push(label.querySelector("b"));
    box.querySelector(".legend").append(label);
  });
  const area = box.querySelector(".area");
  const seekTo = (event) => {
    const { left, width } = area.getBoundingClientRect();
    const part = (event.clientX - left - MARGIN.left) / (width - MARGIN.left - MARGIN.right);
    seek(first() + part * (last() - first()));
  };
  area.onpointerdown = (event) => { area.setPointerCapture(event.pointerId); seekTo(event); };
  area.onpointermove = (event) => { if (event.buttons) seekTo(event); };
  return plot;
});

// Round numbers from low to high, about five of them.
function ticks(low, high) {
  const rough = (high - low) / 5, power = 10 ** Math.floor(Math.log10(rough));
  const step = power * [1, 2, 5, 10].find((k) => k * power >= rough);
  const list = [];
  for (let x = Math.ceil(low / step) * step; x <= high + 1e-9 * step; x += step) list.push(Number(x.toPrecision(12)));
  return list;
}

function drawPlot(plot) {
  const canvas = plot.box.querySelector("canvas"), { width, height } = canvas.getBoundingClientRect();
  const ratio = window.devicePixelRatio || 1;
  canvas.width = width * ratio;
  canvas.height = height * ratio;
  const ink = canvas.getContext("2d"), { series } = plot, picked = plot.on.flatMap((on, c) => (on ? [c] : []));
  ink.scale(ratio, ratio);
  let low = Infinity, high = -Infinity;
  for (let k = 0; k < series.length; k++) {
    for (const c of picked) {
      const y = series.values[k * series.width + c];
      if (y < low) low = y;
      if (y > high) high = y;
    }
  }
  if (!(low <= high)) [low, high] = [0, 1];
  const pad = Math.max((high - low) * 0.06, 1e-6 * Math.max(Math.abs(low), Math.abs(high)), 1e-12);
  [low, high] = [low - pad, high + pad];
  const X = (t) => MARGIN.left + ((t - first()) / (last() - first() || 1)) * (width - MARGIN.left - MARGIN.right);
  const Y = (y) => height - MARGIN.bottom - ((y - low) / (high - low)) * (height - MARGIN.bottom - MARGIN.top);
  ink.font = "11px system-ui, sans-serif";
  ink.strokeStyle = "#e4e4e4";
  ink.fillStyle = "#555";
  const rule = (x1, y1, x2, y2) => { ink.beginPath(); ink.moveTo(x1, y1); ink.lineTo(x2, y2); ink.stroke(); };
  ink.textAlign = "right";
  for (const y of ticks(low, high)) { rule(MARGIN.left, Y(y), width - MARGIN.right, Y(y)); ink.fillText(shortly(y), MARGIN.left - 5, Y(y) + 4); }
  ink.textAlign = "center";
  if (last() > first()) for (const t of ticks(first(), last())) { rule(X(t), MARGIN.top, X(t), height - MARGIN.bottom); ink.fillText(shortly(t), X(t), height - 4); }
  ink.lineWidth = 1.4;
  for (const c of picked) {
    ink.strokeStyle = COLOURS[c % COLOURS.length];
    ink.beginPath();
    let pen = false;
    for (let k = 0; k < series.length; k++) {
      const y = series.values[k * series.width + c];
      if (!Number.isFinite(y)) { pen = false; continue; }
      if (pen) ink.lineTo(X(time.values[k]), Y(y));
      else ink.moveTo(X(time.values[k]), Y(y));
      pen = true;
    }
    ink.stroke();
  }
}
const drawPlots = () => plots.forEach(drawPlot);

function moveCursors(t, at) {
  const part = (t - first()) / (last() - first() || 1);
  for (const plot of plots) {
    const { width } = plot.box.querySelector(".area").getBoundingClientRect();
    plot.box.querySelector(".cursor").style.transform =
      `translateX(${MARGIN.left + part * (width - MARGIN.left - MARGIN.right)}px)`;
  }
  if (clock.playing && performance.now() - clock.told < 120) return; // numbers that change faster cannot be read
  clock.told = performance.now();
  for (const plot of plots) {
    plot.on.forEach((on, c) => (plot.values[c].textContent = on ? shortly(between(plot.series, c, at)) : ""));
  }
  byId("time").value = t.toFixed(3) + " s";
}

// Time passes.
const clock = { t: first(), playing: false, drawn: 0, before: 0, told: 0 };
function draw() {
  const at = moment(clock.t);
  movePicture(at);
  moveCamera();
  moveNames();
  moveCursors(clock.t, at);
  byId("scrub").value = (clock.t - first()) / (last() - first() || 1);
  return render();
}
// One picture at a time: while K3D is busy with one, only the newest of those asked for waits.
let busy = null, waiting = false;
function render() {
  if (busy) {
    waiting = true;
    return busy;
  }
  const { camera, controls } = world, distance = camera.position.distanceTo(controls.target);
  camera.near = Math.max(distance - 20 * view.radius, distance / 100);
  camera.far = distance + 20 * view.radius;
  camera.updateProjectionMatrix();
  busy = Promise.resolve(K3DInstance.render(true)).then(() => {
    busy = null;
    clock.drawn += 1;
    if (waiting) {
      waiting = false;
      return render();
    }
  });
  return busy;
}
function seek(t) {
  clock.t = Math.min(Math.max(t, first()), last());
  return draw();
}
function play(playing) {
  clock.playing = playing;
  if (playing && clock.t >= last() && !ABOUT.live) clock.t = first();
  byId("play").textContent = playing ? "Pause" : "Play";
  clock.before = performance.now();
  if (playing) requestAnimationFrame(tick);
}
function tick(instant) {
  if (!clock.playing) return;
  let t = clock.t + (Math.max(instant - clock.before, 0) / 1000) * Number(byId("speed").value);
  clock.before = instant;
  if (t > last()) {
    if (byId("loop").checked && !ABOUT.live) t = first();
    else {
      t = last();
      if (!ABOUT.live) play(false);
    }
  }
  clock.t = t;
  draw().then(() => clock.playing && requestAnimationFrame(tick));
}

// The controls.
byId("play").onclick = () => play(!clock.playing);
const step = (k) => { const at = moment(clock.t); seek(time.values[Math.min(Math.max(at.low + Math.round(at.part) + k, 0), time.length - 1)]); };
byId("back").onclick = () => step(-1);
byId("forth").onclick = () => step(1);
byId("scrub").oninput = (event) => seek(first() + Number(event.target.value) * (last() - first()));
document.addEventListener("keydown", (event) => {
  if (["INPUT", "SELECT", "BUTTON"].includes(event.target.tagName) && event.target.type !== "range" || still) return;
  if (event.key === " ") play(!clock.playing);
  else if (event.key === "ArrowLeft") step(-1);
  else if (event.key === "ArrowRight") step(1);
  else return;
  event.preventDefault();
});
const choice = (value, text) => { const option = document.createElement("option"); option.value = value; option.textContent = text; return option; };
ABOUT.bodies.forEach((name, body) => byId("follow").append(choice(body, name)));
ABOUT.points.forEach((point, k) => byId("trace").append(choice(k, point.name)));
for (const [layer, on] of Object.entries(ABOUT.layers)) {
  if (![...ABOUT.parts, ...ABOUT.spans].some((part) => part.layer === layer)) continue;
  const label = document.createElement("label"), check = document.createElement("input");
  check.type = "checkbox";
  check.checked = on;
  check.onchange = () => { shown[layer] = check.checked; draw(); };
  label.append(check, " " + layer);
  byId("layers").append(label);
}
for (const id of ["forces", "moments", "arrows", "names"]) byId(id).oninput = draw;
byId("follow").onchange = () => { followed = null; draw(); };
byId("trace").onchange = choosePoint;
byId("flat").onchange = lookHome;
byId("home").onclick = lookHome;
byId("flat").checked = view.plane !== null;
byId("flatness").hidden = view.plane === null;
new ResizeObserver(() => { drawPlots(); draw(); }).observe(byId("stage"));
world.controls.addEventListener("change", moveNames);

// Make room in the view for new samples; true if there was too little.
let touched = false;
world.controls.addEventListener("start", () => (touched = true));
function widen(from) {
  let grown = false;
  for (let k = from; k < time.length; k++) {
    for (const { body, point } of ABOUT.points) {
      const { p, e } = poseOf(body, { low: k, high: k, part: 0 });
      plus(p, turned(axes(e), point)).forEach((x, i) => {
        if (x >= view.low[i] && x <= view.high[i]) return;
        grown = true;
        view.low[i] = Math.min(view.low[i], x - 4 * view.size);
        view.high[i] = Math.max(view.high[i], x + 4 * view.size);
      });
    }
  }
  view.radius = Math.max(view.radius, Math.hypot(...minus(view.high, view.low)) / 2);
  return grown;
}

// A live page gets samples while a simulation runs, and stays at the newest.
if (ABOUT.live) {
  byId("note").textContent = "live";
  const source = new EventSource("stream");
  source.onmessage = (message) => {
    const before = time.length;
    append(JSON.parse(message.data));
    if (widen(before) && !touched) lookHome();
    drawPlots();
    if (!clock.playing) seek(last());
  };
  source.addEventListener("end", () => { source.close(); byId("note").textContent = ""; ABOUT.live = false; });
}

lookHome();
drawPlots();
draw();
// For scripts and tests.
window.cardan = { clock, seek, play, world, plots, pointNow, about: ABOUT, meshes, time };
document.body.dataset.ready = "yes";
