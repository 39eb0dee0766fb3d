// The module of the simulator: requests and answers as JSON. crates/playground/src/lib.rs describes the ABI.

export interface Problem { message: string; line?: number }
export type Answer<T> = { ok: T; error?: undefined } | { ok?: undefined; error: Problem };
export type Call = <T>(request: object) => Answer<T>;

interface Exports {
  memory: WebAssembly.Memory;
  hoistway_alloc(bytes: number): number;
  hoistway_free(address: number, bytes: number): void;
  hoistway_call(address: number, bytes: number): bigint;
}

/** Makes the function that answers requests. `progress` gets the part that is done, 0 to 1, and the virtual time in seconds. */
export async function instantiate(
  source: Response | Promise<Response> | BufferSource,
  progress: (share: number, virtualS: number) => void,
): Promise<Call> {
  const imports = { hoistway: { progress } };
  const exports = (await instance(source, imports)).exports as unknown as Exports;
  return <T>(request: object): Answer<T> => {
    const bytes = new TextEncoder().encode(JSON.stringify(request));
    const address = exports.hoistway_alloc(bytes.length);
    if (address === 0) return { error: { message: "the request does not fit into memory" } };
    new Uint8Array(exports.memory.buffer).set(bytes, address);
    const answer = BigInt.asUintN(64, exports.hoistway_call(address, bytes.length));
    exports.hoistway_free(address, bytes.length);
    const [at, length] = [Number(answer >> 32n), Number(answer & 0xffffffffn)];
    const text = new TextDecoder().decode(new Uint8Array(exports.memory.buffer, at, length));
    exports.hoistway_free(at, length);
    return JSON.parse(text) as Answer<T>;
  };
}

async function instance(source: Response | Promise<Response> | BufferSource, imports: WebAssembly.Imports): Promise<WebAssembly.Instance> {
  if (source instanceof ArrayBuffer || ArrayBuffer.isView(source)) return (await WebAssembly.instantiate(source, imports)).instance;
  const response = await (source as Response | Promise<Response>);
  if (!response.ok) throw new Error(`hoistway.wasm: ${response.status} ${response.statusText}`);
  // Servers that do not know the type of .wasm send another one, which streaming refuses.
  return (await WebAssembly.instantiate(await response.arrayBuffer(), imports)).instance;
}
