// Receives webhooks, and believes only those that are genuine, by a library of Standard Webhooks.

import { createServer } from "node:http";
import { Webhook, WebhookVerificationError } from "standardwebhooks";

const BODY_BYTES_MAX = 1024 * 1024;

export type Ended = { type: string; data: { job: string; name: string; queue: string } };

/** Listens on this port of this machine, and returns the first genuine webhook. */
export function firstWebhook(port: number, secret: string, listening: () => void): Promise<Ended> {
  const verifier = new Webhook(secret);
  return new Promise((resolve) => {
    const server = createServer(async (request, response) => {
      const body = await bytesOf(request);
      const headers = request.headers as Record<string, string>;
      try {
        if (body === undefined) throw new WebhookVerificationError("the body is too large");
        const ended = verifier.verify(body, headers) as Ended;
        response.writeHead(204, { connection: "close" }).end();
        // The same id comes again if this answer is lost: keep the ids that you have worked off, with the work itself.
        server.close(() => resolve(ended));
      } catch (error) {
        if (!(error instanceof WebhookVerificationError)) throw error;
        response.writeHead(400, { connection: "close" }).end();
      }
    });
    server.listen(port, "127.0.0.1", listening);
  });
}

/** The body as it came: exactly these bytes were signed. Nothing if there are too many of them. */
async function bytesOf(request: AsyncIterable<Buffer>): Promise<string | undefined> {
  const parts: Buffer[] = [];
  let length = 0;
  for await (const part of request) {
    length += part.length;
    if (length > BODY_BYTES_MAX) return undefined;
    parts.push(part);
  }
  return Buffer.concat(parts).toString("utf-8");
}
