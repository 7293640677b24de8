// The camera: it looks at a target from a distance, along `back`, with `axis` upwards on the screen.
// `extent(axes)` has the least and largest coordinates of all that is seen along three axes.
function makeCamera(stage, view, extent, changed) {
  const OPEN = Math.tan((15 * Math.PI) / 180); // half the opening angle
  const BUTTONS = 44; // pixels at the top of the picture
  const camera = { target: [0, 0, 0], back: [0, 0, 1], axis: view.up, distance: 1, flat: false, box: { low: [-1, -1, -1], high: [1, 1, 1] } };
  const rect = () => stage.getBoundingClientRect();

  camera.basis = () => {
    const right = Math.abs(dot(camera.back, camera.axis)) > 0.9999 ? camera.sideways ?? beside(camera.back) : unit(cross(camera.axis, camera.back));
    camera.sideways = right;
    return { right, up: cross(camera.back, right), back: camera.back };
  };
  camera.eye = () => plus(camera.target, times(camera.distance, camera.back));
  // The matrix of the camera for a picture of this shape; `reach` is how far the scene is seen around the target.
  camera.matrix = (reach) => {
    const { width, height } = rect(), { right, up, back } = camera.basis(), d = camera.distance, tall = OPEN * d;
    const wide = (tall * width) / Math.max(height, 1);
    const near = camera.flat ? d - reach : Math.max(d - reach, d / 300), far = d + reach;
    const project = camera.flat ? parallel(wide, tall, near, far) : perspective(wide / d, tall / d, near, far);
    return product(project, lookFrom(camera.eye(), right, up, back));
  };
  // Where a point is on the stage, in pixels; null behind the camera.
  camera.screen = (p) => {
    const { width, height } = rect(), { right, up, back } = camera.basis(), r = minus(p, camera.target);
    const deep = camera.flat ? camera.distance : camera.distance - dot(r, back);
    if (deep <= 0) return null;
    const scale = height / 2 / (OPEN * deep);
    return [width / 2 + scale * dot(r, right), height / 2 - scale * dot(r, up)];
  };
  // Metres for one pixel at a point.
  camera.pixel = (p) => (2 * OPEN * (camera.flat ? camera.distance : camera.distance - dot(minus(p, camera.target), camera.back))) / Math.max(rect().height, 1);
  // The ray through a point of the screen.
  camera.ray = (clientX, clientY) => {
    const { left, top, width, height } = rect(), { right, up, back } = camera.basis(), d = camera.distance;
    const scale = (2 * OPEN * d) / Math.max(height, 1);
    const on = plus(camera.target, plus(times((clientX - left - width / 2) * scale, right), times((top + height / 2 - clientY) * scale, up)));
    return camera.flat ? { from: plus(on, times(d + 1e3 * view.radius, back)), way: times(-1, back) } : { from: camera.eye(), way: unit(minus(on, camera.eye())) };
  };
  // Look from a direction so that all is just seen: at a distance d a point with the coordinates x, y across the picture
  // and z towards the observer is inside if |y| / tall + z <= d, and the same of x. The buttons at the top stay free.
  camera.frame = (back = camera.back) => {
    camera.back = unit(back);
    const { width, height } = rect(), { right, up } = camera.basis(), free = Math.max(height - BUTTONS, height / 2, 1) / Math.max(height, 1);
    const tall = OPEN * free, wide = (OPEN * width) / Math.max(height, 1), towards = times(camera.flat ? 0 : 1, camera.back);
    const most = (axis, slope) => extent([plus(times(1 / slope, axis), towards), plus(times(-1 / slope, axis), towards), camera.back]);
    const [x, y] = [most(right, wide), most(up, tall)], z = (y.low[2] + y.high[2]) / 2;
    const middle = [(wide * (x.high[0] - x.high[1])) / 2, (tall * (y.high[0] - y.high[1])) / 2];
    const needed = Math.max(x.high[0] + x.high[1], y.high[0] + y.high[1]) / 2 - (camera.flat ? 0 : z);
    camera.distance = (camera.flat ? 1.16 : 1.08) * Math.max(needed, (2 * view.size) / OPEN);
    const below = (OPEN - tall) * camera.distance; // the middle of what is free is below that of the picture
    camera.target = plus(plus(times(middle[0], right), times(middle[1] + below, up)), times(z, camera.back));
    changed();
  };
  camera.turn = (dx, dy) => {
    const { right } = camera.basis();
    camera.back = rotated(camera.back, camera.axis, -dx);
    const pitched = unit(rotated(camera.back, rotated(right, camera.axis, -dx), -dy));
    if (Math.abs(dot(pitched, camera.axis)) < 0.9995) camera.back = pitched;
    changed();
  };
  camera.shift = (dx, dy) => {
    const { right, up } = camera.basis(), scale = camera.pixel(camera.target);
    camera.target = plus(camera.target, plus(times(-dx * scale, right), times(dy * scale, up)));
    changed();
  };
  camera.zoom = (factor, clientX, clientY) => {
    const before = clientX === undefined ? null : camera.ray(clientX, clientY), d = camera.distance;
    camera.distance = Math.min(Math.max(d * factor, 0.02 * view.size), 1e4 * view.radius);
    if (before) { // what is under the pointer stays there
      const { left, top, width, height } = rect();
      const grown = camera.distance / d - 1, scale = (2 * OPEN * d) / Math.max(height, 1), { right, up } = camera.basis();
      camera.target = minus(camera.target, plus(times((clientX - left - width / 2) * scale * grown, right), times((top + height / 2 - clientY) * scale * grown, up)));
    }
    changed();
  };
  return camera;
}

// Fingers and mouse: drag turns, with Shift or the right button or two fingers it shifts, wheel and pinch zoom.
// `tool(kind, event)` may take a pointer first, for measuring and for pulling. A `shy` view leaves the wheel to the page
// around it until somebody clicks into it.
function steer(canvas, camera, tool, touched, shy) {
  const down = new Map();
  const middle = () => { const all = [...down.values()]; return [all.reduce((s, p) => s + p.x, 0) / all.length, all.reduce((s, p) => s + p.y, 0) / all.length]; };
  const spread = () => { const [a, b] = [...down.values()]; return Math.hypot(a.x - b.x, a.y - b.y); };
  let taken = false, moved = 0;
  canvas.addEventListener("pointerdown", (event) => {
    canvas.setPointerCapture(event.pointerId);
    down.set(event.pointerId, { x: event.clientX, y: event.clientY });
    moved = 0;
    taken = down.size === 1 && event.button === 0 && tool("down", event);
  });
  canvas.addEventListener("pointermove", (event) => {
    const before = down.get(event.pointerId);
    if (!before) return;
    if (taken) return void tool("move", event);
    const centre = middle(), wide = down.size > 1 ? spread() : 1;
    moved += Math.abs(event.clientX - before.x) + Math.abs(event.clientY - before.y);
    down.set(event.pointerId, { x: event.clientX, y: event.clientY });
    const [x, y] = middle(), dx = x - centre[0], dy = y - centre[1];
    touched();
    if (down.size > 1) {
      camera.shift(dx, dy);
      camera.zoom(wide / Math.max(spread(), 1), x, y);
    } else if (event.shiftKey || event.buttons & 6) camera.shift(dx, dy);
    else camera.turn(dx * 0.008, dy * 0.008);
  });
  const up = (event) => {
    if (taken) tool("up", event);
    else if (moved < 4 && event.type === "pointerup") tool("click", event);
    taken = false;
    down.delete(event.pointerId);
  };
  canvas.addEventListener("pointerup", up);
  canvas.addEventListener("pointercancel", up);
  canvas.addEventListener("contextmenu", (event) => event.preventDefault());
  canvas.addEventListener("wheel", (event) => {
    if (shy && document.activeElement !== canvas && !event.ctrlKey) return;
    event.preventDefault();
    touched();
    camera.zoom(Math.exp(event.deltaY * (event.deltaMode === 1 ? 0.05 : 0.0015)), event.clientX, event.clientY);
  }, { passive: false });
}
