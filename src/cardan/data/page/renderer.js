// Draws solids in WebGL 2. All solids of a scene are in one buffer of triangles; each corner has the number of an entry.
// An entry has a placement (three texels of a texture) for each instance, so that a scene is drawn by one call for
// each layer, however many bodies it has and however often it is shown.
const CREASE = Math.cos((38 * Math.PI) / 180); // surfaces that meet at less are smooth
const SHADOW = 1024; // pixels of the shadow map
const ROW = 1024; // texels in a row of the texture of placements

const PLACE = `
  uniform highp sampler2D places;
  uniform int base, stride;
  vec4 texel(int i) { return texelFetch(places, ivec2(i & ${ROW - 1}, i >> 10), 0); }`;
const SOLID_VERTEX = `#version 300 es
  layout(location = 0) in vec3 corner;
  layout(location = 1) in vec3 normal;
  layout(location = 2) in vec4 colour;
  layout(location = 3) in float entry;
  ${PLACE}
  uniform mat4 camera, light;
  uniform float lift;
  out vec3 at, facing, inLight;
  out vec4 paint;
  void main() {
    int row = base + gl_InstanceID * stride, i = row + 2 + 3 * int(entry);
    vec4 x = texel(i), y = texel(i + 1), z = texel(i + 2), run = texel(row), more = texel(row + 1);
    vec4 p = vec4(corner, 1.0);
    at = vec3(dot(x, p), dot(y, p), dot(z, p));
    mat3 R = transpose(mat3(x.xyz, y.xyz, z.xyz));
    facing = mat3(cross(R[1], R[2]), cross(R[2], R[0]), cross(R[0], R[1])) * normal; // also where a spring is stretched
    float long_ = length(facing);
    facing = long_ > 0.0 ? facing / long_ : vec3(0.0, 0.0, 1.0);
    paint = vec4(mix(colour.rgb, run.rgb, run.a), colour.a * more.r);
    inLight = (light * vec4(at + lift * facing, 1.0)).xyz * 0.5 + 0.5;
    gl_Position = camera * vec4(at, 1.0);
  }`;
const LIGHT = `
  uniform highp sampler2DShadow shadow;
  uniform float shadows; // 0: none, 1: hard, 2: soft
  float lit(vec3 p) {
    if (shadows == 0.0 || any(lessThan(p.xy, vec2(0.0))) || any(greaterThan(p.xy, vec2(1.0)))) return 1.0;
    float z = min(p.z, 0.9999), sum = 0.0, texel = 1.0 / ${SHADOW}.0;
    if (shadows < 2.0) return texture(shadow, vec3(p.xy, z));
    for (int i = -1; i <= 1; i += 2) for (int j = -1; j <= 1; j += 2) sum += texture(shadow, vec3(p.xy + 1.4 * texel * vec2(i, j), z));
    if (sum == 0.0 || sum == 4.0) return sum / 4.0; // most places are not at an edge
    sum += texture(shadow, vec3(p.xy, z));
    for (int i = -1; i <= 1; i += 2) {
      sum += texture(shadow, vec3(p.xy + 1.4 * texel * vec2(i, 0), z)) + texture(shadow, vec3(p.xy + 1.4 * texel * vec2(0, i), z));
    }
    return sum / 9.0;
  }`;
const SOLID_FRAGMENT = `#version 300 es
  precision highp float;
  in vec3 at, facing, inLight;
  in vec4 paint;
  uniform vec4 eye; // a place (w = 1), or a direction (w = 0)
  uniform vec3 sun;
  uniform vec4 section;
  uniform float flatly;
  ${LIGHT}
  out vec4 result;
  void main() {
    if (dot(section.xyz, at) > section.w) discard;
    vec3 albedo = pow(paint.rgb, vec3(2.2));
    if (section.xyz != vec3(0.0) && !gl_FrontFacing) { // the inside of a solid that is cut: hatched
      float line = mod(gl_FragCoord.x + gl_FragCoord.y, 9.0) < 2.0 ? 0.35 : 1.0;
      result = vec4(mix(vec3(1.0), paint.rgb, 0.45) * line, 1.0);
      return;
    }
    vec3 n = normalize(facing) * (gl_FrontFacing ? 1.0 : -1.0), v = normalize(eye.xyz - eye.w * at), s = sun;
    float day = max(dot(n, s), 0.0) * lit(inLight);
    float sky = 0.5 + 0.5 * dot(n, normalize(s + 0.6 * v));
    vec3 h = normalize(s + v);
    float shine = pow(max(dot(n, h), 0.0), 40.0) * day * 0.35;
    float rim = 0.08 * pow(1.0 - max(dot(n, v), 0.0), 3.0);
    vec3 seen = albedo * (0.2 + 0.42 * sky + 0.72 * day) + vec3(shine + rim);
    seen = mix(pow(seen, vec3(1.0 / 2.2)), paint.rgb, flatly);
    result = vec4(seen, paint.a);
  }`;
const DEPTH_FRAGMENT = `#version 300 es
  precision highp float;
  in vec3 at;
  in vec4 paint;
  uniform vec4 section;
  void main() { if (dot(section.xyz, at) > section.w || paint.a < 0.3) discard; }`;
const FLOOR_VERTEX = `#version 300 es
  uniform mat4 camera, light;
  uniform vec3 origin, along, across;
  uniform float reach;
  out vec2 where;
  out vec3 inLight;
  void main() {
    vec2 c = vec2(gl_VertexID & 1, gl_VertexID >> 1) * 2.0 - 1.0;
    where = c * reach;
    vec3 at = origin + where.x * along + where.y * across;
    inLight = (light * vec4(at, 1.0)).xyz * 0.5 + 0.5;
    gl_Position = camera * vec4(at, 1.0);
  }`;
const FLOOR_FRAGMENT = `#version 300 es
  precision highp float;
  in vec2 where;
  in vec3 inLight;
  uniform vec2 shift;
  uniform float reach, spacing, opacity;
  uniform vec3 ground, rule, back;
  ${LIGHT}
  out vec4 result;
  void main() {
    vec2 g = (where + shift) / spacing, w = fwidth(g), d = abs(fract(g - 0.5) - 0.5);
    vec2 fifth = step(abs(mod(floor(g + 0.5) + 2.5, 5.0) - 2.5), vec2(0.1)); // every fifth line is stronger
    vec2 line = (1.0 - smoothstep(w * 0.1, w * 1.1, d)) * clamp(0.35 / w, 0.0, 1.0) * mix(vec2(0.4), vec2(0.85), fifth);
    float lines = max(line.x, line.y);
    vec3 seen = mix(ground, rule, lines) * mix(0.78, 1.0, lit(inLight));
    float far = smoothstep(0.45, 1.0, length(where) / reach);
    result = vec4(mix(seen, back, far), opacity);
  }`;
const LINE_VERTEX = `#version 300 es
  layout(location = 0) in vec3 start;
  layout(location = 1) in vec3 end;
  uniform mat4 camera;
  uniform vec2 pixels;
  uniform float wide;
  void main() {
    vec4 a = camera * vec4(start, 1.0), b = camera * vec4(end, 1.0);
    vec2 way = (b.xy / b.w - a.xy / a.w) * pixels;
    float far = length(way);
    way = far > 0.0 ? way / far : vec2(1.0, 0.0);
    vec2 side = vec2(-way.y, way.x) * (gl_VertexID % 2 == 0 ? -1.0 : 1.0) + way * (gl_VertexID < 2 ? -0.5 : 0.5);
    vec4 p = gl_VertexID < 2 ? a : b;
    gl_Position = p + vec4(side * wide / pixels * p.w, -0.0005 * p.w, 0.0);
  }`;
const LINE_FRAGMENT = `#version 300 es
  precision highp float;
  uniform vec4 paint;
  out vec4 result;
  void main() { result = paint; }`;

// Corners of a solid's triangles with normals, smooth across all but sharp edges. `vertices` are whole numbers, by which
// corners at one place are found.
function cornersOf(vertices, triangles, low, step) {
  const count = triangles.length / 3, position = new Float32Array(9 * count), normal = new Float32Array(9 * count);
  const flat = new Float32Array(3 * count), area = new Float32Array(3 * count);
  const places = new Map(), first = [], next = new Int32Array(3 * count).fill(-1), placeOf = new Int32Array(3 * count);
  for (let f = 0; f < count; f++) {
    for (let c = 0; c < 3; c++) {
      const v = 3 * triangles[3 * f + c], key = (vertices[v] * 65536 + vertices[v + 1]) * 65536 + vertices[v + 2];
      for (let k = 0; k < 3; k++) position[9 * f + 3 * c + k] = low[k] + step * vertices[v + k];
      let place = places.get(key);
      if (place === undefined) { place = first.length; places.set(key, place); first.push(-1); }
      placeOf[3 * f + c] = place;
      next[3 * f + c] = first[place];
      first[place] = 3 * f + c;
    }
    const o = 9 * f, e = [0, 1, 2].map((k) => position[o + 3 + k] - position[o + k]);
    const g = [0, 1, 2].map((k) => position[o + 6 + k] - position[o + k]), n = cross(e, g), l = size(n) || 1;
    for (let k = 0; k < 3; k++) { area[3 * f + k] = n[k]; flat[3 * f + k] = n[k] / l; }
  }
  for (let i = 0; i < 3 * count; i++) {
    const f = 3 * Math.floor(i / 3);
    let x = 0, y = 0, z = 0;
    for (let j = first[placeOf[i]]; j >= 0; j = next[j]) {
      const g = 3 * Math.floor(j / 3);
      if (flat[f] * flat[g] + flat[f + 1] * flat[g + 1] + flat[f + 2] * flat[g + 2] < CREASE && f !== g) continue;
      x += area[g]; y += area[g + 1]; z += area[g + 2];
    }
    const l = Math.hypot(x, y, z);
    normal[3 * i] = l > 0 ? x / l : flat[f]; normal[3 * i + 1] = l > 0 ? y / l : flat[f + 1]; normal[3 * i + 2] = l > 0 ? z / l : flat[f + 2];
  }
  return { position, normal };
}

function makeRenderer(canvas) {
  const gl = canvas.getContext("webgl2", { antialias: true, alpha: false, powerPreference: "high-performance" });
  if (!gl) return null;
  const compiled = (vertex, fragment) => {
    const program = gl.createProgram();
    for (const [kind, text] of [[gl.VERTEX_SHADER, vertex], [gl.FRAGMENT_SHADER, fragment]]) {
      const shader = gl.createShader(kind);
      gl.shaderSource(shader, text);
      gl.compileShader(shader);
      if (!gl.getShaderParameter(shader, gl.COMPILE_STATUS) && !gl.isContextLost()) throw new Error(gl.getShaderInfoLog(shader));
      gl.attachShader(program, shader);
    }
    gl.linkProgram(program);
    const uniforms = {}, count = gl.getProgramParameter(program, gl.ACTIVE_UNIFORMS) ?? 0;
    for (let k = 0; k < count; k++) {
      const { name } = gl.getActiveUniform(program, k);
      uniforms[name] = gl.getUniformLocation(program, name);
    }
    return { program, uniforms };
  };
  const solid = compiled(SOLID_VERTEX, SOLID_FRAGMENT), depth = compiled(SOLID_VERTEX, DEPTH_FRAGMENT);
  const floor = compiled(FLOOR_VERTEX, FLOOR_FRAGMENT), line = compiled(LINE_VERTEX, LINE_FRAGMENT);
  const nothing = gl.createVertexArray();

  const shadowMap = gl.createTexture(), shadowTarget = gl.createFramebuffer();
  gl.bindTexture(gl.TEXTURE_2D, shadowMap);
  gl.texStorage2D(gl.TEXTURE_2D, 1, gl.DEPTH_COMPONENT24, SHADOW, SHADOW);
  for (const [what, value] of [
    [gl.TEXTURE_MIN_FILTER, gl.LINEAR], [gl.TEXTURE_MAG_FILTER, gl.LINEAR], [gl.TEXTURE_COMPARE_MODE, gl.COMPARE_REF_TO_TEXTURE],
    [gl.TEXTURE_COMPARE_FUNC, gl.LEQUAL], [gl.TEXTURE_WRAP_S, gl.CLAMP_TO_EDGE], [gl.TEXTURE_WRAP_T, gl.CLAMP_TO_EDGE],
  ]) gl.texParameteri(gl.TEXTURE_2D, what, value);
  gl.bindFramebuffer(gl.FRAMEBUFFER, shadowTarget);
  gl.framebufferTexture2D(gl.FRAMEBUFFER, gl.DEPTH_ATTACHMENT, gl.TEXTURE_2D, shadowMap, 0);
  gl.bindFramebuffer(gl.FRAMEBUFFER, null);

  const places = gl.createTexture();
  let placesTall = 0;
  function setPlaces(values) { // a whole number of rows
    const tall = values.length / (4 * ROW);
    gl.activeTexture(gl.TEXTURE0);
    gl.bindTexture(gl.TEXTURE_2D, places);
    if (tall !== placesTall) {
      gl.texImage2D(gl.TEXTURE_2D, 0, gl.RGBA32F, ROW, tall, 0, gl.RGBA, gl.FLOAT, values);
      for (const what of [gl.TEXTURE_MIN_FILTER, gl.TEXTURE_MAG_FILTER]) gl.texParameteri(gl.TEXTURE_2D, what, gl.NEAREST);
      placesTall = tall;
    } else gl.texSubImage2D(gl.TEXTURE_2D, 0, 0, 0, ROW, tall, gl.RGBA, gl.FLOAT, values);
  }

  // The solids of a scene, sorted by layer and by whether one sees through them: { layer, clear, first, count }.
  function addSolids(solids) {
    const order = [...solids].sort((a, b) => (a.layer < b.layer ? -1 : a.layer > b.layer ? 1 : a.clear - b.clear));
    const total = order.reduce((sum, s) => sum + s.position.length / 3, 0), bytes = new ArrayBuffer(24 * total);
    const real = new Float32Array(bytes), small = new Int8Array(bytes), byte = new Uint8Array(bytes), ranges = [];
    let at = 0;
    for (const s of order) {
      const count = s.position.length / 3, [r, g, b] = [s.colour >> 16, (s.colour >> 8) & 255, s.colour & 255];
      const last = ranges.at(-1);
      if (last && last.layer === s.layer && last.clear === s.clear) last.count += count;
      else ranges.push({ layer: s.layer, clear: s.clear, first: at, count });
      for (let k = 0; k < count; k++, at++) {
        for (let i = 0; i < 3; i++) {
          real[6 * at + i] = s.position[3 * k + i];
          small[24 * at + 12 + i] = Math.round(127 * s.normal[3 * k + i]);
        }
        byte.set([r, g, b, Math.round(255 * s.opacity)], 24 * at + 16);
        real[6 * at + 5] = s.entry;
      }
    }
    const vertices = gl.createVertexArray(), buffer = gl.createBuffer();
    gl.bindVertexArray(vertices);
    gl.bindBuffer(gl.ARRAY_BUFFER, buffer);
    gl.bufferData(gl.ARRAY_BUFFER, bytes, gl.STATIC_DRAW);
    for (const [k, wide, kind, whole, offset] of [
      [0, 3, gl.FLOAT, false, 0], [1, 3, gl.BYTE, true, 12], [2, 4, gl.UNSIGNED_BYTE, true, 16], [3, 1, gl.FLOAT, false, 20],
    ]) {
      gl.enableVertexAttribArray(k);
      gl.vertexAttribPointer(k, wide, kind, whole, 24, offset);
    }
    return { vertices, ranges };
  }

  // A line through points, of which any part can be drawn.
  function addLine(points) {
    const vertices = gl.createVertexArray(), buffer = gl.createBuffer();
    gl.bindVertexArray(vertices);
    gl.bindBuffer(gl.ARRAY_BUFFER, buffer);
    gl.bufferData(gl.ARRAY_BUFFER, points, gl.DYNAMIC_DRAW);
    for (const k of [0, 1]) {
      gl.enableVertexAttribArray(k);
      gl.vertexAttribPointer(k, 3, gl.FLOAT, false, 12, 12 * k);
      gl.vertexAttribDivisor(k, 1);
    }
    return { vertices, buffer, remove: () => { gl.deleteVertexArray(vertices); gl.deleteBuffer(buffer); } };
  }

  // frame: { camera, eye, light, sun, lift, shadows, groups, shown, over, section, floor, lines, back, ratio }. A group of equal
  // scenes: { solids, base, stride, whole, ghosts }: how many instances are whole, and how many after them are ghosts.
  function draw(frame) {
    const use = ({ program, uniforms }) => {
      gl.useProgram(program);
      const set = (name, how, ...value) => { if (uniforms[name] !== undefined) gl[how](uniforms[name], ...value); };
      set("places", "uniform1i", 0);
      set("shadow", "uniform1i", 1);
      set("shadows", "uniform1f", frame.shadows);
      set("camera", "uniformMatrix4fv", false, frame.camera);
      set("light", "uniformMatrix4fv", false, frame.light);
      set("eye", "uniform4fv", frame.eye);
      set("sun", "uniform3fv", frame.sun);
      set("lift", "uniform1f", frame.lift);
      set("section", "uniform4fv", frame.section ?? [0, 0, 0, 0]);
      set("flatly", "uniform1f", 0);
      return set;
    };
    const each = (set, wanted, ghosts) => {
      for (const group of frame.groups) {
        const count = ghosts ? group.ghosts : group.whole;
        if (!count) continue;
        gl.bindVertexArray(group.solids.vertices);
        set("base", "uniform1i", group.base + (ghosts ? group.whole * group.stride : 0));
        set("stride", "uniform1i", group.stride);
        for (const range of group.solids.ranges) {
          if (wanted(range)) gl.drawArraysInstanced(gl.TRIANGLES, range.first, range.count, count);
        }
      }
    };
    const on = (range) => frame.shown(range.layer), over = (range) => frame.over.has(range.layer);
    gl.activeTexture(gl.TEXTURE0);
    gl.bindTexture(gl.TEXTURE_2D, places);
    gl.disable(gl.BLEND);
    gl.enable(gl.DEPTH_TEST);
    gl.depthFunc(gl.LEQUAL);
    gl.depthMask(true);
    gl.activeTexture(gl.TEXTURE1);
    gl.bindTexture(gl.TEXTURE_2D, null);
    if (frame.shadows) {
      gl.bindFramebuffer(gl.FRAMEBUFFER, shadowTarget);
      gl.viewport(0, 0, SHADOW, SHADOW);
      gl.clear(gl.DEPTH_BUFFER_BIT);
      gl.enable(gl.POLYGON_OFFSET_FILL);
      gl.polygonOffset(1.5, 4);
      const set = use(depth);
      set("camera", "uniformMatrix4fv", false, frame.light);
      each(set, (range) => on(range) && !over(range), false);
      gl.disable(gl.POLYGON_OFFSET_FILL);
      gl.bindFramebuffer(gl.FRAMEBUFFER, null);
    }
    gl.bindTexture(gl.TEXTURE_2D, shadowMap);
    gl.viewport(0, 0, canvas.width, canvas.height);
    gl.clearColor(...frame.back, 1);
    gl.clear(gl.COLOR_BUFFER_BIT | gl.DEPTH_BUFFER_BIT);
    let set = use(solid);
    each(set, (range) => on(range) && !range.clear && !over(range), false);
    if (frame.floor) {
      const f = frame.floor;
      gl.enable(gl.BLEND);
      gl.blendFunc(gl.SRC_ALPHA, gl.ONE_MINUS_SRC_ALPHA);
      set = use(floor);
      for (const name of ["origin", "along", "across", "ground", "rule", "back"]) set(name, "uniform3fv", f[name]);
      for (const name of ["reach", "spacing", "opacity"]) set(name, "uniform1f", f[name]);
      set("shift", "uniform2fv", f.shift);
      gl.bindVertexArray(nothing);
      gl.drawArrays(gl.TRIANGLE_STRIP, 0, 4);
    }
    gl.enable(gl.BLEND);
    gl.blendFuncSeparate(gl.SRC_ALPHA, gl.ONE_MINUS_SRC_ALPHA, gl.ONE, gl.ONE);
    set = use(line);
    set("pixels", "uniform2f", canvas.width / 2, canvas.height / 2);
    for (const { vertices, count, colour, wide } of frame.lines) {
      if (count < 1) continue;
      gl.bindVertexArray(vertices);
      set("paint", "uniform4fv", colour);
      set("wide", "uniform1f", (wide * frame.ratio) / 2);
      gl.drawArraysInstanced(gl.TRIANGLE_STRIP, 0, 4, count);
    }
    // ghosts: their nearest surface only, so that one does not see their inside
    gl.colorMask(false, false, false, false);
    set = use(solid);
    each(set, (range) => on(range) && !range.clear && !over(range) && range.layer !== "ground", true);
    gl.colorMask(true, true, true, true);
    each(set, (range) => on(range) && !range.clear && !over(range) && range.layer !== "ground", true);
    gl.depthMask(false);
    each(set, (range) => on(range) && range.clear && !over(range), false);
    // arrows are seen through bodies, faintly
    set("flatly", "uniform1f", 1);
    gl.disable(gl.DEPTH_TEST);
    gl.blendColor(0, 0, 0, 0.3);
    gl.blendFunc(gl.CONSTANT_ALPHA, gl.ONE_MINUS_CONSTANT_ALPHA);
    each(set, (range) => on(range) && over(range), false);
    set("flatly", "uniform1f", 0.4);
    gl.enable(gl.DEPTH_TEST);
    gl.depthMask(true);
    gl.disable(gl.BLEND);
    each(set, (range) => on(range) && over(range), false);
  }

  return { gl, draw, addSolids, addLine, setPlaces };
}
