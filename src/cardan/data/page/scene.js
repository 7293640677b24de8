// What is shown: machines (the solids of a model), and runs, each the motion of a machine. Entries of a machine are its
// bodies, the ground, spans (solids that stretch between points), a force and a moment of each joint, and a force of
// each contact.
function makeScene(about, arrays) {
  const OVER = new Set(["forces", "moments"]);
  const machines = about.machines.map((machine, k) => {
    const bodies = machine.bodies.length, ground = bodies, spans = bodies + 1, wrenches = spans + machine.spans.length;
    const touches = wrenches + 2 * machine.joints.length, entries = touches + machine.contacts.length, solids = [];
    const vertices = arrays["vertices" + k].values, triangles = arrays["triangles" + k].values;
    let v = 0, t = 0;
    for (const [entry, layer, corners, faces, colour, opacity, low, step] of machine.parts) {
      const own = cornersOf(vertices.subarray(3 * v, 3 * (v + corners)), triangles.subarray(3 * t, 3 * (t + faces)), low, step);
      v += corners;
      t += faces;
      const solid = { ...own, entry, layer, colour, opacity, clear: opacity < 1 };
      if (!OVER.has(layer)) solids.push(solid);
      else machine.joints.forEach((_, j) => solids.push({ ...solid, entry: wrenches + 2 * j + (layer === "moments" ? 1 : 0) }));
      if (layer === "forces") machine.contacts.forEach((_, c) => solids.push({ ...solid, entry: touches + c }));
    }
    for (const solid of solids) solid.box = boxOf(solid.position);
    return { ...machine, bodies, names: machine.bodies, ground, spans, spanList: machine.spans, wrenches, touches, entries, stride: 2 + 3 * entries, solids };
  });
  const runs = about.runs.map((run, k) => ({
    ...run, machine: machines[run.machine], shown: about.alone === null || k === about.alone, state: null,
    time: new Series(arrays["time" + k]), poses: new Series(arrays["poses" + k]),
    reactions: arrays["reactions" + k] ? new Series(arrays["reactions" + k]) : null,
    contacts: arrays["contacts" + k] ? new Series(arrays["contacts" + k]) : null,
    plots: run.plots,
  }));
  runs.forEach((run, k) => { // some curves are columns of the poses or reactions
    run.plots = run.plots.map((plot, p) => ({ ...plot, series: plot.source ? run[plot.source] : new Series(arrays[`plot${k}.${p}`]) }));
  });
  const scene = { machines, runs, over: OVER, places: new Float32Array(4 * ROW), groups: [], layers: { ...about.layers } };

  const first = () => Math.min(...runs.filter((run) => run.shown).map((run) => run.time.values[0]));
  const last = () => Math.max(...runs.filter((run) => run.shown).map((run) => run.time.values[run.time.length - 1]));
  Object.assign(scene, { first, last, leading: () => runs.find((run) => run.shown) ?? runs[0] });

  // Which runs are drawn, whole ones before ghosts, and where their placements are.
  scene.arrange = () => {
    const together = runs.filter((run) => run.shown).length > 1;
    for (const run of runs) run.faint = run.ghost && together;
    let texels = 0;
    scene.groups = machines.map((machine) => {
      const own = runs.filter((run) => run.shown && run.machine === machine), faint = own.filter((run) => run.faint);
      const order = [...own.filter((run) => !run.faint), ...faint];
      order.forEach((run, k) => (run.row = 4 * (texels + k * machine.stride)));
      const group = { machine, base: texels, stride: machine.stride, whole: order.length - faint.length, ghosts: faint.length };
      texels += order.length * machine.stride;
      return group;
    });
    scene.places = new Float32Array(4 * ROW * Math.ceil(Math.max(texels, 1) / ROW));
  };
  const entryAt = (run, entry) => run.row + 8 + 12 * entry;
  const bodyAt = (run, body) => entryAt(run, body < 0 ? run.machine.ground : body);
  scene.pointNow = ({ body, point }, run = scene.leading()) => apply(scene.places, bodyAt(run, body), point);
  scene.placement = (body, run = scene.leading()) => [...scene.places.subarray(bodyAt(run, body), bodyAt(run, body) + 12)];
  scene.bodyPoint = (body, world, run = scene.leading()) => applyBack(scene.places, bodyAt(run, body), world);

  // Put everything where it is at a time.
  scene.move = (t, arrows) => {
    const m = scene.places;
    for (const run of runs) {
      if (!run.shown) continue;
      const { machine } = run, at = sampleAt(run.time, t), P = run.state;
      run.at = at;
      m.set([...(run.tint ?? [0, 0, 0]), run.tint && run.faint ? 0.75 : 0, run.faint ? about.faint : 1], run.row);
      for (let body = 0; body < machine.bodies; body++) {
        const o = entryAt(run, body), i = 7 * body;
        if (P) setPlacement(m, o, P[i], P[i + 1], P[i + 2], P[i + 3], P[i + 4], P[i + 5], P[i + 6]);
        else placeBody(run.poses, body, at, m, o);
      }
      setPlacement(m, entryAt(run, machine.ground), 0, 0, 0, 1, 0, 0, 0);
      machine.spanList.forEach((span, k) => {
        const from = scene.pointNow(span.ends[0], run), o = entryAt(run, machine.spans + k);
        if (!span.direction) return stretch(m, o, from, minus(scene.pointNow(span.ends[1], run), from), true);
        const way = span.follows ? minus(scene.pointNow({ ...span.ends[0], point: plus(span.ends[0].point, span.direction) }, run), from) : span.direction;
        stretch(m, o, from, way, false);
      });
      machine.joints.forEach((joint, j) => {
        const from = scene.pointNow(joint, run);
        for (const [k, layer] of [[0, "forces"], [1, "moments"]]) {
          const o = entryAt(run, machine.wrenches + 2 * j + k), column = 6 * j + 3 - 3 * k;
          const way = run.reactions && !P && scene.layers[layer] ? [0, 1, 2].map((i) => arrows[layer] * between(run.reactions, column + i, at)) : [0, 0, 0];
          stretch(m, o, from, way.every(Number.isFinite) ? way : [0, 0, 0], false, 7 * about.view.size);
        }
      });
      machine.contacts.forEach((_, c) => {
        const now = [0, 1, 2, 3, 4, 5].map((i) => (run.contacts && !P ? between(run.contacts, 6 * c + i, at) : run.touching?.[6 * c + i] ?? 0));
        const shown = scene.layers.forces && now.every(Number.isFinite);
        stretch(m, entryAt(run, machine.touches + c), shown ? now.slice(0, 3) : [0, 0, 0], shown ? times(arrows.forces, now.slice(3)) : [0, 0, 0], false, 7 * about.view.size);
      });
    }
  };
  // From a point along a vector: either the length alone grows, or the whole solid, which is not thinner than at `least`.
  function stretch(m, o, from, way, lengthAlone, least = 0) {
    const long = size(way);
    if (!(long > 1e-9 * about.view.radius)) return setColumns(m, o, [0, 0, 0], [0, 0, 0], [0, 0, 0], from);
    const z = times(1 / long, way), x = beside(z), wide = lengthAlone ? 1 : least ? Math.min(Math.max(long, least), 3 * least) : long;
    setColumns(m, o, times(wide, x), times(wide, cross(z, x)), way, from);
  }

  // The least and largest coordinates of all that is solid along three axes: now, or over the whole of the runs shown.
  const COUNTED = new Set(["bodies", "plates", "ground", "points"]);
  for (const machine of machines) machine.outline = outlineOf(machine, COUNTED);
  scene.extent = (axes, always, from = 0) => {
    const low = [Infinity, Infinity, Infinity], high = [-Infinity, -Infinity, -Infinity], m = new Float32Array(12);
    const grow = (p) => {
      for (let k = 0; k < 3; k++) {
        const x = dot(axes[k], p);
        if (x < low[k]) low[k] = x;
        if (x > high[k]) high[k] = x;
      }
    };
    for (const run of runs) {
      if (!run.shown) continue;
      const { outline, bodies, spanList } = run.machine, points = outline.reduce((sum, own) => sum + own.length, 1);
      const stepping = Math.max(1, Math.ceil((run.time.length * points * runs.length) / 1e5));
      outline.forEach((own, entry) => {
        if (entry >= bodies) return own.forEach(grow);
        if (!always || run.state) return own.forEach((p) => grow(apply(scene.places, entryAt(run, entry), p)));
        for (let k = from; k < run.time.length; k += stepping) {
          placeBody(run.poses, entry, { low: k, high: k, part: 0 }, m, 0);
          for (const p of own) grow(apply(m, 0, p));
        }
      });
      for (const { ends } of spanList) for (const { body, point } of ends) if (body < 0) grow(point);
    }
    return low[0] <= high[0] ? { low, high } : { low: [-1, -1, -1], high: [1, 1, 1] };
  };

  // The first body that goes farther than a distance from where it starts; null if none does.
  scene.traveller = (far) => {
    const run = scene.leading(), { values: P, width } = run.poses;
    for (let body = 0; body < run.machine.bodies; body++) {
      for (let k = 0; k < run.time.length; k++) {
        const i = k * width + 7 * body;
        if (Math.hypot(P[i] - P[7 * body], P[i + 1] - P[7 * body + 1], P[i + 2] - P[7 * body + 2]) > far) return body;
      }
    }
    return null;
  };

  // The nearest solid on a ray: its run, body, and the point in body and ground axes; null if there is none.
  scene.pick = ({ from, way }, visible = () => true) => {
    let best = null;
    for (const run of runs) {
      if (!run.shown) continue;
      for (const solid of run.machine.solids) {
        if (!scene.layers[solid.layer] || OVER.has(solid.layer) || solid.entry > run.machine.ground) continue;
        const o = entryAt(run, solid.entry), start = applyBack(scene.places, o, from), ahead = turnBack(scene.places, o, way);
        for (const far of hits(solid, start, ahead)) {
          const world = plus(from, times(far, way));
          if ((!best || far < best.far) && visible(world)) best = { far, world, run, body: solid.entry === run.machine.ground ? -1 : solid.entry, point: plus(start, times(far, ahead)) };
        }
      }
    }
    return best;
  };
  // The path (n, 3) of a point of a body over a run.
  scene.path = (run, { body, point }) => {
    const found = new Float32Array(3 * run.time.length), m = new Float32Array(12);
    setPlacement(m, 0, 0, 0, 0, 1, 0, 0, 0);
    for (let k = 0; k < run.time.length; k++) {
      if (body >= 0) placeBody(run.poses, body, { low: k, high: k, part: 0 }, m, 0);
      found.set(apply(m, 0, point), 3 * k);
    }
    return found;
  };
  scene.arrange();
  return scene;
}

const GROUND_AXES = [[1, 0, 0], [0, 1, 0], [0, 0, 1]];
const WAYS = [...GROUND_AXES, [1, 1, 1], [1, 1, -1], [1, -1, 1], [-1, 1, 1]];
// For each body and the ground the corners that are outermost in fourteen directions.
function outlineOf(machine, counted) {
  const found = Array.from({ length: machine.bodies + 1 }, () => []);
  const best = found.map(() => WAYS.map(() => [Infinity, null, -Infinity, null]));
  for (const { entry, layer, position } of machine.solids) {
    if (!counted.has(layer) || entry > machine.bodies) continue;
    for (let i = 0; i < position.length; i += 3) {
      for (let w = 0; w < 7; w++) {
        const x = WAYS[w][0] * position[i] + WAYS[w][1] * position[i + 1] + WAYS[w][2] * position[i + 2], known = best[entry][w];
        if (x < known[0]) { known[0] = x; known[1] = i; known[4] = position; }
        if (x > known[2]) { known[2] = x; known[3] = i; known[5] = position; }
      }
    }
  }
  best.forEach((ways, entry) => {
    for (const [, i, , j, p, r] of ways) if (i !== null) found[entry].push([p[i], p[i + 1], p[i + 2]], [r[j], r[j + 1], r[j + 2]]);
  });
  return found;
}

function boxOf(position) {
  const low = [Infinity, Infinity, Infinity], high = [-Infinity, -Infinity, -Infinity];
  for (let k = 0; k < position.length; k++) { const i = k % 3, x = position[k]; if (x < low[i]) low[i] = x; if (x > high[i]) high[i] = x; }
  return { low, high };
}
const cornersOfBox = ({ low, high }) => [0, 1, 2, 3, 4, 5, 6, 7].map((k) => [k & 1 ? high[0] : low[0], k & 2 ? high[1] : low[1], k & 4 ? high[2] : low[2]]);

// Distances at which a ray meets the triangles of a solid.
function hits({ box, position }, from, way) {
  let near = -Infinity, far = Infinity;
  for (let k = 0; k < 3; k++) {
    const a = (box.low[k] - from[k]) / way[k], b = (box.high[k] - from[k]) / way[k];
    if (way[k] === 0) { if (from[k] < box.low[k] || from[k] > box.high[k]) return []; continue; }
    near = Math.max(near, Math.min(a, b));
    far = Math.min(far, Math.max(a, b));
  }
  if (near > far * (1 + 1e-6) + 1e-9 || far < 0) return [];
  const found = [];
  for (let i = 0; i < position.length; i += 9) {
    const a = [position[i], position[i + 1], position[i + 2]];
    const e = [position[i + 3] - a[0], position[i + 4] - a[1], position[i + 5] - a[2]];
    const g = [position[i + 6] - a[0], position[i + 7] - a[1], position[i + 8] - a[2]];
    const p = cross(way, g), det = dot(e, p);
    if (det === 0) continue;
    const s = minus(from, a), u = dot(s, p) / det, q = cross(s, e), v = dot(way, q) / det, t = dot(g, q) / det;
    if (u >= 0 && v >= 0 && u + v <= 1 && t > 0) found.push(t);
  }
  return found;
}
