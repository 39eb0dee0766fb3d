// The worker: one simulator, one request at a time.

import { instantiate } from "./engine.js";

export interface Job { id: number; request: object }
export type Reply = { id: number; answer: object } | { id: number; share: number; virtualS: number } | { id: number; failure: string };

const post = (reply: Reply) => (self as unknown as { postMessage(reply: Reply): void }).postMessage(reply);
let current = 0;
let lastNs = 0;

const engine = instantiate(fetch(new URL("hoistway.wasm", self.location.href)), (share, virtualS) => {
  const now = performance.now();
  if (now - lastNs < 40) return;
  lastNs = now;
  post({ id: current, share, virtualS });
});

self.addEventListener("message", async (event: MessageEvent<Job>) => {
  const { id, request } = event.data;
  try {
    const call = await engine;
    current = id;
    post({ id, answer: call(request) });
  } catch (error) {
    post({ id, failure: error instanceof Error ? error.message : String(error) });
  }
});
