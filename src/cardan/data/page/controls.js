// Buttons, lists and keys.
const checkbox = (text, checked, change) => {
  const label = document.createElement("label"), check = document.createElement("input");
  check.type = "checkbox";
  check.checked = checked;
  check.onchange = () => change(check.checked);
  label.append(check, text);
  return label;
};
byId("play").onclick = () => play(!clock.playing);
function step(k) {
  const { time } = scene.leading(), at = sampleAt(time, clock.t);
  seek(time.values[Math.min(Math.max(at.low + Math.round(at.part) + k, 0), time.length - 1)]);
}
byId("back").onclick = () => step(-1);
byId("forth").onclick = () => step(1);
byId("scrub").oninput = (event) => { endState(); seek(scene.first() + Number(event.target.value) * (scene.last() - scene.first())); };
function fold(folded) {
  document.body.classList.toggle("folded", folded);
  byId("panelled").setAttribute("aria-expanded", String(!folded));
  if (!folded && window.innerWidth <= 760) byId("panel").scrollIntoView({ behavior: "smooth" });
}
fold(document.body.classList.contains("folded"));
byId("panelled").onclick = () => fold(!document.body.classList.contains("folded"));
function recolour() { readColours(); plots.draw(); soon(); }
byId("dark").onclick = () => { root.classList.toggle("dark"); recolour(); };
wantsDark.addEventListener("change", () => { root.classList.toggle("dark", wantsDark.matches); recolour(); });
byId("asked").onclick = () => byId("help").showModal();

scene.runs[0].machine.names.forEach((name, body) => byId("follow").append(new Option(name, body)));
scene.runs[0].machine.points.forEach((point, k) => byId("trace").append(new Option(point.name, k)));
byId("follow").onchange = () => { followed = null; soon(); };
byId("trace").onchange = traceNow;
byId("flat").onchange = () => { camera.flat = byId("flat").checked; soon(); };
for (const id of ["floor", "shadows", "names", "arrows", "cut", "depth", "turned"]) byId(id).oninput = soon;
for (const layer of Object.keys(ABOUT.layers)) {
  if (scene.over.has(layer) || !scene.machines.some(({ solids: own }) => own.some((solid) => solid.layer === layer))) continue;
  byId("layers").append(checkbox(layer, scene.layers[layer], (on) => { scene.layers[layer] = on; soon(); }));
}
for (const id of ["forces", "moments"]) byId(id).oninput = () => { scene.layers[id] = byId(id).checked; tellKey(); soon(); };
byId("arrows").addEventListener("input", () => tellKey());
if (scene.runs.some((run) => run.contacts)) byId("forced").textContent = "reaction and contact forces";
byId("arrowed").hidden = scene.runs.every((run) => !run.reactions);

// What the picture's lengths mean: squares of the grid, arrows.
function tellKey() {
  const scale = arrows(), lines = [["", `grid ${shortly(spacing, 3)} m`]];
  if (scene.layers.forces) lines.push([ABOUT.reactions.colours[0], `force, ${shortly(1 / scale.forces, 3)} N for 1 m`]);
  if (scene.layers.moments) lines.push([ABOUT.reactions.colours[1], `moment, ${shortly(1 / scale.moments, 3)} N m for 1 m`]);
  byId("key").replaceChildren(...lines.map(([colour, text]) => {
    const row = document.createElement("span"), swatch = document.createElement("i");
    swatch.style.background = colour;
    if (colour) row.append(swatch);
    row.append(text);
    return row;
  }));
}

// Several runs: together, or one of them.
function showRuns(wanted) {
  scene.runs.forEach((run, k) => (run.shown = wanted(k)));
  scene.arrange();
  plots.draw();
  markEvents();
  seek(clock.t);
}
if (scene.runs.length > 1) {
  byId("runs").hidden = false;
  const select = document.createElement("select");
  select.id = "which";
  select.setAttribute("aria-label", "runs to show");
  select.append(new Option("all together", ""), ...scene.runs.map((run, k) => new Option(run.label, k)));
  select.value = ABOUT.alone ?? "";
  select.onchange = () => { showRuns((k) => select.value === "" || k === Number(select.value)); if (ABOUT.alone !== null) setSpeed(usualSpeed()); lookHome(); };
  byId("runlist").append(select);
  if (ABOUT.alone === null && scene.runs.length <= 8) {
    for (const run of scene.runs) {
      const row = document.createElement("label"), swatch = document.createElement("span");
      swatch.className = "swatch";
      swatch.style.background = run.tint ? `rgb(${run.tint.map((x) => Math.round(255 * x)).join(" ")})` : "linear-gradient(90deg, #0072B2, #D55E00, #009E73)";
      row.append(swatch, run.label);
      byId("runlist").append(row);
    }
  }
}

// Events on the time line.
const LISTED = 500; // events
function markEvents() {
  const span = scene.last() - scene.first() || 1, events = eventsNow();
  byId("events").hidden = !events.length;
  byId("eventlist").replaceChildren(...events.slice(0, LISTED).map(({ name, time }) => {
    const line = document.createElement("button");
    line.textContent = `${time.toFixed(places)} s  ${name}`;
    line.onclick = () => seek(time);
    return line;
  }), ...(events.length > LISTED ? [`and ${events.length - LISTED} more`] : []));
  byId("marks").replaceChildren(...events.map(({ name, time }) => {
    const mark = document.createElement("button");
    mark.title = `${name}, ${shortly(time)} s`;
    mark.setAttribute("aria-label", `event ${mark.title}`);
    mark.style.left = `${(100 * (time - scene.first())) / span}%`;
    mark.onclick = () => seek(time);
    return mark;
  }));
}
const eventsNow = () => scene.runs.filter((run) => run.shown).flatMap((run) => run.events).sort((a, b) => a.time - b.time);
function toEvent(way) {
  const times_ = eventsNow().map(({ time }) => time), near = 1e-9 * (scene.last() - scene.first());
  const found = way > 0 ? times_.find((t) => t > clock.t + near) : times_.findLast((t) => t < clock.t - near);
  if (found !== undefined) seek(found);
}

// Measuring.
function setMeasure(on) {
  measure.on = on;
  measure.clear();
  byId("measure").setAttribute("aria-pressed", String(on));
  canvas.classList.toggle("exact", on);
  soon();
}
byId("measure").onclick = () => setMeasure(!measure.on);

const next = (id) => { const list = byId(id); list.selectedIndex = (list.selectedIndex + 1) % list.options.length; list.dispatchEvent(new Event("change")); list.dispatchEvent(new Event("input")); };
const toggle = (id) => byId(id).click();
const factor = (k) => setSpeed(Math.max(speed(), 1e-6) * k);
const KEYS = {
  " ": () => play(!clock.playing), ArrowLeft: () => step(-1), ArrowRight: () => step(1), Home: () => seek(scene.first()), End: () => seek(scene.last()),
  n: () => toEvent(1), b: () => toEvent(-1), "[": () => factor(0.5), "]": () => factor(2), h: lookHome, 1: VIEWS.front, 2: VIEWS.side, 3: VIEWS.top,
  o: () => toggle("flat"), f: () => next("follow"), t: () => next("trace"), r: () => toggle("forces"), x: () => next("cut"), m: () => setMeasure(!measure.on),
  l: () => toggle("names"), g: () => toggle("floor"), p: () => toggle("panelled"), d: () => toggle("dark"), "?": () => byId("help").showModal(), Escape: () => setMeasure(false),
};
document.addEventListener("keydown", (event) => {
  const { tagName, type } = event.target;
  if (event.ctrlKey || event.metaKey || event.altKey || !KEYS[event.key] || byId("help").open) return;
  if (tagName === "SELECT" || (tagName === "INPUT" && type === "number")) return;
  if (event.key === " " && ["BUTTON", "SUMMARY", "INPUT"].includes(tagName) && type !== "range") return;
  if (type === "range" && event.target.id !== "scrub" && event.key.startsWith("Arrow")) return;
  if (still && [" ", "ArrowLeft", "ArrowRight", "n", "b", "[", "]"].includes(event.key)) return;
  event.preventDefault();
  KEYS[event.key]();
});

// A run lasts some seconds, whatever its own duration; a round factor.
function usualSpeed() {
  const span = scene.last() - scene.first();
  if (!(span > 0) || ABOUT.live || (span >= 2 && span <= 60)) return 1;
  return span < 2 ? 1 / roundStep(5 / span) : roundStep(span / 40);
}
