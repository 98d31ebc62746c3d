// Submits jobs and shows all that a program does with them: FENCEROW_GATEWAY_URL, FENCEROW_TOKEN, WEBHOOK_SECRET and the
// port for webhooks say with whom.

import { connect, follow, Refused, resultOf, taken, WAIT_S } from "./jobs.js";
import { firstWebhook } from "./webhooks.js";

const { FENCEROW_GATEWAY_URL: url = "", FENCEROW_TOKEN: token = "", WEBHOOK_SECRET: secret = "" } = process.env;
const told = firstWebhook(Number(process.argv[2]), secret, () => console.log("listening"));
const jobs = connect(url, token);

// A submit under a key. Sent again, it is the same job.
const key = { params: { header: { "Idempotency-Key": '"invoice-17"' } } };
const pages = { job: "pages", args: { path: "a.pdf", copies: 2 } };
const first = taken(await jobs.POST("/v1/jobs", { ...key, body: pages }));
const again = await jobs.POST("/v1/jobs", { ...key, body: pages });
console.log("again", taken(again).id === first.id, again.response.headers.get("idempotent-replayed"));
console.log("result", JSON.stringify(await resultOf(jobs, first.id)));

// A submit that waits is answered with the end of its job, where that comes in time.
const waits = { params: { query: { wait: WAIT_S } } };
const ended = taken(await jobs.POST("/v1/jobs", { ...waits, body: { ...pages, args: { path: "d.pdf" } } }));
console.log("waited", ended.state, JSON.stringify(ended.result));

// A job that nobody runs yet, and never will.
const later = taken(await jobs.POST("/v1/jobs", { body: { ...pages, delay_s: 3600 } }));
const cancelled = taken(await jobs.DELETE("/v1/jobs/{id}", { params: { path: { id: later.id } } }));
const { state } = taken(await jobs.GET("/v1/jobs/{id}", { params: { path: { id: later.id } } }));
console.log("cancel", cancelled.answer, state);

// What a job says while it runs, up to its end.
const slow = taken(await jobs.POST("/v1/jobs", { body: { job: "scan", args: { path: "b.pdf" } } }));
for await (const { kind, data } of follow(jobs, slow.id)) {
  if (kind === "log") console.log("log", data.message);
  if (kind === "end") console.log("end", data.state);
}

// What does not fit is refused with a code, and nothing is stored.
try {
  taken(await jobs.POST("/v1/jobs", { body: { job: "pages", args: { path: "c.pdf", copies: "two" } } }));
} catch (error) {
  if (!(error instanceof Refused)) throw error;
  console.log("refused", error.problem.status, error.problem.code, error.problem.where);
}

const webhook = await told;
console.log("webhook", webhook.type, webhook.data.job === first.id);
