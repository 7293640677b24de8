// Curves over time. They are drawn once; the cursor and the numbers move.
const CURVES = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#7F7F7F"]; // Okabe and Ito
const MARGIN = { left: 62, right: 16, bottom: 18, top: 6 };
const DASHES = [[], [7, 4], [2, 3], [9, 3, 2, 3]];

function makePlots(scene, box, chooser, colours, seek) {
  const plots = [];
  // Quantities by their keys, from all runs.
  const known = new Map();
  for (const run of scene.runs) for (const plot of run.plots) if (!known.has(plot.key)) known.set(plot.key, plot);
  const groups = new Map(); // by the element that a quantity belongs to
  for (const [key, { title, unit }] of known) {
    const [name] = title.split(": "), owner = name.includes(".") ? name.slice(0, name.lastIndexOf(".")) : "mechanism";
    if (!groups.has(owner)) groups.set(owner, Object.assign(document.createElement("optgroup"), { label: owner }));
    const option = new Option(unit ? `${name}, ${unit}` : name, key);
    option.title = title;
    groups.get(owner).append(option);
  }
  chooser.append(...groups.values());
  chooser.onchange = () => { add(chooser.value); chooser.value = ""; };

  function add(key) {
    if (!known.has(key) || plots.some((plot) => plot.key === key)) return;
    const about = known.get(key), element = document.createElement("section");
    element.className = "plot";
    element.innerHTML = '<h2></h2><button class="close" aria-label="remove this plot" title="remove">\u00d7</button>' +
      '<div class="area"><canvas role="img"></canvas><div class="cursor"></div></div><div class="legend"></div>';
    const name = about.title + (about.unit ? `, ${about.unit}` : "");
    element.querySelector("h2").textContent = element.querySelector("h2").title = name;
    element.querySelector("canvas").setAttribute("aria-label", `${name} over time`);
    box.append(element);
    const plot = { ...about, element, on: about.curves.map((_, c) => c < 8), numbers: [] };
    about.curves.forEach((curve, c) => {
      const label = document.createElement("label");
      label.innerHTML = '<input type="checkbox"><i></i> <span></span> <b></b>';
      label.querySelector("i").style.background = CURVES[c % CURVES.length];
      label.querySelector("span").textContent = curve;
      const check = label.querySelector("input");
      check.checked = plot.on[c];
      check.onchange = () => { plot.on[c] = check.checked; drawOne(plot); tell(); };
      plot.numbers.push(label.querySelector("b"));
      element.querySelector(".legend").append(label);
    });
    if (about.shaded[1].length) element.querySelector(".legend").append(Object.assign(document.createElement("small"), { textContent: `shaded: ${about.shaded[0]}` }));
    element.querySelector(".close").onclick = () => { plots.splice(plots.indexOf(plot), 1); element.remove(); };
    const area = element.querySelector(".area");
    const seekTo = (event) => {
      const { left, width } = area.getBoundingClientRect();
      const part = (event.clientX - left - MARGIN.left) / (width - MARGIN.left - MARGIN.right);
      seek(scene.first() + part * (scene.last() - scene.first()));
    };
    area.onpointerdown = (event) => { area.setPointerCapture(event.pointerId); seekTo(event); };
    area.onpointermove = (event) => { if (event.buttons) seekTo(event); };
    plots.push(plot);
    drawOne(plot);
    tell();
  }

  const runsOf = (plot) => scene.runs.filter((run) => run.shown).flatMap((run) => run.plots.filter(({ key }) => key === plot.key).map(({ series, first, shaded }) => ({ run, series, first, shaded })));

  function drawOne(plot) {
    const canvas = plot.element.querySelector("canvas"), { width, height } = canvas.getBoundingClientRect();
    if (!width) return;
    const ratio = Math.min(window.devicePixelRatio || 1, 3), ink = canvas.getContext("2d"), paint = colours();
    canvas.width = width * ratio;
    canvas.height = height * ratio;
    ink.scale(ratio, ratio);
    const shown = runsOf(plot), picked = plot.on.flatMap((on, c) => (on ? [c] : []));
    let low = Infinity, high = -Infinity;
    for (const { series, first } of shown) {
      for (let k = 0; k < series.length; k++) {
        for (const c of picked) {
          const y = series.values[k * series.width + first + c];
          if (y < low) low = y;
          if (y > high) high = y;
        }
      }
    }
    if (!(low <= high)) [low, high] = [0, 1];
    const pad = Math.max((high - low) * 0.06, 1e-6 * Math.max(Math.abs(low), Math.abs(high))) || 1;
    [low, high] = [low - pad, high + pad];
    const from = scene.first(), to = scene.last();
    const X = (t) => MARGIN.left + ((t - from) / (to - from || 1)) * (width - MARGIN.left - MARGIN.right);
    const Y = (y) => height - MARGIN.bottom - ((y - low) / (high - low)) * (height - MARGIN.bottom - MARGIN.top);
    const rule = (x1, y1, x2, y2) => { ink.beginPath(); ink.moveTo(x1, y1); ink.lineTo(x2, y2); ink.stroke(); };
    ink.fillStyle = paint.held;
    for (const [start, end] of shown[0]?.shaded[1] ?? []) ink.fillRect(X(start), MARGIN.top, Math.max(X(end) - X(start), 1), height - MARGIN.bottom - MARGIN.top);
    ink.font = "11px system-ui, sans-serif";
    ink.strokeStyle = paint.rule;
    ink.fillStyle = paint.soft;
    ink.textAlign = "right";
    for (const y of ticks(low, high, 4)) { rule(MARGIN.left, Y(y), width - MARGIN.right, Y(y)); ink.fillText(shortly(y), MARGIN.left - 5, Y(y) + 4); }
    ink.textAlign = "center";
    if (to > from) for (const t of ticks(from, to, width < 420 ? 4 : 6)) { rule(X(t), MARGIN.top, X(t), height - MARGIN.bottom); ink.fillText(shortly(t), X(t), height - 4); }
    ink.setLineDash([2, 3]);
    ink.strokeStyle = paint.mark;
    for (const { run } of shown) for (const event of run.events) rule(X(event.time), MARGIN.top, X(event.time), height - MARGIN.bottom);
    shown.forEach(({ run, series, first }, r) => {
      ink.setLineDash(shown.length > DASHES.length ? [] : DASHES[r]);
      ink.lineWidth = r === 0 ? 1.7 : 1.1;
      ink.globalAlpha = r > 0 && shown.length > DASHES.length ? 0.35 : 1;
      for (const c of picked) {
        ink.strokeStyle = CURVES[c % CURVES.length];
        ink.beginPath();
        let pen = false;
        for (let k = 0; k < series.length; k++) {
          const y = series.values[k * series.width + first + c];
          if (!Number.isFinite(y)) { pen = false; continue; }
          if (pen) ink.lineTo(X(run.time.values[k]), Y(y));
          else ink.moveTo(X(run.time.values[k]), Y(y));
          pen = true;
        }
        ink.stroke();
      }
    });
    ink.globalAlpha = 1;
    ink.setLineDash([]);
  }

  let wide = 0, told = 0, now = 0;
  const measure = () => (wide = plots.length ? plots[0].element.querySelector(".area").clientWidth : 0);
  // The numbers at the cursor, of the first run that is shown.
  function tell() {
    for (const plot of plots) {
      const [found] = runsOf(plot);
      plot.on.forEach((on, c) => (plot.numbers[c].textContent = on && found ? shortly(between(found.series, found.first + c, found.run.at ?? sampleAt(found.run.time, now))) : ""));
    }
  }
  function move(t, playing) {
    const part = (t - scene.first()) / (scene.last() - scene.first() || 1);
    now = t;
    if (!wide) measure();
    for (const plot of plots) {
      plot.element.querySelector(".cursor").style.transform = `translateX(${MARGIN.left + part * (wide - MARGIN.left - MARGIN.right)}px)`;
    }
    if (playing && performance.now() - told < 120) return; // numbers that change faster cannot be read
    told = performance.now();
    tell();
  }
  return { plots, add, move, draw: () => { measure(); plots.forEach(drawOne); } };
}
