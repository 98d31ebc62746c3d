// @ts-check
// Receive Fencerow's webhooks with nothing but Node.js; the checks of TypeScript pass as it stands.
//
//     WEBHOOK_SECRETS="whsec_…" node receive.mjs 8000
//
// Give both secrets, with a blank between, while one is replaced. TLS is the business of what stands before it.

import { createHmac, timingSafeEqual } from "node:crypto";
import { createServer } from "node:http";

const TOLERANCE_S = 300;
const BODY_BYTES_MAX = 1024 * 1024;
const SECRET_BYTES_MIN = 24;
const ID = /^[A-Za-z0-9_:=+/-]{1,256}$/;
const TIMESTAMP = /^(0|[1-9][0-9]{0,11})$/;

/**
 * Whether exactly this body was signed with one of the secrets, not long ago.
 *
 * @param {Record<string, string[] | undefined>} headers as `request.headersDistinct`
 * @param {Buffer} body as it came: neither decoded nor parsed
 * @param {Buffer[]} secrets
 * @param {number} nowS
 */
export function isGenuine(headers, body, secrets, nowS) {
  const [id, timestamp, signatures] = ["webhook-id", "webhook-timestamp", "webhook-signature"].map((name) =>
    oneOf(headers, name),
  );
  if (!ID.test(id) || !TIMESTAMP.test(timestamp)) return false;
  if (Math.abs(nowS - Number(timestamp)) > TOLERANCE_S) return false;
  let found = false;
  for (const secret of secrets) {
    const signed = createHmac("sha256", secret).update(`${id}.${timestamp}.`).update(body);
    const expected = Buffer.from(`v1,${signed.digest("base64")}`);
    for (const signature of signatures.split(" ").slice(0, 16)) {
      const given = Buffer.from(signature, "latin1");
      found = (given.length === expected.length && timingSafeEqual(given, expected)) || found;
    }
  }
  return found;
}

/**
 * The header's value; nothing if it comes twice, for then nobody knows which one counts.
 *
 * @param {Record<string, string[] | undefined>} headers
 * @param {string} name
 */
function oneOf(headers, name) {
  const values = headers[name] ?? [];
  return values.length === 1 ? values[0] : "";
}

const secrets = (process.env.WEBHOOK_SECRETS ?? "")
  .split(" ")
  .map((text) => Buffer.from(text.replace(/^whsec_/, ""), "base64"));
if (secrets.some((secret) => secret.length < SECRET_BYTES_MIN)) throw new Error("WEBHOOK_SECRETS has something else than secrets");

const server = createServer((request, response) => {
  /** @type {Buffer[]} */
  const parts = [];
  let length = 0;
  /** @param {number} status */
  const answer = (status) => {
    if (!response.headersSent) response.writeHead(status, { "content-length": 0, connection: "close" }).end();
  };
  request.on("data", (/** @type {Buffer} */ part) => {
    length += part.length;
    if (length <= BODY_BYTES_MAX) parts.push(part);
    else answer(413);
  });
  request.on("end", () => {
    if (request.method !== "POST" || !isGenuine(request.headersDistinct, Buffer.concat(parts), secrets, Date.now() / 1000)) {
      answer(400);
      return;
    }
    // The same id comes again if this answer is lost: keep the ids that you have worked off, in the transaction of
    // the work itself, and answer 204 to those without doing it again.
    console.log("received", request.headers["webhook-id"]);
    answer(204);
  });
  request.on("error", () => response.destroy());
});
server.requestTimeout = 10_000;
server.listen(Number(process.argv[2]), "127.0.0.1", () => {
  const address = server.address();
  console.log("listening on", typeof address === "object" ? address?.port : address);
});
