// A strip chart of the simulation: what was computed in the last seconds.
const KEPT = 1500; // samples
const SIDE = { left: 44, right: 4, top: 6, bottom: 16 };

// `choices` are [{ name, unit, curves: [name], of(state, quantities) -> numbers }].
function makeStrip(choices) {
  const select = made("select", {}), canvas = made("canvas", {}), legend = made("div", { className: "legend" });
  select.setAttribute("aria-label", "curves of the simulation");
  canvas.setAttribute("role", "img");
  choices.forEach((choice, k) => select.append(new Option(`${choice.name}, ${choice.unit}`, k)));
  const samples = [];
  let numbers = [];
  select.onchange = () => { name(); draw(); };

  function name() {
    const { curves, name: what } = choices[select.value];
    canvas.setAttribute("aria-label", `${what} of the simulation over time`);
    numbers = curves.map(() => made("b", {}));
    legend.replaceChildren(...curves.map((curve, c) => {
      const swatch = made("i", {});
      swatch.style.background = CURVES[c % CURVES.length];
      return made("label", {}, swatch, ` ${curve} `, numbers[c]);
    }));
  }

  function add(state, quantities) {
    const last = samples.at(-1)?.t;
    if (state.t < last) samples.length = 0; // it began again
    else if (state.t === last) samples.pop();
    samples.push({ t: state.t, values: choices.map((choice) => choice.of(state, quantities)) });
    if (samples.length > KEPT) samples.shift();
  }

  function draw() {
    const { width, height } = canvas.getBoundingClientRect(), ratio = Math.min(window.devicePixelRatio || 1, 3);
    if (!width) return;
    canvas.width = width * ratio;
    canvas.height = height * ratio;
    const ink = canvas.getContext("2d"), which = Number(select.value), { curves } = choices[which];
    ink.scale(ratio, ratio);
    if (!samples.length) return;
    let low = Infinity, high = -Infinity;
    for (const { values } of samples) for (const y of values[which]) [low, high] = [Math.min(low, y), Math.max(high, y)];
    const pad = Math.max((high - low) * 0.06, 1e-6 * Math.max(Math.abs(low), Math.abs(high))) || 1;
    [low, high] = [low - pad, high + pad];
    const from = samples[0].t, to = Math.max(samples.at(-1).t, from + 1e-9);
    const X = (t) => SIDE.left + ((t - from) / (to - from)) * (width - SIDE.left - SIDE.right);
    const Y = (y) => height - SIDE.bottom - ((y - low) / (high - low)) * (height - SIDE.bottom - SIDE.top);
    const rule = (x1, y1, x2, y2) => { ink.beginPath(); ink.moveTo(x1, y1); ink.lineTo(x2, y2); ink.stroke(); };
    ink.font = "10px system-ui, sans-serif";
    [ink.strokeStyle, ink.fillStyle, ink.textAlign] = [paint.rule, paint.soft, "right"];
    for (const y of ticks(low, high, 3)) { rule(SIDE.left, Y(y), width - SIDE.right, Y(y)); ink.fillText(shortly(y, 4), SIDE.left - 4, Y(y) + 3); }
    ink.textAlign = "center";
    for (const t of ticks(from, to, 3)) ink.fillText(shortly(t, 4), Math.min(X(t), width - 12), height - 3);
    ink.lineWidth = 1.5;
    curves.forEach((_, c) => {
      ink.strokeStyle = CURVES[c % CURVES.length];
      ink.beginPath();
      samples.forEach(({ t, values }, k) => (k ? ink.lineTo(X(t), Y(values[which][c])) : ink.moveTo(X(t), Y(values[which][c]))));
      ink.stroke();
      numbers[c].textContent = shortly(samples.at(-1).values[which][c], 4);
    });
  }

  name();
  return { add, draw, select, elements: [select, canvas, legend] };
}
