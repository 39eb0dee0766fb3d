// Requests to the worker. A new comparison ends the one that runs, because a simulation cannot be interrupted otherwise.

import type { Answer } from "./engine.js";
import type { Job, Reply } from "./worker.js";

interface Waiting { resolve(answer: Answer<unknown>): void; reject(error: Error): void; progress?: ((share: number, virtualS: number) => void) | undefined }

/** The reason of requests that a later one replaced. */
export class Replaced extends Error {}

export class Client {
  private worker: Worker | undefined;
  private ids = 0;
  private waiting = new Map<number, Waiting>();

  constructor(private readonly url: URL) {}

  /** Answers a request after those before it. */
  ask<T>(request: object, progress?: (share: number, virtualS: number) => void): Promise<Answer<T>> {
    const worker = (this.worker ??= this.start());
    const job: Job = { id: (this.ids += 1), request };
    return new Promise((resolve, reject) => {
      this.waiting.set(job.id, { resolve: (answer) => resolve(answer as Answer<T>), reject, progress });
      worker.postMessage(job);
    });
  }

  /** Ends the request that runs and forgets those that wait. */
  stop(): void {
    if (this.waiting.size === 0) return;
    this.restart(new Replaced("replaced by a later request"));
  }

  private start(): Worker {
    const worker = new Worker(this.url, { type: "module" });
    worker.addEventListener("message", (event: MessageEvent<Reply>) => this.take(event.data));
    worker.addEventListener("error", (event) => this.restart(new Error(event.message || "the worker could not be started")));
    return worker;
  }

  private take(reply: Reply): void {
    const waiting = this.waiting.get(reply.id);
    if (!waiting) return;
    if ("share" in reply) return waiting.progress?.(reply.share, reply.virtualS);
    this.waiting.delete(reply.id);
    if ("answer" in reply) return waiting.resolve(reply.answer as Answer<unknown>);
    // After a trap the memory of the module is in no defined state.
    waiting.reject(new Error(reply.failure));
    this.restart(new Replaced(reply.failure));
  }

  private restart(reason: Error): void {
    this.worker?.terminate();
    this.worker = undefined;
    const waiting = [...this.waiting.values()];
    this.waiting.clear();
    for (const each of waiting) each.reject(reason);
  }
}
