// WebAssembly that Cardan compiled (machines/webassembly): a program as a function of arrays.
const PAGE_OF_MEMORY = 65536;

// A program as a function from an object of arrays, one for each input by its name, to one of outputs.
async function loadedProgram(program, bytes, stack) {
  const base = program.pages * PAGE_OF_MEMORY + stack;
  const ports = [...program.inputs, ...program.outputs];
  const count = ports.reduce((sum, [, size]) => sum + size, 0) + program.scratch;
  const memory = new WebAssembly.Memory({ initial: Math.ceil((base + 8 * count) / PAGE_OF_MEMORY) });
  const top = new WebAssembly.Global({ value: "i32", mutable: true }, base);
  const { instance } = await WebAssembly.instantiate(bytes, { env: { __linear_memory: memory, __stack_pointer: top } });
  let at = base;
  const views = ports.map(([name, size]) => [name, new Float64Array(memory.buffer, at, size), (at += 8 * size)]);
  const inputs = views.slice(0, program.inputs.length);
  const outputs = views.slice(program.inputs.length);
  return (given) => {
    for (const [name, view] of inputs) {
      if (typeof given[name] === "number") view[0] = given[name];
      else view.set(given[name]);
    }
    instance.exports.call(base);
    return Object.fromEntries(outputs.map(([name, view]) => [name, view.slice()]));
  };
}
