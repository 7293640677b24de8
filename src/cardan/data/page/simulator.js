// A model that moves in the page. What is computed was recorded by Cardan and compiled from the LLVM IR of its kernels
// (results/page/program.py); nothing here knows mechanics.

// Stiffness and damping of the pointer's spring: it holds the whole weight at a tenth of the size of the mechanism, and
// is critically damped for the inertia that the pulled point has.
const WEIGHT_AT = 0.1, EARTH = 9.81;
const MARCH = 64; // steps of one call; between two calls the clock is looked at
const EVENT = 1; // an outcome: there is an event in the next step
const SHORT = 1e-8; // s: the first step after an event
const MANY = [[3, 2e-6], [20, 1e-3]]; // so many events within such a time, s, accumulate
const CLOSED = 1e-9; // m or rad: a gap up to this is closed
const NEAR = 1e-6; // of a step: a time so near to its end is the end
const STILL = 1e-9; // m/s or rad/s: friction that moves slower sticks; steps end a little beside their middle
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
  const pulls = "body" in about.pull; // large trees have no spring for the pointer
  const zeros = () => Object.fromEntries(about.programs.march.outputs.map(([name, size]) => [name, new Float64Array(size)]));
  // Of steps of fixed length: `step`, s, counted from `origin`. `aim` is the time that the clock asked for.
  let force = about.laws.map(() => 0); // of each row with a law in the last step
  let step = about.step, origin, aim, state, shown, nearStart = { ...first };
  const elements = [...new Set(about.laws.map(({ element }) => element))]
    .map((name) => ({ name, rows: about.laws.flatMap(({ element }, k) => (element === name ? [k] : [])) }));
  let met = []; // times of events, s
  let due = []; // times of the next samples, s, by update

  function begin(t, q, v) {
    for (const k of about.again) p[k] = first.p[k];
    state = { ...zeros(), t: [t], q, v, x: about.states.map((k) => p[k]), h: [step || 1e-6] };
    aim = t;
    force = about.laws.map(() => 0);
    met = [];
    due = about.updates.map(() => ({ t, count: 0 }));
    sample();
    look();
  }

  // Sampled variables whose time has come take their next values, and the steps begin anew.
  function sample() {
    settle();
    about.updates.forEach((update, k) => {
      if (state.t[0] < due[k].t) return;
      p.set(programs[update.program]({ t: state.t, q: state.q, v: state.v, tau, p }).next);
      due[k] = { t: about.start.t + update.every * (due[k].count + 1), count: due[k].count + 1 };
    });
    origin = state.t[0];
    Object.assign(state, steady(), evaluated());
  }

  // What a state begins with again: forces of rows with laws are sought from nothing, steps have their own length.
  const steady = () => Object.fromEntries(["force", "restoring", "tries", "left", ...(step ? ["h"] : [])].filter((name) => state[name])
    .map((name) => [name, name === "h" ? [step] : new Float64Array(state[name].length)]));
  const evaluated = () => programs.evaluate({ t: state.t, q: state.q, v: state.v, tau, p });
  const settle = () => about.states.forEach((k, i) => (p[k] = state.x[i])); // integrated variables are parameters, too

  function look() {
    settle();
    shown = programs.show({ q: state.q, v: state.v, t: state.t, p, x: force });
  }

  // A gap that the state closes too far, as a sentence; less than `before` it may be closed already.
  function violated(before = null) {
    const k = about.laws.findIndex(({ law }, i) => law === "unilateral" && shown.gaps[i] < Math.min(before?.[i] ?? 0, 0) - about.violated - step);
    return k < 0 ? "" : `${about.laws[k].name}: its gap would be ${Number(shown.gaps[k].toPrecision(3))} ${about.laws[k].unit}, and must not be negative; everything stays as it was.`;
  }

  function setPull(pull) {
    if (!pulls) return;
    const put = (name, value) => p.set(value, about.pull[name][0]);
    put("body", [pull ? pull.body : -1]);
    put("point", pull ? pull.point : [0, 0, 0]);
    put("target", pull ? pull.target : [0, 0, 0]);
    put("stiffness", [pull ? pull.stiffness : 0]);
    put("damping", [pull ? pull.damping : 0]);
  }

  // The state that Newton's method finds while the values go from one set to another; null where a loop stays open, or
  // the state jumps, as beyond a singular position.
  function followed(program, t, q, v, from, to) {
    for (const parts of PARTS) {
      let x = { q, v }, k = 0;
      while (k < parts) {
        k += 1;
        const values = from.map((a, i) => a + ((to[i] - a) * k) / parts), before = x.q;
        let turns = 0;
        do x = program({ ...x, gap: 0, t, p: values, limit: about.newton });
        while (!(x.gap[0] <= about.closed) && ++turns < 8);
        if (!(x.gap[0] <= about.closed) || !x.q.every((a, i) => Math.abs(a - before[i]) <= about.longest[i])) break;
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
      if (c.hold >= 0) return void added.set([q[k] - c.value, v[k], 0], 3 * c.hold);
      start.v[c.v] = v[k];
      if (c.q >= 0) start.q[c.q] = q[k];
    });
    if (programs.close) {
      const to = joined(p, added); // from where the sliders were before, or from the start as it was given
      const from = ({ p: values, added: more, q, v }) => followed(programs.close, about.start.t, q, v, joined(values, more), to);
      const found = from(nearStart) ?? from(first);
      if (!found) {
        p.set(nearStart.p);
        added.set(nearStart.added);
        begin(about.start.t, nearStart.q, nearStart.v);
        return about.open;
      }
      [start.q, start.v] = [found.q, found.v];
    }
    begin(about.start.t, start.q, start.v);
    const wrong = violated();
    if (wrong) {
      p.set(nearStart.p);
      added.set(nearStart.added);
      begin(about.start.t, nearStart.q, nearStart.v);
      return wrong;
    }
    nearStart = { p: p.slice(), added: added.slice(), ...start };
    return "";
  }

  // Parameters while it moves; the state is brought onto the loops of the new values.
  function change(parameters) {
    const before = p.slice(), { q, v } = state, { gaps } = shown;
    about.sliders.forEach((slider, k) => slider.at.forEach((i, j) => {
      p[i] = slider.base[j] * parameters[k];
    }));
    const inputs = () => (state.x = about.states.map((k) => p[k])); // of those that follow straight lines
    const back = (sentence) => {
      p.set(before);
      Object.assign(state, { q, v });
      inputs();
      look();
      return sentence;
    };
    if (programs.project) {
      const found = followed(programs.project, state.t[0], q, v, before, p);
      if (!found) return back(about.open);
      [state.q, state.v] = [found.q, found.v];
    }
    inputs();
    look();
    const wrong = violated(gaps);
    return wrong ? back(wrong) : "";
  }

  function stepped(program, from, end, limit) {
    return program({ ...from, ...about.control, end, tau, p, limit });
  }

  // Near a singular position some careful steps are taken, as by cd.simulate; null if they lead nowhere.
  function carefully(end) {
    if (!programs.careful) return null;
    const near = programs.project({ q: state.q, v: state.v, gap: 0, t: state.t, p, limit: about.newton });
    const start = { ...state, q: near.q, v: near.v, outcome: [0] }, t = start.t[0];
    Object.assign(start, programs.evaluate({ t, q: start.q, v: start.v, tau, p }));
    for (const [steps, parts, limit] of about.tries) {
      const till = step ? Math.min(t + steps * step, end) : end;
      const after = stepped(programs.careful, { ...start, h: [step ? (till - t) / parts : state.h[0] * about.careful.h] }, till, limit);
      if (after.outcome[0] === 0 && after.t[0] > t) return step ? { ...after, h: [step] } : after;
    }
    return null;
  }

  // Advances by `dt` seconds, or less if `budget` milliseconds are over before. Steps of fixed length are whole ones.
  function advance(dt, pull = null, budget = Infinity) {
    setPull(pull);
    const began = performance.now(), inTime = () => performance.now() - began < budget;
    aim += dt;
    if (!step) Object.assign(state, evaluated());
    state.outcome = [0];
    let message = "", end;
    do {
      const next = Math.min(...due.map(({ t }) => t)), whole = step ? origin + Math.floor((aim - origin) / step + NEAR) * step : aim;
      let again = false;
      end = whole > next - NEAR * (step || NEAR) ? next : whole;
      while (!message && state.t[0] < end && inTime()) {
        let after = stepped(programs.march, state, end, MARCH);
        if (after.outcome[0] === about.careful.outcome) {
          state = { ...after };
          after = carefully(end);
          if (!after) message = about.sentences[9];
        } else if (after.outcome[0] === EVENT) {
          state = after;
          message = meet();
          again = true;
          break;
        } else if (after.outcome[0] !== 0) message = about.sentences[after.outcome[0]];
        if (!message) state = after;
        force = about.laws.map((_, k) => about.forces.reduce((sum, name) => sum + state[name][k], 0));
      }
      if (!message && state.t[0] >= next) sample();
      else if (!again) end = -1;
    } while (!message && end >= 0 && inTime());
    const late = Boolean(message) || !inTime();
    const behind = late ? aim - state.t[0] : 0;
    if (late || !step) aim = state.t[0];
    look();
    const { t, q, v } = state;
    const warning = state.e[0] > about.unsolved && about.laws.length ? about.coarse : "";
    return { t: t[0], q, v, ok: !message, message: message || warning, behind };
  }

  // An event in the step that comes: the state just past it, what it changes there, and a new beginning of the steps.
  // Returns a sentence where events accumulate.
  function meet() {
    const given = Object.fromEntries(about.programs.locate.inputs.map(([name, size]) => [name, new Float64Array(size)]));
    const past = programs.locate({ ...given, ...state, hi: state.h, tau, p, limit: about.trials }), kept = about.programs.march.outputs.map(([name]) => name);
    for (const name of kept) if (past[name]) state[name] = past[name];
    const crossed = about.events.map(({ direction }, k) => {
      const [before, after] = [past.g_lo[k], past.g[k]], up = before < 0 && after >= 0, down = before > 0 && after <= 0;
      return direction > 0 ? up : direction < 0 ? down : up || down;
    });
    settle();
    crossed.forEach((own, k) => {
      if (!own) return;
      const after = programs[`change ${k}`]({ t: state.t, q: state.q, v: state.v, tau, p });
      p.set(after.p_after);
      Object.assign(state, { v: after.v_after, x: about.states.map((i) => p[i]) });
    });
    met.push(state.t[0]);
    Object.assign(state, { outcome: [0], event: [-1], h: [SHORT] }, steady(), evaluated());
    if (step) { // what left the zero of an event by rounding is beyond it after a short step
      const after = stepped(programs.march, { ...state, h: [SHORT] }, state.t[0] + SHORT, MARCH);
      if (after.outcome[0] === 0) state = { ...after, h: [step] };
      Object.assign(state, evaluated()); // an impact in so short a step is no acceleration of the next
    }
    origin = state.t[0];
    return MANY.some(([count, time]) => met.length >= count && origin - met[met.length - count] < time) ? about.accumulate : "";
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

  // What each element with laws does, in a word, and its forces: across, and of friction.
  function laws() {
    return elements.map(({ name, rows }) => {
      const at = (law) => rows.filter((k) => about.laws[k].law === law), size = (list) => Math.hypot(...list.map((k) => force[k]));
      const gaps = at("unilateral"), slides = at("friction"), held = at("switched"), [first] = rows;
      const closed = gaps.find((k) => force[k] > 0 || shown.gaps[k] <= CLOSED);
      const fast = Math.hypot(...state.v), moves = Math.hypot(...slides.map((k) => shown.rates[k])) > STILL + Math.min((step * fast) ** 2, 1e-3) * fast;
      const holds = !held.length || about.laws[first].switch < 0 || p[about.laws[first].switch] > 0.5;
      let does = moves ? "slides" : "sticks";
      if (held.length) does = holds ? "holds" : "open";
      else if (gaps.length && closed === undefined) does = "open";
      else if (!slides.length) does = gaps.length > 1 ? about.laws[closed].row : "closed";
      const alike = rows.every((k) => about.laws[k].force === about.laws[first].force);
      const whole = rows.length === 1 ? [force[first]] : alike ? [size(rows)] : []; // along one row it has a sign
      const told = does === "open" ? [] : gaps.length ? [size(gaps), ...(slides.length ? [size(slides)] : [])] : whole;
      return { name, does, forces: told, unit: about.laws[first].force };
    });
  }

  begin(about.start.t, first.q, first.v);
  return {
    names, pulls, set, change, advance, springFor, placeOf,
    state: () => ({ t: state.t[0], q: state.q, v: state.v, p: p.slice(), gaps: shown.gaps, forces: force }),
    laws,
    get step() { return step; },
    set step(length) { // from here on
      step = length;
      sample();
    },
    poses: () => shown.poses,
    touching: () => shown.touching,
    quantities() {
      const { kinetic: [kinetic], potential: [potential], gap: [gap] } = shown;
      return { kinetic: kinetic > 1e-12 * Math.abs(potential) ? kinetic : 0, potential, energy: kinetic + potential, gap };
    },
    ranges: { sliders: about.sliders, coordinates: about.coordinates },
  };
}
