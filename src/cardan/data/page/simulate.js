// A simulation in the page: WebAssembly of the equations of motion, sliders, and a spring that the pointer pulls with.
// `makeSimulator` runs the programs; `startSimulation` fills the section of the page. Nothing here knows mechanics: what
// is computed was recorded by Cardan and compiled from the LLVM IR of its kernels (results/page/program.py).

const PAGE_OF_MEMORY = 65536;

// A program as a function from an object of arrays, one for each input by its name, to one of outputs.
async function loadedProgram(program, bytes, stack) {
  const base = program.pages * PAGE_OF_MEMORY + stack;
  const ports = [...program.inputs, ...program.outputs];
  const count = ports.reduce((sum, [, size]) => sum + size, 0) + program.scratch;
  const memory = new WebAssembly.Memory({ initial: Math.ceil((base + 8 * count) / PAGE_OF_MEMORY) });
  const top = new WebAssembly.Global({ value: "i32", mutable: true }, base);
  const { instance } = await WebAssembly.instantiate(bytes, { env: { __linear_memory: memory, __stack_pointer: top } });
  let at = base;
  const views = ports.map(([name, size]) => [name, new Float64Array(memory.buffer, at, size), (at += 8 * size)]);
  const inputs = views.slice(0, program.inputs.length);
  const outputs = views.slice(program.inputs.length);
  return (given) => {
    for (const [name, view] of inputs) {
      if (typeof given[name] === "number") view[0] = given[name];
      else view.set(given[name]);
    }
    instance.exports.call(base);
    return Object.fromEntries(outputs.map(([name, view]) => [name, view.slice()]));
  };
}

// Stiffness and damping of the pointer's spring: it holds the whole weight at a tenth of the size of the mechanism, and
// is critically damped for the inertia that the pulled point has.
const WEIGHT_AT = 0.1, EARTH = 9.81;
const MARCH = 64; // steps of one call; between two calls the clock is looked at
const PARTS = [8, 64, 512]; // of a change of values on which the loops stay closed

async function makeSimulator(about) {
  const programs = {}, packed = Uint8Array.from(atob(about.code), (c) => c.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"));
  const code = new Uint8Array(await new Response(stream).arrayBuffer());
  await Promise.all(Object.entries(about.programs).map(async ([name, one]) => {
    programs[name] = await loadedProgram(one, code.subarray(...one.code), about.stack);
  }));
  const { tau } = about.start;
  const p = Float64Array.from(about.p); // values that hold now
  const holds = about.coordinates.filter((c) => c.hold >= 0);
  const added = new Float64Array(3 * holds.length); // by coordinate: value and rate beyond those at the start, and 0
  const names = about.programs.march.outputs.map(([name]) => name);
  const first = { p: p.slice(), added: added.slice(), q: Float64Array.from(about.start.q), v: Float64Array.from(about.start.v) };
  let state, shown, nearStart = { ...first };

  function begin(t, q, v) {
    const zero = Object.fromEntries(about.programs.march.outputs.map(([name, size]) => [name, new Float64Array(size)]));
    state = { ...zero, t: [t], q, v, h: [1e-6] };
    look();
  }

  function look() {
    shown = programs.show({ q: state.q, v: state.v, t: state.t, p });
  }

  function setPull(pull) {
    const put = (name, value) => p.set(value, about.pull[name][0]);
    put("body", [pull ? pull.body : -1]);
    put("point", pull ? pull.point : [0, 0, 0]);
    put("target", pull ? pull.target : [0, 0, 0]);
    put("stiffness", [pull ? pull.stiffness : 0]);
    put("damping", [pull ? pull.damping : 0]);
  }

  // The state that Newton's method finds while the values go from one set to another; null where a loop stays open.
  function followed(program, t, q, v, from, to) {
    for (const parts of PARTS) {
      let x = { q, v }, k = 0;
      while (k < parts) {
        k += 1;
        const values = from.map((a, i) => a + ((to[i] - a) * k) / parts);
        let turns = 0;
        do x = program({ ...x, gap: 0, t, p: values, limit: about.newton });
        while (!(x.gap[0] <= about.closed) && ++turns < 8);
        if (!(x.gap[0] <= about.closed)) break;
        if (k === parts) return x;
      }
    }
    return null;
  }

  const joined = (a, b) => { const both = new Float64Array(a.length + b.length); both.set(a); both.set(b, a.length); return both; };

  // Parameters, by slider, and the start, by coordinate. Returns a sentence if the loops do not close; empty otherwise.
  function set(parameters, q, v) {
    setPull(null);
    about.sliders.forEach((slider, k) => slider.at.forEach((i, j) => {
      p[i] = slider.base[j] * parameters[k];
    }));
    const start = { q: first.q.slice(), v: first.v.slice() };
    about.coordinates.forEach((c, k) => {
      if (c.hold < 0) [start.q[c.q], start.v[c.v]] = [q[k], v[k]];
      else added.set([q[k] - c.value, v[k], 0], 3 * c.hold);
    });
    if (programs.close) {
      const to = joined(p, added), from = joined(nearStart.p, nearStart.added);
      const found = followed(programs.close, about.start.t, nearStart.q, nearStart.v, from, to);
      if (!found) {
        p.set(nearStart.p);
        added.set(nearStart.added);
        begin(about.start.t, nearStart.q, nearStart.v);
        return about.open;
      }
      [start.q, start.v] = [found.q, found.v];
    }
    nearStart = { p: p.slice(), added: added.slice(), ...start };
    begin(about.start.t, start.q, start.v);
    return "";
  }

  // Parameters while it moves; the state is brought onto the loops of the new values.
  function change(parameters) {
    const before = p.slice();
    about.sliders.forEach((slider, k) => slider.at.forEach((i, j) => {
      p[i] = slider.base[j] * parameters[k];
    }));
    if (programs.project) {
      const found = followed(programs.project, state.t[0], state.q, state.v, before, p);
      if (!found) {
        p.set(before);
        return about.open;
      }
      [state.q, state.v] = [found.q, found.v];
    }
    look();
    return "";
  }

  function stepped(program, from, end, limit) {
    return program({ ...from, ...about.control, end, tau, p, limit });
  }

  // Near a singular position some careful steps are taken, as by cd.simulate; null if they lead nowhere.
  function carefully(end) {
    if (!programs.careful) return null;
    const near = programs.project({ q: state.q, v: state.v, gap: 0, t: state.t, p, limit: about.newton });
    const start = { ...state, q: near.q, v: near.v, outcome: [0], h: [state.h[0] * about.careful.h] };
    Object.assign(start, programs.evaluate({ t: start.t, q: start.q, v: start.v, tau, p }));
    const after = stepped(programs.careful, start, end, about.careful.limit);
    return after.outcome[0] === 0 && after.t[0] > start.t[0] ? after : null;
  }

  // Advances by `dt` seconds, or less if `budget` milliseconds are over before.
  function advance(dt, pull = null, budget = Infinity) {
    setPull(pull);
    const began = performance.now(), end = state.t[0] + dt;
    Object.assign(state, programs.evaluate({ t: state.t, q: state.q, v: state.v, tau, p }), { outcome: [0] });
    let message = "";
    while (state.t[0] < end && performance.now() - began < budget) {
      let next = stepped(programs.march, state, end, MARCH);
      if (next.outcome[0] === about.careful.outcome) {
        state = { ...next };
        next = carefully(end);
        if (!next) message = about.sentences[9];
      } else if (next.outcome[0] !== 0) message = about.sentences[next.outcome[0]];
      if (message) break;
      state = next;
    }
    look();
    const { t, q, v } = state;
    return { t: t[0], q, v, ok: !message, message, behind: end - t[0] };
  }

  // How much mass a point of a body seems to have, kg: from the power of a force of 1 N on what it accelerates.
  function inertiaOf(body, point) {
    const { t, q, v } = state;
    const at = placeOf(body, point);
    let sum = 0;
    for (const direction of [[1, 0, 0], [0, 1, 0], [0, 0, 1]]) {
      const target = at.map((x, k) => x + direction[k]);
      const pulled = (rates, on) => {
        setPull(on ? { body, point, target, stiffness: 1, damping: 0 } : null);
        return programs.evaluate({ t, q, v: rates, tau, p });
      };
      const a = pulled(v, true).a, a0 = pulled(v, false).a;
      const change = a.map((x, k) => x - a0[k]);
      sum += pulled(change, true).power[0] - pulled(change, false).power[0];
    }
    setPull(null);
    return sum > 0 ? 3 / sum : about.mass;
  }

  // Where a point of a body is, in ground axes.
  function placeOf(body, point) {
    const [x, y, z, w, a, b, c] = shown.poses.subarray(7 * body, 7 * body + 7);
    const [u, s, r] = point;
    const d = [b * r - c * s, c * u - a * r, a * s - b * u];
    return [
      x + u + 2 * (w * d[0] + b * d[2] - c * d[1]),
      y + s + 2 * (w * d[1] + c * d[0] - a * d[2]),
      z + r + 2 * (w * d[2] + a * d[1] - b * d[0]),
    ];
  }

  function springFor(body, point, size) {
    const stiffness = (about.mass * EARTH) / (WEIGHT_AT * size);
    return { body, point, stiffness, damping: 2 * Math.sqrt(stiffness * inertiaOf(body, point)) };
  }

  begin(about.start.t, first.q, first.v);
  return {
    names, set, change, advance, springFor, placeOf,
    state: () => ({ t: state.t[0], q: state.q, v: state.v }),
    poses: () => shown.poses,
    quantities: () => ({
      kinetic: shown.kinetic[0], potential: shown.potential[0], energy: shown.kinetic[0] + shown.potential[0], gap: shown.gap[0],
    }),
    ranges: { sliders: about.sliders, coordinates: about.coordinates },
  };
}

// The section of the page: buttons, sliders, and what they have led to.
const SHORTEST_FRAME = 12; // ms of a frame for the simulation: a slow one shows slower, and the page still answers
const LONGEST_FRAME = 0.1; // s of the clock: a page that was hidden does not catch up

function made(tag, properties = {}, ...children) {
  const element = Object.assign(document.createElement(tag), properties);
  element.append(...children);
  return element;
}

async function startSimulation(about, section) {
  section.hidden = false;
  const status = made("p", { className: "told", role: "status" });
  if (about.reason) {
    status.textContent = about.reason;
    section.append(made("details", {}, made("summary", { textContent: "Simulate" }), status));
    return;
  }
  let simulator = null;
  try {
    simulator = await makeSimulator(about);
  } catch (error) {
    status.textContent = `This browser does not run the simulation: ${error.message}`;
    section.append(made("details", {}, made("summary", { textContent: "Simulate" }), status));
    return;
  }
  const run = made("button", { type: "button", id: "simulating", title: "simulate from here, or pause (s)" });
  const shortcut = made("button", { type: "button", title: "simulate, or pause (s)" });
  const again = made("button", { type: "button", textContent: "Start again", title: "to the start that the sliders give" });
  const original = made("button", { type: "button", textContent: "Values as given" });
  const told = made("p", { className: "readings" });
  const hint = made("p", { className: "told", textContent: "Drag a body to pull it by a spring." });
  const state = { playing: false, active: false, before: 0, pull: null, behind: 0 };
  const sliders = about.sliders.map((one) => slider(one.name, one.unit, one.low, one.high, one.value, changed));
  const places = about.coordinates.map((c) => slider(c.name, c.unit, c.low, c.high, c.value, restarted));
  const rates = about.coordinates.map((c) => slider(c.name, c.rate_unit, -c.fast, c.fast, c.rate, restarted));
  const rope = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  rope.id = "rope";
  rope.setAttribute("aria-hidden", "true");
  rope.innerHTML = '<line stroke="#d1495b" stroke-width="2.5"/><circle r="5" fill="#d1495b"/>';
  rope.style.cssText = "position: absolute; inset: 0; width: 100%; height: 100%; pointer-events: none";
  rope.style.display = "none";
  byId("stage").append(rope);
  byId("views").append(shortcut);
  section.append(made("details", { open: true }, made("summary", { textContent: "Simulate" }),
    made("p", { className: "row" }, run, again), told, status, hint,
    ...group("Values", sliders, true), ...group("Start", places, places.length <= 8),
    ...group("Speed at the start", rates, false), made("p", { className: "row" }, original)));

  function group(name, list, open) {
    return list.length ? [made("details", { open }, made("summary", { textContent: name }), ...list.map((one) => one.row))] : [];
  }

  // A slider with a field beside it, in which any value can be written.
  function slider(name, unit, low, high, value, use) {
    const range = made("input", { type: "range", min: low, max: high, step: "any", value });
    const field = made("input", { type: "number", step: "any", value: Number(value.toPrecision(5)) });
    const label = `${name}, ${unit}`;
    range.setAttribute("aria-label", label);
    field.setAttribute("aria-label", `${label}, as a number`);
    const one = { value, range, field, set(x) { one.value = x; range.value = x; field.value = Number(x.toPrecision(5)); } };
    range.oninput = () => { one.value = range.valueAsNumber; field.value = Number(one.value.toPrecision(4)); use(); };
    field.onchange = () => {
      if (Number.isFinite(field.valueAsNumber)) { one.value = field.valueAsNumber; range.value = one.value; use(); }
      else field.value = Number(one.value.toPrecision(5));
    };
    one.row = made("div", { className: "slider" }, made("span", { textContent: name }), made("small", { textContent: unit }), range, field);
    return one;
  }

  const values = (list) => list.map((one) => one.value);
  const say = (message) => (status.textContent = message);

  function restarted() {
    state.active = true;
    say(simulator.set(values(sliders), values(places), values(rates)));
    show();
  }

  function changed() {
    if (!state.active || simulator.state().t === about.start.t) return restarted();
    say(simulator.change(values(sliders)));
    show();
  }

  let read = 0;
  function show() {
    const { t } = simulator.state();
    showState(t, simulator.poses());
    if (state.playing && performance.now() - read < 100) return;
    read = performance.now();
    const { energy, kinetic, gap } = simulator.quantities();
    const slower = state.playing && state.behind > 0.2 ? " \u00b7 slower than the clock" : "";
    told.textContent = `${t.toFixed(3)} s \u00b7 energy ${shortly(energy, 5)} J, kinetic ${shortly(kinetic, 4)} J` +
      (about.programs.close ? ` \u00b7 gap of loops ${gap.toExponential(0)}` : "") + slower;
  }

  function drawRope() {
    rope.style.display = state.pull ? "" : "none";
    if (!state.pull) return;
    const from = camera.screen(simulator.placeOf(state.pull.body, state.pull.point)), to = camera.screen(state.pull.target);
    if (!from || !to) return;
    const [line, dot] = rope.children;
    [["x1", from[0]], ["y1", from[1]], ["x2", to[0]], ["y2", to[1]]].forEach(([name, x]) => line.setAttribute(name, x));
    dot.setAttribute("cx", to[0]);
    dot.setAttribute("cy", to[1]);
  }

  function frame(now) {
    if (!state.playing && !state.pull) return;
    const dt = Math.min(Math.max(now - state.before, 0) / 1000, LONGEST_FRAME) * speed();
    state.before = now;
    const found = simulator.advance(dt, state.pull, SHORTEST_FRAME);
    state.behind = 0.9 * state.behind + 0.1 * (dt > 0 ? found.behind / dt : 0);
    if (!found.ok) {
      say(found.message);
      pause();
      state.pull = null;
    }
    show();
    drawRope();
    requestAnimationFrame(frame);
  }

  function go() {
    state.before = performance.now();
    requestAnimationFrame(frame);
  }

  function resume() {
    if (state.playing) return;
    if (!state.active) restarted();
    state.active = state.playing = true;
    say("");
    tell();
    if (!state.pull) go();
  }

  function pause() {
    state.playing = false;
    tell();
  }

  function tell() {
    run.textContent = state.playing ? "Pause" : "Simulate";
    shortcut.textContent = state.playing ? "Pause" : "Simulate";
    for (const button of [run, shortcut]) button.setAttribute("aria-pressed", String(state.playing));
  }

  tell();
  run.onclick = shortcut.onclick = () => (state.playing ? pause() : resume());
  again.onclick = restarted;
  original.onclick = () => {
    sliders.forEach((one, k) => one.set(about.sliders[k].value));
    places.forEach((one, k) => one.set(about.coordinates[k].value));
    rates.forEach((one, k) => one.set(about.coordinates[k].rate));
    restarted();
  };
  document.addEventListener("keydown", (event) => {
    if (event.key !== "s" || event.ctrlKey || event.metaKey || event.altKey || /INPUT|SELECT|TEXTAREA/.test(event.target.tagName)) return;
    run.click();
  });
  // Pulling: only while simulated states are shown, so that a run can be turned by its bodies.
  window.cardan.drag = {
    start({ body, point, world }) {
      if (!state.active || clock.state === undefined) return false;
      const playing = state.playing;
      state.pull = { ...simulator.springFor(body, point, about.size), target: world };
      if (!playing) go();
      return true;
    },
    move(target) {
      if (state.pull) state.pull = { ...state.pull, target };
    },
    end() {
      state.pull = null;
      drawRope();
      show();
    },
  };
  window.cardan.simulation = { simulator, state, pause, resume, restarted, sliders, places, rates };
}

if (ABOUT.simulate && !ABOUT.inline) await startSimulation(ABOUT.simulate, byId("simulate"));
