// The part of the page that simulates: buttons, sliders, and a spring that the pointer pulls with.

const SHORTEST_FRAME = 12; // ms of a frame for the simulation: a slow one shows slower, and the page still answers
const raised = (unit) => unit.replace("^2", "\u00b2").replace("^3", "\u00b3");
const LONGEST_FRAME = 0.1; // s of the clock: a page that was hidden does not catch up

// What numbers must be, by their rule; a sentence's end where they are not.
const RULES = {
  positive: (x) => (x > 0 ? "" : "must be above 0"),
  "not negative": (x) => (x >= 0 ? "" : "must not be negative"),
  "from 0 to 1": (x) => (x >= 0 && x <= 1 ? "" : "must be from 0 to 1"),
};

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
    section.append(made("details", { open: true }, made("summary", { textContent: "Simulate" }), status));
    return;
  }
  let simulator = null;
  try {
    simulator = await makeSimulator(about);
  } catch (error) {
    status.textContent = `This browser does not run the simulation: ${error.message}`;
    section.append(made("details", { open: true }, made("summary", { textContent: "Simulate" }), status));
    return;
  }
  const run = made("button", { type: "button", id: "simulating", title: "simulate from here, or pause (s)" });
  const shortcut = made("button", { type: "button", title: "simulate, or pause (s)" });
  const again = made("button", { type: "button", textContent: "Start again", title: "to the start that the sliders give" });
  const original = made("button", { type: "button", textContent: "Values as given" });
  const told = made("p", { className: "readings" });
  const hint = made("p", { className: "told", textContent: simulator.pulls ? "Drag a body to pull it by a spring." : "" });
  let tellContacts = () => {};
  const state = { playing: false, active: false, before: 0, pull: null, behind: 0 };
  const sliders = about.sliders.map((one) => (one.switch ? turned(one.name, one.value, changed) : slider(one.name, one.unit, one.low, one.high, one.value, changed, one.rule)));
  const starts = about.coordinates.map((c) => slider(c.name, c.unit, c.low, c.high, c.value, restarted));
  const rates = about.coordinates.map((c) => slider(c.name, c.rate_unit, -c.fast, c.fast, c.rate, restarted));
  byId("views").append(shortcut);
  const strip = makeStrip([...about.curves.map((one) => ({ ...one, of: (now) => one.at.map((k) => now[one.kind][k]) })),
    { name: "energy", unit: "J", curves: ["energy", "kinetic", "potential"], of: (_, { energy, kinetic, potential }) => [energy, kinetic, potential] }]);
  section.append(made("details", { open: true }, made("summary", { textContent: "Simulate" }),
    made("p", { className: "row" }, run, again), told, status, hint, ...(about.told ? [made("p", { className: "told", textContent: about.told })] : []), made("div", { className: "strip" }, ...strip.elements),
    ...contacts(),
    ...group("Values", sliders, true), ...group("Start", starts.filter((_, k) => about.coordinates[k].q >= 0), starts.length <= 8),
    ...group("Speed at the start", rates, false), made("p", { className: "row" }, original)));

  // What each stop, contact, friction and lock does now, and the length of the steps.
  function contacts() {
    if (!about.laws.length) return [];
    const rows = simulator.laws().map(({ name }) => {
      const does = made("span", {}), force = made("b", {});
      return { does, force, row: made("div", { className: "contact" }, made("span", { textContent: name, title: name }), does, force) };
    });
    tellContacts = () => simulator.laws().forEach(({ does, forces: [force, friction], unit }, k) => {
      rows[k].does.textContent = does;
      rows[k].force.textContent = force === undefined ? "" : `${shortly(force, 3)}${friction === undefined ? "" : `, ${shortly(friction, 3)}`} ${unit}`;
    });
    tellContacts();
    const field = made("input", { type: "number", step: "any", value: simulator.step });
    field.onchange = () => {
      const x = field.valueAsNumber;
      if (x > 0 && x <= 0.1) simulator.step = x;
      else say("The time step must be above 0 and at most 0.1 s; it stays as it was.");
      field.value = simulator.step;
    };
    const label = made("label", { title: "a shorter step is more exact, and takes longer" }, "time step, s ", field);
    return [made("details", { open: rows.length <= 8 }, made("summary", { textContent: about.title, title: "what each does, and its force; of a contact the force across, then friction" }), ...rows.map(({ row }) => row), label)];
  }

  function group(name, list, open) {
    return list.length ? [made("details", { open }, made("summary", { textContent: name }), ...list.map((one) => one.row))] : [];
  }

  // A slider with a field beside it, in which any value can be written.
  function slider(name, unit, low, high, value, use, rule = "any") {
    const range = made("input", { type: "range", min: low, max: high, step: "any", value });
    const field = made("input", { type: "number", step: "any", value: Number(value.toPrecision(5)) });
    const label = unit && unit !== "1" ? `${name}, ${unit}` : name;
    range.setAttribute("aria-label", label);
    field.setAttribute("aria-label", `${label}, as a number`);
    const one = { value, range, field, set(x) { one.value = x; range.value = x; field.value = Number(x.toPrecision(5)); } };
    range.oninput = () => { one.value = range.valueAsNumber; field.value = Number(one.value.toPrecision(4)); use(); };
    field.onchange = () => {
      const x = field.valueAsNumber, wrong = RULES[rule]?.(x) ?? "";
      if (Number.isFinite(x) && !wrong) { one.value = x; range.value = x; use(); return; }
      field.value = Number(one.value.toPrecision(5));
      say(`${name} ${wrong || "must be a number"}; it stays as it was.`);
    };
    one.row = made("div", { className: "slider" }, made("span", { textContent: name }), made("small", { textContent: unit === "1" ? "" : raised(unit) }), range, field);
    return one;
  }

  // A lock or latch: closed or open.
  function turned(name, value, use) {
    const check = made("input", { type: "checkbox", checked: value > 0.5 });
    const one = { value, set(x) { one.value = x; check.checked = x > 0.5; } };
    check.onchange = () => { one.value = Number(check.checked); use(); };
    one.row = made("label", {}, check, name);
    return one;
  }

  const values = (list) => list.map((one) => one.value);
  const say = (message) => (status.textContent = message || (about.sliders.some((one, k) => one.moves && one.value !== sliders[k].value) ? about.drawn : ""));

  // Values that cannot be had leave the mechanism, and the sliders, as they were.
  const every = [...sliders, ...starts, ...rates];
  let accepted = values(every);
  function answered(refusal) {
    if (refusal) every.forEach((one, k) => one.set(accepted[k]));
    else accepted = values(every);
    say(refusal);
    show();
  }

  function restarted() {
    state.active = true;
    answered(simulator.set(values(sliders), values(starts), values(rates)));
  }

  function changed() {
    if (!state.active || simulator.state().t === about.start.t) return restarted();
    answered(simulator.change(values(sliders)));
  }

  // Points and forces of contacts, as the scene has them.
  function touchingNow() {
    const found = new Array(6 * scene.leading().machine.contacts.length).fill(0), now = simulator.touching();
    about.touches.forEach((c, k) => { for (let i = 0; i < 6; i++) found[6 * c + i] = now[6 * k + i]; });
    return found;
  }

  let read = 0;
  function show() {
    const now = simulator.state(), { t } = now, quantities = simulator.quantities();
    showState(t, simulator.poses(), touchingNow());
    strip.add(now, quantities);
    if ((state.playing || state.pull) && performance.now() - read < 100) return;
    read = performance.now();
    strip.draw();
    tellContacts();
    const { energy, kinetic, gap } = quantities;
    const slower = state.playing && state.behind > 0.2 ? " \u00b7 slower than the clock" : "";
    told.textContent = `${t.toFixed(still ? 3 : places)} s \u00b7 energy ${shortly(energy, 5)} J, kinetic ${shortly(kinetic, 4)} J` +
      (about.programs.close ? (gap <= about.closed ? " \u00b7 loops closed" : ` \u00b7 loops open by ${gap.toPrecision(2)}`) : "") + slower;
  }

  const drawRope = () => (state.pull ? showPull(simulator.placeOf(state.pull.body, state.pull.point), state.pull.target) : showPull(null));

  function frame(now) {
    if (!state.playing && !state.pull) return;
    if (clock.state === undefined) return pause(); // the run plays again
    const dt = Math.min(Math.max(now - state.before, 0) / 1000, LONGEST_FRAME) * speed();
    state.before = now;
    const found = simulator.advance(dt, state.pull, SHORTEST_FRAME);
    state.behind = 0.9 * state.behind + 0.1 * (dt > 0 ? found.behind / dt : 0);
    if (found.message) say(found.message);
    if (!found.ok) {
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
    if (about.floating >= 0 && byId("follow").value === "") byId("follow").value = about.floating; // it would fall out of sight
    if (state.active) show();
    else restarted();
    state.playing = true;
    tell();
    if (!state.pull) go();
  }

  function pause() {
    state.playing = false;
    tell();
    if (state.active && clock.state !== undefined) show(); // the numbers of where it stopped
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
    starts.forEach((one, k) => one.set(about.coordinates[k].value));
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
      if (!simulator.pulls || !state.active || clock.state === undefined) return false;
      const playing = state.playing;
      const { low, high } = scene.extent(GROUND_AXES, false);
      state.pull = { ...simulator.springFor(body, point, Math.max(about.size, size(minus(high, low)) / 2)), target: world };
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
  window.cardan.simulation = { simulator, makeSimulator, state, pause, resume, restarted, sliders, starts, rates };
  document.body.dataset.simulates = "yes";
}

if (ABOUT.simulate && !ABOUT.inline) await startSimulation(ABOUT.simulate, byId("simulate"));
