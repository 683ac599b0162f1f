// Publishes one event in each mode with the JavaScript SDK: node publisher.mjs MODULES URL
import { createRequire } from "node:module";

const [modules, url] = process.argv.slice(2);
const { CloudEvent, HTTP, Mode, emitterFor, httpTransport } = createRequire(`${modules}/`)("cloudevents");

for (const mode of [Mode.BINARY, Mode.STRUCTURED]) {
  const emit = emitterFor(httpTransport(url), { mode, binding: HTTP });
  const event = new CloudEvent({
    id: `js-${mode}`, source: "/js", type: "order.created", subject: "eu-1", ext: "x", data: { total: 5, name: "Ada" },
  });
  const answer = await emit(event);
  console.log(JSON.stringify(answer));
}
