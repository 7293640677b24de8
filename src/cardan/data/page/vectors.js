// Vectors are arrays of three numbers; rotations are three columns, or quaternions (w, x, y, z).
const plus = (a, b) => [a[0] + b[0], a[1] + b[1], a[2] + b[2]];
const minus = (a, b) => [a[0] - b[0], a[1] - b[1], a[2] - b[2]];
const times = (s, a) => [s * a[0], s * a[1], s * a[2]];
const dot = (a, b) => a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
const cross = (a, b) => [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]];
const size = (a) => Math.hypot(a[0], a[1], a[2]);
const unit = (a) => times(1 / size(a), a);

// A unit vector perpendicular to another.
function beside(z) {
  const k = [0, 1, 2].sort((i, j) => Math.abs(z[i]) - Math.abs(z[j]))[0];
  return unit(cross([0, 1, 2].map((i) => (i === k ? 1 : 0)), z));
}

// A vector turned about a unit axis.
function rotated(v, axis, angle) {
  const c = Math.cos(angle), s = Math.sin(angle);
  return plus(plus(times(c, v), times(s, cross(axis, v))), times(dot(axis, v) * (1 - c), axis));
}

// A placement is twelve numbers: the three rows of [R p]. They start at an offset of an array.
const apply = (m, o, v) => [
  m[o] * v[0] + m[o + 1] * v[1] + m[o + 2] * v[2] + m[o + 3],
  m[o + 4] * v[0] + m[o + 5] * v[1] + m[o + 6] * v[2] + m[o + 7],
  m[o + 8] * v[0] + m[o + 9] * v[1] + m[o + 10] * v[2] + m[o + 11],
];
// The vector that a rotating placement turns into v: R^T v.
const turnBack = (m, o, v) => [0, 1, 2].map((k) => m[o + k] * v[0] + m[o + 4 + k] * v[1] + m[o + 8 + k] * v[2]);
const applyBack = (m, o, v) => turnBack(m, o, [v[0] - m[o + 3], v[1] - m[o + 7], v[2] - m[o + 11]]);

function setPlacement(m, o, px, py, pz, w, x, y, z) {
  m[o] = 1 - 2 * (y * y + z * z); m[o + 1] = 2 * (x * y - w * z); m[o + 2] = 2 * (x * z + w * y); m[o + 3] = px;
  m[o + 4] = 2 * (x * y + w * z); m[o + 5] = 1 - 2 * (x * x + z * z); m[o + 6] = 2 * (y * z - w * x); m[o + 7] = py;
  m[o + 8] = 2 * (x * z - w * y); m[o + 9] = 2 * (y * z + w * x); m[o + 10] = 1 - 2 * (x * x + y * y); m[o + 11] = pz;
}
function setColumns(m, o, x, y, z, p) {
  for (let k = 0; k < 3; k++) { m[o + 4 * k] = x[k]; m[o + 4 * k + 1] = y[k]; m[o + 4 * k + 2] = z[k]; m[o + 4 * k + 3] = p[k]; }
}

// The product of two 4x4 matrices, each sixteen numbers by columns.
function product(a, b) {
  const c = new Float32Array(16);
  for (let i = 0; i < 4; i++) {
    for (let j = 0; j < 4; j++) {
      for (let k = 0; k < 4; k++) c[4 * j + i] += a[4 * k + i] * b[4 * j + k];
    }
  }
  return c;
}
// From ground axes to the axes of an observer at `eye`, who looks along -back.
function lookFrom(eye, right, up, back) {
  return new Float32Array([
    right[0], up[0], back[0], 0, right[1], up[1], back[1], 0, right[2], up[2], back[2], 0,
    -dot(right, eye), -dot(up, eye), -dot(back, eye), 1,
  ]);
}
// Parallel projection of a box of half sides, from near to far.
const parallel = (wide, tall, near, far) => new Float32Array([
  1 / wide, 0, 0, 0, 0, 1 / tall, 0, 0, 0, 0, -2 / (far - near), 0, 0, 0, -(far + near) / (far - near), 1,
]);
const perspective = (wide, tall, near, far) => new Float32Array([
  1 / wide, 0, 0, 0, 0, 1 / tall, 0, 0, 0, 0, -(far + near) / (far - near), -1, 0, 0, (-2 * far * near) / (far - near), 0,
]);
