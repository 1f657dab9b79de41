// The TypeScript SDK's client against `pvelens serve --profile demo`: list,
// call, an error, a cancelled call, prompts, resources, completion.
import assert from "node:assert/strict";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";

const command = process.argv[2];
const client = new Client({ name: "check", version: "1" });
await client.connect(new StdioClientTransport({ command, args: ["serve", "--profile", "demo"], stderr: "inherit" }));

const { tools } = await client.listTools();
for (const want of ["list_nodes", "get_node_capacity", "list_guests", "get_guest_config", "capabilities"]) {
  assert.ok(tools.some((t) => t.name === want), `tool ${want}`);
}
for (const t of tools) {
  assert.equal(t.annotations.readOnlyHint, true, t.name);
  assert.equal(t.annotations.destructiveHint, false, t.name);
  assert.equal(t.annotations.openWorldHint, false, t.name);
}

const guests = await client.callTool({ name: "list_guests", arguments: {} });
assert.equal(guests.structuredContent.total, 17);
assert.deepEqual(JSON.parse(guests.content[0].text), guests.structuredContent);

const running = await client.callTool({ name: "list_guests", arguments: { status: "running", limit: 1 } });
assert.equal(running.structuredContent.items.length, 1);
assert.equal(running.structuredContent.truncated, true);

const config = await client.callTool({ name: "get_guest_config", arguments: { guest: 102 } });
assert.equal(config.structuredContent.name, "immich");

const bad = await client.callTool({ name: "list_guests", arguments: { limit: 0 } });
assert.equal(bad.isError, true);
assert.match(bad.content[0].text, /^INVALID_ARGUMENT: limit must be/);
assert.equal(bad._meta["pvelens/code"], "INVALID_ARGUMENT");

const abort = new AbortController();
const call = client.callTool({ name: "list_nodes", arguments: {} }, undefined, { signal: abort.signal });
abort.abort("no longer wanted");
await assert.rejects(call);
const after = await client.callTool({ name: "list_nodes", arguments: {} });
assert.equal(after.structuredContent.total, 3);

// A call that goes on after its first notice: the client forgets the handler as
// soon as the reply is there.
let seen = 0;
await client.callTool({ name: "config_audit", arguments: {} }, undefined, { onprogress: () => seen++ });
assert.ok(seen > 0, "progress");

assert.equal((await client.listPrompts()).prompts.length, 4);
const prompt = await client.getPrompt({ name: "diagnose_guest", arguments: { guest: "102" } });
assert.match(prompt.messages[0].content.text, /guest 102/);
await assert.rejects(client.getPrompt({ name: "diagnose_guest", arguments: {} }));
const table = await client.readResource({ uri: "pvelens://allowlist" });
assert.match(table.contents[0].text, /guest-configs/);
await assert.rejects(client.readResource({ uri: "pvelens://findings/NOPE" }));
const done = await client.complete({ ref: { type: "ref/prompt", name: "diagnose_guest" }, argument: { name: "guest", value: "im" } });
assert.deepEqual(done.completion.values, ["immich"]);

await client.close();
console.log(`TypeScript SDK client: ok, ${tools.length} tools`);
