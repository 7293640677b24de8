// Distances and angles between points that are clicked on. The points stay on their bodies, so the numbers move with them.
function makeMeasure(scene, camera, drawn, answer, triad) {
  const points = [];
  const measure = { on: false, points };
  measure.add = (hit) => {
    if (points.length === 3) points.length = 0;
    points.push(hit);
  };
  measure.clear = () => (points.length = 0);
  const nameOf = ({ body, run }) => (body < 0 ? "ground" : run.machine.names[body]);
  measure.places = () => points.map((p) => scene.pointNow(p, p.run));
  // What has been measured: { distance (m) } of two points, { distance, angle (rad) } at the second of three.
  measure.result = () => {
    const p = measure.places();
    if (p.length < 2) return null;
    const distance = size(minus(p[p.length - 1], p[p.length - 2])), step = minus(p[p.length - 1], p[p.length - 2]);
    if (p.length === 2) return { distance, step };
    const a = minus(p[0], p[1]), b = minus(p[2], p[1]);
    return { distance, step, angle: Math.atan2(size(cross(a, b)), dot(a, b)) };
  };
  measure.tell = () => {
    answer.hidden = !measure.on;
    if (!measure.on) return;
    const found = measure.result(), where = points.map(nameOf).join(" \u2013 ");
    if (!found) answer.textContent = points.length ? `${where}: now a second point` : "click two points for a distance, three for an angle";
    else if (found.angle === undefined) answer.textContent = `${where}: ${shortly(found.distance, 5)} m\n(${found.step.map((x) => shortly(x, 4)).join(", ")}) m`;
    else answer.textContent = `${where}: ${shortly((found.angle * 180) / Math.PI, 5)}\u00b0`;
  };
  // Lines over the picture: what is measured, and the directions of x, y, z in a corner.
  measure.draw = (width, height) => {
    const shapes = [], seen = measure.on ? measure.places().map(camera.screen) : [];
    for (let k = 1; k < seen.length; k++) {
      if (seen[k] && seen[k - 1]) shapes.push(`<line class="measured" x1="${seen[k - 1][0]}" y1="${seen[k - 1][1]}" x2="${seen[k][0]}" y2="${seen[k][1]}"/>`);
    }
    for (const p of seen) if (p) shapes.push(`<circle cx="${p[0]}" cy="${p[1]}" r="5"/>`);
    const { right, up, back } = camera.basis(), from = [width - 38, height - 36];
    const ends = [0, 1, 2].map((k) => ({ k, x: from[0] + 24 * right[k], y: from[1] - 24 * up[k], near: back[k] })).sort((a, b) => a.near - b.near);
    for (const { k, x, y } of ends) {
      shapes.push(`<line stroke="${triad[k]}" x1="${from[0]}" y1="${from[1]}" x2="${x}" y2="${y}"/><text x="${from[0] + (x - from[0]) * 1.38}" y="${from[1] + (y - from[1]) * 1.38 + 4}">${"xyz"[k]}</text>`);
    }
    drawn.innerHTML = shapes.join("");
  };
  return measure;
}
