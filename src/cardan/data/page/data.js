// Numbers of the page. Arrays are packed: columns one after the other, each entry less the one before it, the bytes of
// all entries by significance, then deflated and written in base64.
async function unpack({ layout, text }) {
  const packed = Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"));
  const bytes = new Uint8Array(await new Response(stream).arrayBuffer());
  const found = {};
  let at = 0;
  for (const [name, kind, rows, columns] of layout) {
    const wide = { f8: 2, f4: 1, u4: 1, u2: 1 }[kind] * columns, each = kind === "u2" ? 2 : 4, count = rows * wide;
    const whole = new (kind === "u2" ? Uint16Array : Uint32Array)(count);
    for (let c = 0; c < wide; c++) {
      let sum = 0;
      for (let r = 0, k = c * rows; r < rows; r++, k++) {
        for (let b = 0; b < each; b++) sum = (sum + (bytes[at + b * count + k] << (8 * b))) | 0;
        whole[r * wide + c] = sum;
      }
    }
    at += each * count;
    const view = { f8: Float64Array, f4: Float32Array, u4: Uint32Array, u2: Uint16Array }[kind];
    found[name] = { rows, columns, values: new view(whole.buffer) };
  }
  return found;
}

// Rows of equal width, which may grow while one looks.
class Series {
  constructor({ rows, columns, values }) {
    this.width = columns;
    this.length = rows;
    this.values = values;
  }
  append({ rows, values }) {
    const used = this.length * this.width;
    if (used + values.length > this.values.length) {
      const grown = new this.values.constructor(Math.max(2 * used, used + values.length));
      grown.set(this.values.subarray(0, used));
      this.values = grown;
    }
    this.values.set(values, used);
    this.length += rows;
  }
}

// The sample at or before a time, and how far it is to the next.
function sampleAt(time, t) {
  let low = 0, high = time.length - 1;
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if (time.values[middle] <= t) low = middle;
    else high = middle;
  }
  const span = time.values[high] - time.values[low];
  return { low, high, part: span > 0 ? Math.min(Math.max((t - time.values[low]) / span, 0), 1) : 1 };
}

function between(series, column, at) {
  const a = series.values[at.low * series.width + column], b = series.values[at.high * series.width + column];
  return at.part === 0 ? a : at.part === 1 ? b : a + (b - a) * at.part;
}

// The placement of a body between two samples: positions along a line, rotations along a great circle.
function placeBody(poses, body, at, m, o) {
  const P = poses.values, i = at.low * poses.width + 7 * body, j = at.high * poses.width + 7 * body;
  const cosine = P[i + 3] * P[j + 3] + P[i + 4] * P[j + 4] + P[i + 5] * P[j + 5] + P[i + 6] * P[j + 6];
  const angle = Math.acos(Math.min(Math.abs(cosine), 1)), near = angle < 1e-4;
  const a = near ? 1 - at.part : Math.sin((1 - at.part) * angle) / Math.sin(angle);
  const b = (near ? at.part : Math.sin(at.part * angle) / Math.sin(angle)) * (cosine < 0 ? -1 : 1);
  const w = a * P[i + 3] + b * P[j + 3], x = a * P[i + 4] + b * P[j + 4];
  const y = a * P[i + 5] + b * P[j + 5], z = a * P[i + 6] + b * P[j + 6];
  const s = 1 / Math.sqrt(w * w + x * x + y * y + z * z), u = at.part;
  setPlacement(m, o, P[i] + u * (P[j] - P[i]), P[i + 1] + u * (P[j + 1] - P[i + 1]), P[i + 2] + u * (P[j + 2] - P[i + 2]),
    w * s, x * s, y * s, z * s);
}

// Round numbers from low to high, about `count` of them.
const roundStep = (rough) => {
  const power = 10 ** Math.floor(Math.log10(rough));
  return power * [1, 2, 5, 10].find((k) => k * power >= rough * (1 - 1e-9));
};
function ticks(low, high, count = 5) {
  const step = roundStep((high - low) / count), list = [];
  for (let x = Math.ceil(low / step) * step; x <= high + 1e-9 * step; x += step) list.push(Number(x.toPrecision(12)));
  return list;
}
const shortly = (x, digits = 6) => (Number.isFinite(x) ? Number(x.toPrecision(digits)).toString() : "\u2013");
