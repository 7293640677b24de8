// A page of the textbook: takes the sliders' values through `evaluate`, shows the numbers, draws the figure.
// `ABOUT` and `evaluate` stand before this text. Nothing here knows mechanics.

const sliders = ABOUT.sliders.map((one) => ({ ...one, input: document.getElementById(one.name) }));
const figure = document.getElementById("figure");
const view = { yaw: -0.6, pitch: 0.42 };
const AGREE = 1e-10; // relative; what is above is said to differ

// Numbers as text.

const RAISED = { "-": "⁻", ...Object.fromEntries([..."⁰¹²³⁴⁵⁶⁷⁸⁹"].map((c, k) => [k, c])) };

function text(x) {
  if (!Number.isFinite(x)) return "–";
  if (x === 0) return "0";
  const size = Math.abs(x);
  let found = x.toPrecision(4);
  if (size < 1e-3 || size >= 1e5) {
    const [digits, power] = x.toExponential(2).split("e");
    found = `${digits}·10${[...String(Number(power))].map((c) => RAISED[c]).join("")}`;
  }
  return found.replace("-", "−");
}

function cells(row, largest) {
  return row.map((x, k) => {
    const part = k && k % ABOUT.part === 0 && row.length % ABOUT.part === 0 ? ' class="part"' : "";
    return `<td${part} title="${x}">${text(Math.abs(x) < 1e-13 * largest ? 0 : x)}</td>`;
  }).join("");
}

function shown(values, shape) {
  const all = Array.from(values);
  const largest = Math.max(...all.map(Math.abs));
  const columns = shape.length === 2 ? shape[1] : all.length;
  const rows = [];
  for (let k = 0; k < all.length; k += columns) rows.push(all.slice(k, k + columns));
  const part = (k) => (rows.length === 6 && k === 3 ? ' class="part"' : "");
  return `<table>${rows.map((row, k) => `<tr${part(k)}>${cells(row, largest)}</tr>`).join("")}</table>`;
}

function show(values, wrong) {
  for (const place of document.querySelectorAll("[data-key]")) {
    const value = values[place.dataset.key];
    const scalar = typeof value === "number";
    const finite = scalar ? Number.isFinite(value) : value.every(Number.isFinite);
    if (wrong || !finite) place.textContent = "not defined for these values";
    else if (scalar) place.innerHTML = `<span title="${value}">${text(value)}</span>`;
    else place.innerHTML = shown(value, shapes.get(place.dataset.key));
  }
  for (const place of document.querySelectorAll("[data-difference]")) {
    const apart = values[place.dataset.difference];
    const agree = apart < AGREE;
    place.classList.toggle("bad", wrong || !agree);
    if (wrong) place.textContent = "not compared";
    else if ("brief" in place.dataset) place.textContent = `${agree ? "✓" : "✗"} ${text(apart)}`;
    else place.textContent = `${agree ? "✓ They agree" : "✗ They differ"}: largest difference ${text(apart)} of the largest entry`;
  }
}

// The figure. A point is projected by turning the scene about the vertical, then towards the viewer.

const WIDTH = 500, HEIGHT = 370;

function projected([x, y, z = 0]) {
  const [a, b, c] = [x - ABOUT.centre[0], y - ABOUT.centre[1], z - (ABOUT.centre[2] ?? 0)];
  const unit = HEIGHT / 2 / ABOUT.reach;
  if (ABOUT.flat) return [WIDTH / 2 + unit * a, HEIGHT / 2 - unit * b, 0];
  const [cy, sy, cp, sp] = [Math.cos(view.yaw), Math.sin(view.yaw), Math.cos(view.pitch), Math.sin(view.pitch)];
  const right = cy * a - sy * b, away = sy * a + cy * b;
  return [WIDTH / 2 + unit * right, HEIGHT / 2 - unit * (cp * c + sp * away), cp * away - sp * c];
}

const points = (flat, n) => Array.from({ length: flat.length / n }, (_, k) => Array.from(flat).slice(n * k, n * k + n));
const path = (list) => "M" + list.map(([x, y]) => `${x.toFixed(1)} ${y.toFixed(1)}`).join("L");
const FACES = [[0, 1, 3, 2], [4, 5, 7, 6], [0, 1, 5, 4], [2, 3, 7, 6], [0, 2, 6, 4], [1, 3, 7, 5]];

function letter(at, style, label, dx = 8, dy = -8) {
  return label ? `<text class="${style}" x="${(at[0] + dx).toFixed(1)}" y="${(at[1] + dy).toFixed(1)}">${label}</text>` : "";
}

// 1, 2 or 5 times a power of ten, not below x
function round(x) {
  const power = 10 ** Math.floor(Math.log10(x));
  return power * [1, 2, 5, 10].find((n) => n * power >= x * (1 - 1e-9));
}

// Each kind: (points in space, shape, scale of arrows) to a list of [depth, SVG].
const KINDS = {
  box([corners], shape) {
    const at = corners.map(projected);
    const top = at.reduce((found, p) => (p[1] < found[1] ? p : found));
    const faces = FACES.map((face) => {
      const own = face.map((k) => at[k]);
      return [own.reduce((sum, p) => sum + p[2] / 4, 0), `<path class="face ${shape.style}" d="${path(own)}Z"/>`];
    });
    return [...faces, [-9, letter(top, shape.style, shape.label, -8, -7)]];
  },
  area([corners], shape) {
    const at = corners.map(projected);
    const middle = at.reduce((sum, p) => sum.map((x, k) => x + p[k] / at.length), [0, 0, 0]);
    return [[middle[2], `<path class="face ${shape.style}" d="${path(at)}Z"/>`], [-9, letter(middle, shape.style, shape.label)]];
  },
  line([list], shape) {
    const at = list.map(projected);
    return [[at[0][2], `<path class="line ${shape.style}" d="${path(at)}"/>` + letter(at.at(-1), shape.style, shape.label)]];
  },
  dot([list], shape) {
    return list.map(projected).map((at) => [
      at[2] - 0.02,
      `<circle class="${shape.style}" cx="${at[0].toFixed(1)}" cy="${at[1].toFixed(1)}" r="4.5"/>` + letter(at, shape.style, shape.label),
    ]);
  },
  circle([[centre], [rim]], shape) {
    const a = projected(centre), b = projected(rim);
    const size = Math.hypot(b[0] - a[0], b[1] - a[1]);
    return [[1, `<circle class="face ${shape.style}" cx="${a[0].toFixed(1)}" cy="${a[1].toFixed(1)}" r="${size.toFixed(1)}"/>` +
      `<path class="line ${shape.style}" d="${path([[a[0] - 5, a[1]], [a[0] + 5, a[1]]])}${path([[a[0], a[1] - 5], [a[0], a[1] + 5]])}"/>` +
      letter(a, shape.style, shape.label, -19, 14)]];
  },
  // a particle's area is its mass relative to the body's; it is hollow where the mass is negative
  particle([[place], [masses]], shape) {
    const at = projected(place), size = Math.max(3, Math.min(30, 13 * Math.sqrt(Math.abs(masses[0] / masses[1]))));
    const kind = masses[0] < 0 ? "hollow" : "";
    return [[-1, `<circle class="${shape.style} ${kind}" cx="${at[0].toFixed(1)}" cy="${at[1].toFixed(1)}" r="${size.toFixed(1)}"/>` +
      letter(at, shape.style, shape.label, size + 2, size + 8)]];
  },
  arrow([[from], [vector]], shape, scale) {
    const tip = from.map((x, k) => x + (vector[k] ?? 0) / scale);
    const a = projected(from), b = projected(tip);
    const [dx, dy] = [b[0] - a[0], b[1] - a[1]], size = Math.hypot(dx, dy);
    if (!(size > 1)) return [];
    const [ux, uy] = [dx / size, dy / size], head = Math.min(11, size);
    const wing = (side) => [b[0] - head * ux + side * 0.45 * head * uy, b[1] - head * uy - side * 0.45 * head * ux];
    return [[Math.min(a[2], b[2]) - 0.05,
      `<path class="stem ${shape.style}" d="${path([a, [b[0] - 0.7 * head * ux, b[1] - 0.7 * head * uy]])}"/>` +
      `<path class="${shape.style}" d="${path([b, wing(1), wing(-1)])}Z"/>` + letter(b, shape.style, shape.label, 6 + 4 * ux, 4 + 8 * uy)]];
  },
};

const UNITS = { force: "N", motion: "m/s²", couple: "N m", velocity: "m/s" };

function draw(values) {
  const scales = {};
  const parts = ABOUT.shapes.map((shape) => ({
    shape,
    own: shape.keys.map((key) => points(values[key], ABOUT.flat ? 2 : 3)),
    finite: shape.keys.every((key) => Array.from(values[key]).every(Number.isFinite)),
  }));
  for (const { shape, own, finite } of parts) {
    if (shape.kind !== "arrow" || !finite) continue;
    scales[shape.style] = Math.max(scales[shape.style] ?? 0, Math.hypot(...own[1][0]));
  }
  for (const style in scales) scales[style] = scales[style] > 0 ? round(scales[style] / (0.75 * ABOUT.reach)) : 1;
  const drawn = parts.filter((part) => part.finite).flatMap(({ shape, own }) => KINDS[shape.kind](own, shape, scales[shape.style]));
  drawn.sort((a, b) => b[0] - a[0]);
  figure.setAttribute("viewBox", `0 0 ${WIDTH} ${HEIGHT}`);
  figure.innerHTML = drawn.map((part) => part[1]).join("");
  const told = Object.entries(scales).map(([style, scale]) => `<span class="${style}">→ 1 m of arrow: ${scale} ${UNITS[style] ?? ""}</span>`);
  document.getElementById("scales").innerHTML = told.join("") + (ABOUT.flat ? "" : "<span>Drag to turn.</span>");
}

function turn(yaw, pitch) {
  view.yaw += yaw;
  view.pitch = Math.max(-1.5, Math.min(1.5, view.pitch + pitch));
  draw(window.cardan.values);
}

if (!ABOUT.flat) {
  figure.classList.add("turns");
  figure.addEventListener("pointerdown", (event) => figure.setPointerCapture(event.pointerId));
  figure.addEventListener("pointermove", (event) => event.buttons && turn(event.movementX / 120, event.movementY / 120));
  const STEPS = { ArrowLeft: [-0.1, 0], ArrowRight: [0.1, 0], ArrowUp: [0, -0.1], ArrowDown: [0, 0.1] };
  figure.addEventListener("keydown", (event) => {
    if (!(event.key in STEPS)) return;
    event.preventDefault();
    turn(...STEPS[event.key]);
  });
}

// From the sliders to everything.

const shapes = new Map(ABOUT.values.map((value) => [value.key, value.shape]));

// Values by key from the array that the program gives: numbers, and arrays row by row.
function split(y) {
  let at = 0;
  return Object.fromEntries(ABOUT.values.map(({ key, shape }) => {
    const own = y.subarray(at, (at += shape.reduce((n, size) => n * size, 1)));
    return [key, shape.length ? own : own[0]];
  }));
}

function update() {
  const given = sliders.map((one) => one.input.valueAsNumber);
  const began = performance.now();
  const { y } = evaluate(given);
  const took = performance.now() - began;
  const values = split(y);
  const broken = ABOUT.rules.filter((rule) => !(values[rule.key] > 0)).map((rule) => rule.sentence);
  window.cardan.y = y;
  window.cardan.values = values;
  window.cardan.given = given;
  window.cardan.broken = broken;
  window.cardan.took = took;
  sliders.forEach((one, k) => {
    const now = document.getElementById(`${one.name}.now`);
    now.textContent = `${String(given[k]).replace("-", "−")} ${one.unit}`;
  });
  document.getElementById("told").textContent = broken.join(" ");
  document.getElementById("time").textContent = took < 0.1 ? "less than 0.1 ms" : `${took.toFixed(1)} ms`;
  show(values, broken.length > 0);
  draw(values);
}

function set(given) {
  sliders.forEach((one, k) => (one.input.value = given[k]));
  update();
}

window.cardan = { set, update, evaluate, view, values: {} };
for (const one of sliders) one.input.addEventListener("input", update);
document.getElementById("reset").addEventListener("click", () => set(ABOUT.sliders.map((one) => one.start)));
update();
document.body.dataset.ready = "";
