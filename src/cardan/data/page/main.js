// The page: everything above, tied to one clock. Before all this stands ABOUT, what to show.
const byId = (id) => document.getElementById(id);
const root = document.documentElement;
document.title = byId("name").textContent = ABOUT.name;
document.body.classList.toggle("inline", ABOUT.inline);
document.body.classList.toggle("folded", ABOUT.inline || window.innerWidth <= 760);

const wantsDark = matchMedia("(prefers-color-scheme: dark)");
root.classList.toggle("dark", wantsDark.matches);
const css = (name) => getComputedStyle(root).getPropertyValue(name).trim();
const rgb = (name) => [1, 3, 5].map((k) => parseInt(css(name).slice(k, k + 2), 16) / 255);
let paint = {};
function readColours() {
  paint = { back: rgb("--stage"), ground: rgb("--floor"), grid: rgb("--grid"), ink: rgb("--ink"), rule: css("--rule"), soft: css("--soft"), mark: css("--mark"), held: css("--held") };
}
readColours();

const scene = makeScene(ABOUT, await unpack(ABOUT.data));
const { view } = ABOUT, stage = byId("stage"), canvas = byId("picture");
const still = !ABOUT.live && scene.last() - scene.first() <= 0;
document.body.classList.toggle("still", still);
canvas.setAttribute("aria-label", `${ABOUT.name} in three dimensions: ${scene.runs[0].machine.names.join(", ")}`);

const camera = makeCamera(stage, view, (axes) => scene.extent(axes, !camera.far), () => soon());
const measure = makeMeasure(scene, camera, byId("drawn"), byId("answer"), ["#d62728", "#2ca02c", "#3b82f6"]);
const plots = makePlots(scene, byId("plots"), byId("chooser"), () => paint, (t) => seek(t));

// The renderer. Without one, numbers and plots still work. A view in a notebook has one only while it is seen.
let renderer = null, solids = [], pull = null;
function begin() {
  if (renderer) return;
  renderer = makeRenderer(canvas);
  if (renderer) {
    solids = scene.machines.map((machine) => renderer.addSolids(machine.solids));
    traceNow();
  } else if (!byId("fallback")) {
    stage.insertAdjacentHTML("beforeend", '<p id="fallback">This browser has no WebGL 2, so the mechanism cannot be drawn; the plots are below.</p>');
  }
}
canvas.addEventListener("webglcontextlost", (event) => { event.preventDefault(); renderer = null; });
canvas.addEventListener("webglcontextrestored", () => { begin(); soon(); });

// Time.
const clock = { t: scene.first(), playing: false, drawn: 0, before: 0, asked: false };
function soon() {
  if (clock.asked) return;
  clock.asked = true;
  requestAnimationFrame((instant) => { clock.asked = false; if (clock.playing) advance(instant); draw(); if (clock.playing) soon(); });
}
function advance(instant) {
  let t = clock.t + (Math.max(instant - clock.before, 0) / 1000) * speed();
  judge(instant - clock.before);
  clock.before = instant;
  const end = scene.last();
  if (t > end) {
    if (byId("loop").checked && !ABOUT.live) t = scene.first();
    else { t = end; if (!ABOUT.live) play(false); }
  }
  clock.t = t;
}
function seek(t) {
  clock.t = Math.min(Math.max(t, scene.first()), scene.last());
  draw();
}
function play(playing) {
  if (playing) { window.cardan?.simulation?.pause(); endState(); }
  clock.playing = playing;
  if (playing && clock.t >= scene.last() && !ABOUT.live) clock.t = scene.first();
  byId("play").textContent = playing ? "Pause" : "Play";
  clock.before = performance.now();
  if (playing) soon();
}
const speed = () => Math.max(Number(byId("speed").value) || 0, 0);
function setSpeed(value) {
  byId("speed").value = Number(value.toPrecision(3));
  byId("pace").value = Math.log10(value);
}
byId("pace").oninput = () => { // to the next round number, if it is near
  const value = 10 ** Number(byId("pace").value), power = 10 ** Math.floor(Math.log10(value));
  const near = [1, 2, 5, 10].map((k) => k * power).find((x) => Math.abs(Math.log10(value / x)) < 0.06);
  byId("speed").value = Number((near ?? value).toPrecision(2));
};
byId("speed").oninput = () => { if (speed() > 0) byId("pace").value = Math.log10(speed()); };

// A state that somebody else computes is shown until the run plays again or is sought in.
function showState(t, poses, touching = null) {
  Object.assign(scene.leading(), { state: poses, touching });
  clock.state = t;
  if (clock.playing) play(false);
  soon();
}
function showPull(from, to) { // a line between two points, ground axes; null hides it
  pull?.remove();
  pull = from && renderer ? renderer.addLine(new Float32Array([...from, ...to])) : null;
  soon();
}
function endState() {
  if (clock.state === undefined) return;
  for (const run of scene.runs) run.state = run.touching = null;
  clock.state = undefined;
}

// Shadows become hard, then go, where drawing is slow: 2, 1, 0.
let quality = 2, slow = 0;
function judge(milliseconds) {
  slow = milliseconds > 45 ? slow + 1 : Math.max(slow - 2, 0);
  if (slow > 12 && quality > 0) { quality -= 1; slow = 0; }
}

// One picture.
const arrows = () => { const scale = 10 ** Number(byId("arrows").value); return { forces: scale / ABOUT.reactions.force, moments: scale / ABOUT.reactions.moment }; };
function draw() {
  const t = clock.t;
  scene.move(t, arrows());
  moveCamera();
  plots.move(t, clock.playing);
  if (!clock.playing || performance.now() - (clock.told ?? 0) > 60) {
    clock.told = performance.now();
    const simulated = clock.state !== undefined; // the time line and the plots are then those of another motion: pale
    byId("time").value = simulated ? `simulated ${clock.state.toFixed(places)} s` : `${t.toFixed(places)} s`;
    document.body.classList.toggle("simulated", simulated);
    byId("scrub").value = (t - scene.first()) / (scene.last() - scene.first() || 1);
  }
  moveNames();
  measure.tell();
  measure.draw(stage.clientWidth, stage.clientHeight);
  render();
  clock.drawn += 1;
}
const places = Math.max(3, Math.min(9, 3 - Math.floor(Math.log10(Math.max(scene.last() - scene.first(), 1e-9)))));

function render() {
  if (!renderer || renderer.gl.isContextLost()) return;
  const ratio = Math.min(window.devicePixelRatio || 1, 2), wide = Math.round(stage.clientWidth * ratio), tall = Math.round(stage.clientHeight * ratio);
  if (!wide || !tall) return;
  if (canvas.width !== wide || canvas.height !== tall) { canvas.width = wide; canvas.height = tall; }
  const box = scene.extent(GROUND_AXES, false), centre = times(0.5, plus(box.low, box.high)), radius = Math.max(size(minus(box.high, box.low)) / 2, view.size);
  const reach = 30 * view.radius + radius + size(minus(centre, camera.target));
  const { sun, right, up } = sunlight();
  renderer.setPlaces(scene.places);
  renderer.draw({
    camera: camera.matrix(reach), eye: camera.flat ? [...camera.back, 0] : [...camera.eye(), 1], sun,
    light: product(parallel(1.03 * radius, 1.03 * radius, 0, 2 * radius), lookFrom(plus(centre, times(radius, sun)), right, up, sun)),
    lift: (3 * radius) / SHADOW, shadows: byId("shadows").checked ? quality : 0, back: paint.back, ratio,
    groups: scene.groups.map((group, k) => ({ ...group, solids: solids[k] })),
    shown: (layer) => scene.layers[layer], over: scene.over, section: section(), floor: floorNow(),
    lines: (pull ? [{ vertices: pull.vertices, count: 1, wide: 3, colour: [...rgb("--mark"), 1] }] : []).concat(scene.runs.filter((run) => run.shown && run.line).flatMap(({ line, at, time, tint }, k) => {
      const ink = k > 0 && tint ? tint : paint.ink, all = { vertices: line.vertices, wide: 2 };
      return [{ ...all, count: time.length - 1, colour: [...ink, 0.22] }, { ...all, wide: 2.6, count: at.part < 1 ? at.low : at.high, colour: [...ink, 1] }];
    })),
  });
}
// The light comes from above the observer's left shoulder, as the scene stands and not as one looks.
function sunlight() {
  const { normal, across, along } = floorAxes();
  const sun = unit(plus(normal, plus(times(view.plane ? -0.28 : 0.35, along), times(view.plane ? 0.42 : -0.45, across))));
  const right = beside(sun);
  return { sun, right, up: cross(sun, right) };
}
// The floor is perpendicular to gravity; a planar mechanism has a board behind it instead.
let below = 0, spacing = 1, sunken = false;
function floorAxes() {
  if (view.plane) return { along: view.plane[0], across: view.plane[1], normal: view.plane[2] };
  const along = Math.abs(view.up[0]) < 0.9 ? unit(minus([1, 0, 0], times(view.up[0], view.up))) : [0, 1, 0];
  return { along, across: cross(view.up, along), normal: view.up };
}
function layFloor() {
  const { normal } = floorAxes(), lowest = (always) => scene.extent([normal, normal, normal], always).low[0];
  const [start, ever] = [lowest(false), lowest(true)], { low, high } = camera.box;
  const stands = !view.plane && !camera.far && view.base !== null && view.base - start < 0.1 * size(minus(high, low));
  below = (stands || camera.far ? start : ever) - (view.plane ? 1.5 : 0.02) * view.size;
  sunken = stands && ever < start - view.size; // something goes below the floor on which the machine stands
  spacing = roundStep(size(minus(high, low)) / 12);
  tellKey();
}
function floorNow() {
  if (!byId("floor").checked) return null;
  const { along, across, normal } = floorAxes(), target = camera.target;
  const origin = plus(target, times(below - dot(normal, target), normal));
  const above = camera.flat ? dot(camera.back, normal) : (dot(camera.eye(), normal) - below) / camera.distance;
  if (above < 0.003) return null;
  return {
    origin, along, across, spacing, shift: [dot(origin, along), dot(origin, across)], ground: paint.ground, rule: paint.grid,
    back: paint.back, reach: Math.max(6 * view.radius, 2.5 * camera.distance), opacity: Math.min(above / 0.03, 1) * (sunken ? 0.75 : 1),
  };
}

// The camera.
const wide = ({ low, high }) => size(minus(high, low));
function lookHome() {
  const whole = wide(scene.extent(GROUND_AXES, true)), here = wide(scene.extent(GROUND_AXES, false));
  camera.far = whole > 6 * here; // it travels far: look at it where it is, and go with it
  if (camera.far && byId("follow").value === "") byId("follow").value = scene.traveller(whole / 4) ?? "";
  camera.box = scene.extent(GROUND_AXES, !camera.far);
  byId("flat").checked = camera.flat = Boolean(view.plane);
  camera.axis = view.plane ? view.plane[1] : view.up;
  camera.sideways = undefined;
  const { normal, along, across } = floorAxes();
  followed = null;
  layFloor();
  camera.frame(view.plane ? normal : plus(plus(times(0.62, along), times(-1, across)), times(0.52, normal)));
}
const VIEWS = {
  home: lookHome,
  front: () => camera.frame(view.plane ? view.plane[2] : times(-1, floorAxes().across)),
  side: () => camera.frame(floorAxes().along),
  top: () => { camera.sideways = view.plane ? view.plane[0] : floorAxes().along; camera.frame(camera.axis); },
};
for (const button of document.querySelectorAll("[data-view]")) button.onclick = () => VIEWS[button.dataset.view]();
let followed = null, touched = false;
function moveCamera() {
  const body = byId("follow").value;
  if (body === "") return void (followed = null);
  const here = scene.pointNow({ body: Number(body), point: [0, 0, 0] });
  if (followed) camera.target = plus(camera.target, minus(here, followed));
  followed = here;
}
const unhidden = (world) => { const cut = section(); return !cut || dot(cut, world) <= cut[3]; };
const pickAt = (clientX, clientY) => scene.pick(camera.ray(clientX, clientY), unhidden);
// Clicks measure; a body may be pulled by whoever has set `cardan.drag`.
let pulled = null; // where the body was taken, in ground axes
function tool(kind, event) {
  const { drag } = window.cardan;
  if (kind === "down") {
    const hit = drag && !measure.on ? pickAt(event.clientX, event.clientY) : null;
    pulled = hit && hit.body >= 0 && drag.start(hit) ? hit.world : null;
    return pulled !== null;
  }
  if (kind === "move") drag.move(onPlane(event.clientX, event.clientY, pulled));
  else if (kind === "up") drag.end();
  else if (measure.on) {
    const hit = pickAt(event.clientX, event.clientY);
    if (hit) measure.add(hit);
    soon();
  }
}
// Where the pointer is on the plane through a point that faces the observer, in ground axes.
function onPlane(clientX, clientY, point) {
  const { from, way } = camera.ray(clientX, clientY);
  return plus(from, times(dot(minus(point, from), camera.back) / dot(way, camera.back), way));
}
steer(canvas, camera, tool, () => (touched = true), ABOUT.inline);
canvas.addEventListener("dblclick", (event) => {
  const hit = pickAt(event.clientX, event.clientY);
  if (hit) { camera.target = hit.world; soon(); }
});

// Sections: a plane, and the half before it is not drawn, as one looks when it is chosen.
let cutBehind = false;
byId("cut").addEventListener("change", () => (cutBehind = Number(byId("cut").value) < 3 && camera.back[Number(byId("cut").value)] < -1e-9));
function section() {
  const which = byId("cut").value;
  if (which === "") return null;
  const way = which === "3" ? camera.back : [0, 1, 2].map((k) => (k === Number(which) ? 1 : 0));
  const ends = cornersOfBox(camera.box).map((corner) => dot(way, corner)), part = Number(byId("depth").value);
  const at = Math.min(...ends) + part * (Math.max(...ends) - Math.min(...ends));
  return byId("turned").checked !== cutBehind ? [...times(-1, way), -at] : [...way, at];
}

// Names over the picture.
const labels = scene.runs[0].machine.labels.map((item) => {
  const label = document.createElement("span");
  label.textContent = item.name;
  label.hidden = true;
  byId("labels").append(label);
  return { ...item, label };
});
function moveNames() {
  const wanted = byId("names").checked && scene.leading().machine === scene.runs[0].machine;
  for (const { label, body, point } of labels) {
    const at = wanted ? camera.screen(scene.pointNow({ body, point })) : null;
    label.hidden = !at;
    if (at) label.style.transform = `translate(${at[0] + 6}px, ${at[1] - 18}px)`;
  }
}

// The trace of a point, of every run.
function traceNow() {
  const chosen = byId("trace").value;
  for (const run of scene.runs) {
    run.line?.remove();
    const point = chosen === "" ? null : run.machine.points[Number(chosen)];
    run.line = renderer && point && run.time.length > 1 ? renderer.addLine(scene.path(run, point)) : null;
  }
  soon();
}
