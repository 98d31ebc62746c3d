// Jobs over HTTP: what openapi-typescript and openapi-fetch do not do by themselves. Copy it and change it as you like.

import { setTimeout } from "node:timers/promises";
import createClient from "openapi-fetch";
import type { components, paths } from "./schema.js";

export type Problem = components["schemas"]["Problem"];
export type Jobs = ReturnType<typeof connect>;
export type JobEvent = { id: string; kind: string; data: Record<string, unknown> };

const NOT_ENDED = "FR-307";
export const WAIT_S = 30; // of one request: shorter than what proxies cut off

/** What the gateway refused. `problem.code` is stable, and docs/errors.md has a paragraph for each. */
export class Refused extends Error {
  constructor(readonly problem: Problem) {
    super(`${problem.code}: ${problem.detail}`);
  }
}

/** A client of the gateway, typed by its OpenAPI document. What is lost is sent again for `patienceMs`. */
export function connect(baseUrl: string, token: string, patienceMs = 30_000) {
  return createClient<paths>({
    baseUrl,
    headers: { authorization: `Bearer ${token}` },
    fetch: (request) => patiently(request, patienceMs),
  });
}

/** The data of an answer, or its refusal as an error. */
export function taken<T>(answer: { data?: T; error?: Problem }): T {
  if (answer.error !== undefined) throw new Refused(answer.error);
  return answer.data as T;
}

/** Waits for the job's end, and returns what its handler returned. */
export async function resultOf(jobs: Jobs, id: string): Promise<unknown> {
  for (;;) {
    const answer = await jobs.GET("/v1/jobs/{id}/result", { params: { path: { id }, query: { wait: WAIT_S } } });
    if (answer.error?.code !== NOT_ENDED) return taken(answer);
  }
}

/** What happens to the job, from now to its end. A stream that breaks off goes on with the next one, where it was. */
export async function* follow(jobs: Jobs, id: string): AsyncGenerator<JobEvent> {
  let last = "";
  for (;;) {
    const header = last === "" ? {} : { "Last-Event-ID": last };
    const answer = await jobs.GET("/v1/jobs/{id}/events", { params: { path: { id }, header }, parseAs: "stream" });
    const stream = taken(answer);
    if (answer.response.status === 204 || !stream) return; // it had ended, and that was told
    try {
      for await (const event of eventsOf(stream)) {
        last = event.id;
        yield event;
        if (event.kind === "end" || event.kind === "gone") return;
      }
    } catch (error) {
      if (!(error instanceof TypeError)) throw error; // `fetch` says so of a connection that is lost
    }
    await setTimeout(1000 + Math.random() * 1000);
  }
}

async function* eventsOf(stream: ReadableStream<Uint8Array>): AsyncGenerator<JobEvent> {
  const decoder = new TextDecoder();
  let text = "";
  for await (const bytes of stream) {
    text += decoder.decode(bytes, { stream: true });
    const blocks = text.split("\n\n");
    text = blocks.pop() ?? "";
    for (const block of blocks) {
      const { id = "", event = "", data = "{}" } = fieldsOf(block);
      if (event !== "") yield { id, kind: event, data: JSON.parse(data) };
    }
  }
}

/** The fields of one event. Lines that begin with a colon only say that the stream is alive. */
function fieldsOf(block: string): Record<string, string> {
  return Object.fromEntries(block.split("\n").map((line) => [line.split(": ", 1)[0], line.slice(line.indexOf(": ") + 2)]));
}

/**
 * Sends a request again that was lost, or that the gateway wants to have later. That makes no second job where a submit
 * has a key or an id of its own. Redirects are not followed: a token goes to the address that you gave and nowhere else.
 */
async function patiently(request: Request, patienceMs: number): Promise<Response> {
  const until = Date.now() + patienceMs;
  for (let pauseMs = 200; ; pauseMs = Math.min(2 * pauseMs, 5_000)) {
    const answer = await fetch(request.clone(), { redirect: "error" }).catch((error: Error) => error);
    if (answer instanceof Response && answer.status !== 429 && answer.status !== 503) return answer;
    const askedMs = answer instanceof Response ? Number(answer.headers.get("retry-after") ?? 0) * 1000 : 0;
    const waitMs = Math.max(pauseMs, askedMs);
    if (Date.now() + waitMs > until) {
      if (answer instanceof Response) return answer;
      throw answer;
    }
    await setTimeout(waitMs);
  }
}
