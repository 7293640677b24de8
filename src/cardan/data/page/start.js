// Begin. A live page gets samples while a simulation runs, and stays at the newest.
setSpeed(usualSpeed());
markEvents();
for (const key of ABOUT.plotted) plots.add(key);
if (!ABOUT.inline) begin();
else { // a browser has few contexts for drawing: a view that is scrolled away gives its own back
  let loss = null; // kept: a context that is lost no longer gives it
  new IntersectionObserver(([{ isIntersecting }]) => {
    if (!isIntersecting) return renderer && loss?.loseContext();
    if (loss && !renderer) return loss.restoreContext();
    begin();
    loss ??= renderer?.gl.getExtension("WEBGL_lose_context");
    soon();
  }).observe(stage);
}
new ResizeObserver(() => {
  plots.draw();
  if (!touched) camera.frame();
  draw(); // at once: otherwise the last picture would be seen stretched
}).observe(stage);
scene.move(clock.t, arrows());
lookHome();
if (ABOUT.live) {
  byId("note").textContent = "live";
  const source = new EventSource("stream");
  let order = Promise.resolve();
  source.onmessage = (message) => (order = order.then(async () => {
    const arrays = await unpack(JSON.parse(message.data)), run = scene.runs[0], before = run.time.length;
    run.time.append(arrays.time0);
    run.poses.append(arrays.poses0);
    run.reactions?.append(arrays.reactions0);
    run.contacts?.append(arrays.contacts0);
    run.plots.forEach((plot, p) => plot.source || plot.series.append(arrays[`plot0.${p}`]));
    const box = scene.extent(GROUND_AXES, true, before), { low, high } = camera.box;
    if (box.low.some((x, k) => x < low[k]) || box.high.some((x, k) => x > high[k])) {
      if (!touched) lookHome();
    }
    plots.draw();
    if (!clock.playing) seek(scene.last());
  }));
  source.addEventListener("end", () => (order = order.then(() => { source.close(); byId("note").textContent = ""; ABOUT.live = false; })));
}
// For scripts, tests, and the simulation in the page.
window.cardan = {
  about: ABOUT, camera, canvas, clock, draw, measure, play, plots, scene, section, seek, showState, showPull, onPlane, drag: null, simulation: null,
  pauseRun: () => play(false), pick: (clientX, clientY) => { const hit = pickAt(clientX, clientY); return hit && hit.body >= 0 ? { body: hit.body, point: hit.world } : null; },
};
if (!still && !ABOUT.live && !matchMedia("(prefers-reduced-motion: reduce)").matches) play(true);
document.body.dataset.ready = "yes";
