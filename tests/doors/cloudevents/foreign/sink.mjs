// Reads deliveries, one JSON object {headers, body, secret} per line, with the JavaScript SDK and standardwebhooks: node sink.mjs MODULES
import { createInterface } from "node:readline";
import { createRequire } from "node:module";

const require = createRequire(`${process.argv[2]}/`);
const { HTTP } = require("cloudevents");
const { Webhook } = require("standardwebhooks");

for await (const line of createInterface({ input: process.stdin })) {
  const { headers, body, secret } = JSON.parse(line);
  let verified = false;
  if (secret) {
    new Webhook(secret).verify(body, headers);
    verified = true;
  }
  const found = HTTP.toEvent({ headers, body });
  const events = Array.isArray(found) ? found : [found];
  console.log(JSON.stringify({ verified, events: events.map((event) => event.toJSON()) }));
}
